"""The C++ compiler is not waited for without end."""
from __future__ import annotations

import time
from pathlib import Path

import pytest

from torchspore.engine import private


def test_a_compiler_that_hangs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(private.COMPILER_SECONDS, "1")
    started = time.monotonic()
    with pytest.raises(RuntimeError, match="it was not done after 1 s"):
        private._run_apart("sleep 60", str(tmp_path))
    assert time.monotonic() - started < 30


def test_a_compiler_that_ends_gives_its_file_and_its_words(tmp_path: Path) -> None:
    (tmp_path / "cc").write_text('#!/bin/sh\necho made > "$2"\n')
    (tmp_path / "cc").chmod(0o700)
    private._run_apart(f"{tmp_path}/cc -o out", str(tmp_path))
    assert (tmp_path / "out").read_text() == "made\n"
    with pytest.raises(RuntimeError, match="no such thing"):
        private._run_apart("sh -c 'echo no such thing; exit 3'", str(tmp_path))
