"""Negative indices and losses on the stand-in that executes late: nothing depends on a kernel that refuses, and nothing waits."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "late_kernels.py"
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")


def run(device: str, mode: int) -> dict[str, Any]:
    ended = processes.python(PROGRAM, device, str(mode), cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)})
    assert ended.code == 0, ended.err[-3000:]
    return json.loads(ended.out.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("mode", [1, pytest.param(0, marks=pytest.mark.slow)], ids=["pynative", "graph"])
def test_values_and_gradients_are_those_of_the_cpu(mode: int) -> None:
    on_device, on_host = run("GPU", mode), run("CPU", 1)
    assert len(on_device) == 11 and on_device == on_host
    assert not any(waits for _, _, waits in on_device.values())
