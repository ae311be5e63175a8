"""Whole programs of the model zoo and the training idioms of 1.x and 2.x give the losses and Parameters of MindSpore 2.10, in both modes.

`tools/whole_programs.py --oracle PYTHON` records what they are compared with, and prints how long a step takes here and there.
"""
from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.processes import Run, torchspore
from whole_programs import ANSWERS, FOLDER, MODES, distance, ended, programs, theirs, tolerance

SAMPLE = {"clipping", "gcn", "kmeans", "linear_regression", "frozen", "textcnn", "own_primitive", "knn"}
"""Quick ones that stand for the others."""

DEVICE = os.environ.get("TESTS_DEVICE", "CPU")
"""Where the programs run; tools/on_gpu.sh says GPU. CUDA cannot be used in forked children, so each program then has a fresh process."""
TOLERANCE_ON_GPU = 2e-3
"""How far numbers of three training steps may lie from the CPU's: kernels add in another order."""

CASES = [
    pytest.param(path, mode, id=f"{path.stem}-{mode}", marks=[pytest.mark.slow, *([pytest.mark.sample] if path.stem in SAMPLE else [])])
    for path in programs() for mode in MODES
]


@pytest.fixture(scope="module")
def recorded() -> dict:
    return json.loads(ANSWERS.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("program", "mode"), CASES)
def test_it_trains_as_in_mindspore(program: Path, mode: str, recorded: dict, warm: Callable[..., Run], tmp_path: Path) -> None:
    if DEVICE == "CPU":
        ran = warm(program, mode, cwd=tmp_path, TORCHSPORE_DEVICE=DEVICE)
    else:
        extra = {"TORCHSPORE_DEVICE": DEVICE, "PYTHONPATH": os.pathsep.join([str(FOLDER), os.environ.get("PYTHONPATH", "")])}
        ran = torchspore(program, mode, cwd=tmp_path, extra=extra)
    assert ran.code == 0, ran.err
    result = ended({"out": ran.out, "err": ran.err, "code": ran.code})
    answers = theirs(recorded[program.stem])
    expected = answers["pynative" if answers[mode].error else mode]
    apart = distance(expected.lines, result.lines)
    assert apart is not None, f"expected\n{expected.lines}\nfound\n{result.lines}"
    assert apart <= max(tolerance(program), 0.0 if DEVICE == "CPU" else TOLERANCE_ON_GPU)


def test_every_program_is_recorded() -> None:
    assert {path.stem for path in programs()} <= set(json.loads(ANSWERS.read_text(encoding="utf-8")))


def test_a_number_that_differs_is_seen() -> None:
    assert distance(["loss 1.5", "2"], ["loss 1.5", "2"]) == 0.0
    assert distance(["loss 1.5"], ["loss 1.50003"]) == pytest.approx(2e-5, rel=1e-2)
    assert distance(["loss 1.5"], ["loss nan"]) not in (None, 0.0)
    assert distance(["loss 1.5"], ["cost 1.5"]) is None
    assert distance(["loss 1.5"], ["loss 1.5", "2"]) is None
