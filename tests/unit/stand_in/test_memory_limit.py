"""Limits and figures of memory on the stand-in: `max_device_memory` refuses in both modes, what is released comes back, figures follow."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "memory_limit.py"
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")
LIMIT = 64


def run(mode: int, is_late: bool) -> dict[str, Any]:
    ended = processes.python(
        PROGRAM, str(mode), str(int(is_late)), cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)})
    assert ended.code == 0, ended.err[-3000:]
    return json.loads(ended.out.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.parametrize(("mode", "is_late"), [(1, False), pytest.param(0, True, marks=pytest.mark.slow)])
def test_a_limit_of_memory(mode: int, is_late: bool) -> None:
    results = run(mode, is_late)
    assert results["one tensor"] == {"allocated": 16, "reserved": 16, "peak": 16, "peak of reserved": 16}
    for name in ("an operator", "a training step"):
        kind, is_both, text = results[name]
        assert (kind, is_both) == ("OutOfMemory", True)
        assert "/programs/memory_limit.py:" in text and "of the 64.0 MiB of max_device_memory='0.0625GB'" in text, name
        assert "16.0 MiB  Float32[4, 1024, 1024]" in text and "hint: raise max_device_memory" in text, name
    assert "64.00 MiB more were requested, and 16.0 MiB" in results["an operator"][2]
    assert results["after it"]["allocated"] == 16                        # a refused tensor takes nothing
    after, emptied = results["after the step"], results["emptied"]
    assert 16 < after["allocated"] < 17 < after["peak"] <= LIMIT and after["reserved"] == after["peak of reserved"] > 17
    assert emptied["allocated"] == emptied["reserved"] == emptied["peak"] == emptied["peak of reserved"] == after["allocated"]
    assert results["a small step"] == [] and results["stats"]
    assert results["released"]["allocated"] < 1 < 17 < results["released"]["reserved"] < 18
