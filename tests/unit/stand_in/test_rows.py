"""A data pipeline's rows reach the stand-in from pinned memory on a separate stream: equal losses, no wait of Python, no fault."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "rows.py"
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")


def test_rows_of_a_training() -> None:
    results = []
    for device in ("GPU", "CPU"):
        ended = processes.python(PROGRAM, device, cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}, timeout=300)
        assert ended.code == 0, ended.err[-3000:]
        results.append(json.loads(ended.out.splitlines()[-1]))
    for on_device, on_host in zip(*results):
        assert on_device["losses"] == pytest.approx(on_host["losses"], rel=1e-5) and len(on_device["losses"]) == 12
        assert on_device["faults"] == []
        assert on_device["waits"] == 0, on_device["events"]
        copies = [event for event in on_device["events"] if event.startswith("to_device")]
        assert len(copies) in (8, 10) and all("row_transfer.py" in copy for copy in copies)       # the first next() may send the second row
