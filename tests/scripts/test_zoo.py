"""Programs as tutorials, courses and the model zoo have them print what they print in MindSpore 2.10, in both modes."""
from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run

PROGRAMS = sorted((Path(__file__).parent / "programs" / "zoo").glob("*.py"))
SLOW = {"gpt", "multi_task", "transformer_encoder"}
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
RELATIVE, ABSOLUTE = 1e-3, 2e-4
"""How far numbers may lie apart: training amplifies the last bits; programs print 4 decimals."""

CASES = [
    pytest.param(path, mode, id=f"{path.stem}-{mode}", marks=[pytest.mark.slow] if path.stem in SLOW else [])
    for path in PROGRAMS for mode in ("pynative", "graph")
]


def is_close(text: str, other: str) -> bool:
    """Whether two numbers as printed are the same, or nearly."""
    return text == other or math.isclose(float(text), float(other), rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def differences(expected: str, result: str) -> list[str]:
    """The lines that differ in more than the last digits of their numbers."""
    expected_lines, actual_lines = expected.splitlines(), result.splitlines()
    out = [f"expected {len(expected_lines)} lines, found {len(actual_lines)}"] if len(expected_lines) != len(actual_lines) else []
    for number, (expected_line, other) in enumerate(zip(expected_lines, actual_lines), 1):
        alike = NUMBER.sub("#", expected_line).split() == NUMBER.sub("#", other).split()
        if not alike or not all(map(is_close, NUMBER.findall(expected_line), NUMBER.findall(other))):
            out.append(f"line {number}\n  MindSpore:  {expected_line}\n  torchspore: {other}")
    return out


@pytest.mark.parametrize(("program", "mode"), CASES)
def test_it_prints_what_mindspore_prints(program: Path, mode: str, warm: Callable[..., Run], tmp_path: Path) -> None:
    head, expected = program.with_suffix(".expected").read_text(encoding="utf-8").split("\n", 1)
    assert head.startswith("# MindSpore 2.10.0")
    ended = warm(program, mode, cwd=tmp_path, TORCHSPORE_DEVICE="CPU")
    assert ended.code == 0, ended.err
    assert differences(expected, ended.out) == []
    assert ended.err == ""


def test_a_program_for_another_device_runs_on_the_cpu(warm: Callable[..., Run], tmp_path: Path) -> None:
    program = Path(__file__).parent / "programs" / "zoo" / "devices.py"
    _, expected = program.with_suffix(".expected").read_text(encoding="utf-8").split("\n", 1)
    for target in ("GPU", "Ascend"):
        ended = warm(program, "graph", "--device_target", target, cwd=tmp_path, TORCHSPORE_DEVICE="CPU")
        assert ended.code == 0, ended.err
        assert differences(expected, ended.out) == []


def test_nothing_is_missing() -> None:
    from torchspore.cli import check

    assert check.run([str(PROGRAMS[0].parent)]) == 0
