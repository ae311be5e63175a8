"""Each command of examples/README.md prints what the page shows, in a copy of the examples."""
from __future__ import annotations

import math
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts.test_zoo import NUMBER
from support.processes import Run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
TEXT = (EXAMPLES / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\ntorchspore ([^\n]*)\n```\n\n```text\n(.*?)^```", TEXT, re.S | re.M)
FOLDERS = {"resnet_to_timm.ipynb": "notebooks", "timm_backbone.ipynb": "notebooks", "finetune.py": "gpt2_from_huggingface"}
NEEDS = {"notebooks": ["timm"], "gpt2_from_huggingface": ["transformers"]}

TOLERANCES = {"notebooks": 0.3, "gpt2_from_huggingface": 0.1, "semi_auto_parallel": 1e-3, "explain_and_report": 0.05}
"""How far numbers may differ on another machine: the last bits of a training in many steps grow."""
CORES = re.compile(r"\d+ cores")


def is_alike(expected: str, line: str, tolerance: float) -> bool:
    """Return whether two lines have the same words, and numbers that differ by the tolerance at most."""
    expected, line = CORES.sub("cores", expected), CORES.sub("cores", line)
    numbers = zip(NUMBER.findall(expected), NUMBER.findall(line))
    return NUMBER.sub("#", expected).split() == NUMBER.sub("#", line).split() and all(
        math.isclose(float(a), float(b), rel_tol=tolerance, abs_tol=tolerance / 10) for a, b in numbers)


def folder_of(command: str) -> str:
    """Return the folder in which a command of the page is run."""
    if "train.py" in command:
        return "explain_and_report" if "--device" in command else "semi_auto_parallel"
    return FOLDERS[command.split()[-1]]


def cases() -> list[object]:
    """Return a case for each command; the run on one device stands for all in the quick tests."""
    result = []
    for command, output in BLOCKS:
        folder = folder_of(command)
        marks = [pytest.mark.needs(package) for package in NEEDS.get(folder, [])]
        if (command, folder) != ("run train.py", "semi_auto_parallel"):
            marks.append(pytest.mark.slow)
        result.append(pytest.param(folder, command, output, id=f"{folder}: {command}", marks=marks))
    return result


@pytest.mark.parametrize(("folder", "command", "output"), cases())
def test_a_command_prints_what_the_page_shows(folder: str, command: str, output: str, run: Callable[..., Run], tmp_path: Path) -> None:
    copy = tmp_path / "examples" / folder
    shutil.copytree(EXAMPLES / folder, copy, ignore=shutil.ignore_patterns("__pycache__", "*.ckpt", "out"))
    shutil.copy(ROOT / "LICENSE", tmp_path)
    (copy.parent / "quickstart").symlink_to(EXAMPLES / "quickstart")
    ended = run(*shlex.split(command), cwd=copy, timeout=900)
    assert ended.code == 0, ended.out + ended.err
    lines, shown = ended.out.splitlines(), output.splitlines()
    first = next((number for number, line in enumerate(lines) if is_alike(shown[0], line, TOLERANCES[folder])), 0)
    differences = [pair for pair in zip(shown, lines[first:]) if not is_alike(*pair, TOLERANCES[folder])]
    assert not differences and len(lines) >= first + len(shown), ended.out
    if "--report" in command:
        assert "<html" in (copy / "out/report.html").read_text(encoding="utf-8")


def test_the_page_has_every_example() -> None:
    programs = {path.parent.name for suffix in ("py", "ipynb") for path in EXAMPLES.glob(f"*/*.{suffix}")}
    assert programs == {folder_of(command) for command, _ in BLOCKS} | {"quickstart"}
    assert len(BLOCKS) == 8
