"""A training step hands its work over and goes on: on the stand-in it transfers nothing and waits for nothing, in both modes.

The table of networks, optimizers and options is in programs/training_steps.py. Losses are compared with those of the CPU.
"""
from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "training_steps.py"
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")
READS_OVERFLOW = ("TrainOneStepWithLossScaleCell",)
"""Rows that read once in each step, on the host, whether to leave the update out."""
DRAWS = ("Dropout", "gpt", "bert")
"""Rows with Dropout: the masks of a GPU are other ones than those of the CPU."""


def run(mode: int, device: str, *names: str) -> dict[str, dict[str, Any]]:
    ended = processes.python(
        PROGRAM, str(mode), device, *names, cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}, timeout=600,
    )
    assert ended.code == 0, ended.err[-3000:]
    return json.loads(ended.out.splitlines()[-1])  # type: ignore[no-any-return]


def check(mode: int, *names: str) -> None:
    on_device, on_host = run(mode, "GPU", *names), run(mode, "CPU", *names)
    assert list(on_device) == list(on_host)
    for name, row in on_device.items():
        expected = {"waits": 1} if name.endswith(READS_OVERFLOW) else {}
        for step, events in zip(row["steps"], row["events"]):
            assert step.pop("operators") > 20, name
            if expected:
                assert step.pop("to_host", 0) <= 1, (name, events)     # a read of one value counts as a copy in some calls
            assert step == expected, (name, events)
        assert all(math.isfinite(loss) for loss in row["losses"]), name
        if not any(word in name for word in DRAWS):
            assert row["losses"] == pytest.approx(on_host[name]["losses"], rel=1e-5), name
        assert not any(step.get("operators") for step in on_host[name]["steps"]), name


@pytest.mark.sample
@pytest.mark.slow
@pytest.mark.parametrize("mode", [1, 0], ids=["pynative", "graph"])
def test_a_few_networks(mode: int) -> None:
    check(mode, "mlp, Adam", "mlp, SGD, dynamic loss scale", "lenet with BatchNorm and Dropout, Adam, list of rates")


@pytest.mark.slow
@pytest.mark.parametrize("mode", [1, 0], ids=["pynative", "graph"])
def test_every_network(mode: int) -> None:
    check(mode)
