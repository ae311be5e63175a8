"""Sums of gradients for some rows on an accelerator: few messages, beside the backward pass, without a wait of Python."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "scatters.py"
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")


def test_reduce_scatters_are_joined_and_run_beside_the_backward_pass() -> None:
    ended = processes.python(PROGRAM, cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}, timeout=600)
    assert ended.code == 0, ended.err[-3000:]
    step = json.loads(ended.out.splitlines()[-1])
    assert step["error"] < 1e-5 and step["faults"] == []
    starts = [event for event in step["log"] if event.startswith("start")]
    assert sorted(starts) == sorted(["start 131072"] * 3 + ["start 384"]) and step["log"][-1] == "wait"      # 12 small gradients are one
    first_wait = step["log"].index("wait")
    assert 1 <= first_wait < len(step["log"]) - 1, step["log"]
    assert step["most"] <= 2                                             # at most two messages keep their operands
    assert step["count"].pop("operators") > 20 and step["count"] == {}, step["events"]
