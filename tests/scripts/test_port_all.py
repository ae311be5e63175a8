"""Ports of whole programs: the table of docs/reference/ports.md."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "tests/scripts/programs/models").glob("*.py"))


def rows() -> dict[str, str]:
    """Return whether each program is verified, as the page says."""
    text = (ROOT / "docs/reference/ports.md").read_text(encoding="utf-8").partition("## MindCV")[0]
    return dict(re.findall(r"^\| (\w+) \| (yes|no) \|", text, re.M))


def test_the_page_lists_all_programs_and_nine_of_ten_are_verified() -> None:
    listed = rows()
    assert sorted(listed) == [path.stem for path in PROGRAMS]
    assert sum(state == "yes" for state in listed.values()) >= 0.9 * len(listed)


@pytest.mark.slow
@pytest.mark.parametrize("path", [
    pytest.param(path, marks=[pytest.mark.sample] if path.stem == "lenet" else []) for path in PROGRAMS
], ids=lambda path: path.stem)
def test_programs_are_ported_and_verified(path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "tools/port_all.py", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert f"{int(rows()[path.stem] == 'yes')} of 1 verified" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_the_output_passes_ruff_and_mypy(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "torchspore", "port", "--no-verify", "--out", "resnet_torch.py"]
    done = subprocess.run([*command, str(ROOT / "tests/scripts/programs/models/resnet50.py")], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for tool in (["ruff", "check", "--isolated"], ["mypy", "--follow-imports=silent", "--no-error-summary"]):
        command = [sys.executable, "-m", *tool, "resnet_torch.py"]
        checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert checked.returncode == 0, checked.stdout + checked.stderr
