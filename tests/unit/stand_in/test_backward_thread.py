"""A program's `bprop` runs in the thread that asks for the gradient: inside of its capture, and of its frames."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "backward_thread.py"
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")


@pytest.mark.sample
@pytest.mark.slow
@pytest.mark.parametrize("mode", [1, 0], ids=["pynative", "graph"])
def test_bprop_runs_in_the_thread_of_the_program(mode: int) -> None:
    ended = processes.python(PROGRAM, str(mode), cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)})
    assert ended.code == 0, ended.err[-3000:]
    result = json.loads(ended.out.splitlines()[-1])
    assert result["values"] == [[5, 5], [7, 7], [5, 5]]
    assert all(result["threads"]) and all(result["frames"])
    assert result["graphs"] == (1 if mode == 0 else 0)
