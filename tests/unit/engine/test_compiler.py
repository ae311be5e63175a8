"""The C++ compiler is not waited for without end."""
from __future__ import annotations

import time
from pathlib import Path

import pytest

from torchspore.engine.native import cpp_compiler
from torchspore.engine.torch_internals import torch_private


def test_a_compiler_that_hangs_is_reported_and_may_clean_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\ntrap 'rm left; exit 1' TERM\ntouch left seen\nsleep 60 & wait\n")   # as g++ does
    (tmp_path / "cc").chmod(0o700)
    monkeypatch.setenv(cpp_compiler.SECONDS, "1")
    started = time.monotonic()
    with pytest.raises(RuntimeError, match="it was not done after 1 s"):
        torch_private._run_compiler(f"{tmp_path}/cc", str(tmp_path))
    assert time.monotonic() - started < 30
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cc", "seen"]


def test_a_compiler_that_ends_gives_its_file_and_its_words(tmp_path: Path) -> None:
    (tmp_path / "cc").write_text('#!/bin/sh\necho made > "$2"\n')
    (tmp_path / "cc").chmod(0o700)
    torch_private._run_compiler(f"{tmp_path}/cc -o out", str(tmp_path))
    assert (tmp_path / "out").read_text() == "made\n"
    with pytest.raises(RuntimeError, match="no such thing"):
        torch_private._run_compiler("sh -c 'echo no such thing; exit 3'", str(tmp_path))
