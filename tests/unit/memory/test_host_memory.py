"""The memory that a process can use: the machine's, or that of its container."""
from __future__ import annotations

from pathlib import Path

import pytest

from torchspore.base import host_memory


@pytest.mark.parametrize(("text", "expected"), [
    ("1048576\n", 1 << 20), ("max\n", 1 << 40), ("9223372036854771712\n", 1 << 40), ("", 1 << 40),
])
def test_the_limit_of_a_container(text: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text(text, encoding="ascii")
    monkeypatch.setattr(host_memory, "_LIMITS", (str(tmp_path / "memory.max"), str(tmp_path / "missing")))
    monkeypatch.setattr(host_memory, "_memory_of_machine", lambda: 1 << 40)
    assert host_memory.total_memory() == expected


def test_an_unknown_memory_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "_memory_of_machine", lambda: 0)
    assert host_memory.total_memory() == 0
