"""Seeded programs train with the losses of MindSpore 2.10, without a checkpoint, in both modes (`tools/seeded_runs.py`)."""
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from seeded_runs import MODES, RECORD, TOLERANCE, largest_difference, parsed, programs
from support.processes import Run

CASES = [
    pytest.param(path, mode, id=f"{path.stem}-{mode}", marks=[] if path.stem == "lenet" else [pytest.mark.slow])
    for path in programs() for mode in MODES
]


@pytest.mark.parametrize(("program", "mode"), CASES)
def test_the_losses_are_those_of_mindspore(program: Path, mode: str, warm: Callable[..., Run]) -> None:
    ran = warm(program, mode, cwd=program.parent, TORCHSPORE_DEVICE="CPU")
    assert ran.code == 0, ran.err
    expected = json.loads(RECORD.read_text(encoding="utf-8"))[program.stem][mode]
    assert len(expected) == 20 and largest_difference(expected, parsed(ran.out)) <= TOLERANCE


def test_every_seeded_program_is_recorded() -> None:
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    assert {(path.stem, mode) for path in programs() for mode in MODES} == {(name, mode) for name in recorded for mode in recorded[name]}


def test_a_difference_is_seen() -> None:
    assert largest_difference([1.0, 2.0], [1.0, 2.5]) == 0.5
    assert largest_difference([1.0], [1.0, 2.0]) == float("inf") == largest_difference([1.0], [float("nan")])
    assert parsed(f"{1.5.hex()}\n{(-2.0).hex()}\n") == [1.5, -2.0]
