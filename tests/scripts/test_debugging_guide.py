"""docs/guides/debugging.md: its commands run in order, and what it says they print is printed."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import processes

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "debugging.md"
FOLDER = "/tmp/guide"


def blocks(folder: Path) -> list[tuple[str, str]]:
    """(kind, text) of each block, with this test's folder for the guide's."""
    text = GUIDE.read_text(encoding="utf-8").replace(FOLDER, str(folder))
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def is_printed(line: str, printed: list[str]) -> bool:
    """Whether a line was printed; `…` stands for anything."""
    expected = re.compile(".*".join(map(re.escape, line.strip().split("…"))))
    return any(expected.fullmatch(text.strip()) for text in printed)


@pytest.mark.slow
@pytest.mark.sample
def test_the_guide_finds_the_fault(tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "torchspore").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torchspore "$@"\n')
    (commands / "torchspore").chmod(0o755)
    surroundings = {**processes.environment(), "PATH": f"{commands}:{os.environ['PATH']}"}
    printed, seen = "", 0
    for kind, text in blocks(tmp_path):
        if kind in ("python", "json"):
            name, _, content = text.partition("\n")
            name = name.removeprefix("#").partition(":")[0].strip()
            (tmp_path / name).write_text(text if kind == "python" else content)
        elif kind == "sh":
            ran = subprocess.run(["bash", "-c", text], cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=200)
            printed = ran.stdout + ran.stderr
        else:
            for line in text.splitlines():
                assert is_printed(line, printed.splitlines()), f"{line}\n--- in ---\n{printed}"
                seen += 1
    assert seen == 12
