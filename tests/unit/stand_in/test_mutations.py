"""Faults that are put into torchspore's own code, a line each: the stand-in reports every one, and nothing without them."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "mutations.py"
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")
COUNTS = {
    "a read of a value": {"waits": 1}, "a copy to the host": {"to_host": 1, "waits": 1},
    "a tensor of the host that is moved": {"to_device": 1, "waits": 1},
}
WRONG_STREAMS = (
    "a copy out that does not wait for the values", "a copy out on the stream of the program, whose end is marked on another one",
    "a copy back that does not wait for the copy out", "values that are used before they are back",
)
RELEASED_MEMORY = (
    "memory that moves out is released", "memory that came back is released", "memory of a row is released",
    "memory on a stream of the program",
)
ROWS_BEFORE_ARRIVAL = "rows that are used before they arrive"


@pytest.mark.sample
@pytest.mark.slow
def test_a_fault_in_the_code_is_reported() -> None:
    ended = processes.python(PROGRAM, cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}, timeout=600)
    assert ended.code == 0, ended.err[-3000:]
    results: dict[str, Any] = json.loads(ended.out.splitlines()[-1])
    names = {*COUNTS, *WRONG_STREAMS, *RELEASED_MEMORY, ROWS_BEFORE_ARRIVAL, "an operand of the host"}
    assert not any(report for name, report in results.items() if name not in names)              # the code as it is
    assert {name: results[name] for name in COUNTS} == COUNTS
    assert "expected values on one device, got spore:0 and cpu." in results["an operand of the host"]["error"]
    for name in WRONG_STREAMS:
        assert results[name] and all("and does not wait for it" in fault for fault in results[name]), name
        assert "/src/torchspore/engine/memory/backing_stores.py:" in results[name][0], name
    assert results[ROWS_BEFORE_ARRIVAL] and all("and does not wait for it" in fault for fault in results[ROWS_BEFORE_ARRIVAL])
    for name in RELEASED_MEMORY:
        assert results[name] and all("record_stream was not called" in fault for fault in results[name]), name
