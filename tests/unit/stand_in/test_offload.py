"""Values in the host's memory on the stand-in that executes late: equal losses, no fault of streams or memory, no wait."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.sample
@pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")
def test_values_in_the_hosts_memory() -> None:
    program = Path(__file__).with_name("programs") / "offload.py"
    ended = processes.python(program, cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}, timeout=300)
    assert ended.code == 0, ended.err[-3000:]
    rows = json.loads(ended.out.splitlines()[-1])
    plain = rows["nothing, mode 1"]
    assert len(rows) == 12 and (plain["moved"], plain["waits"]) == (0, 0)
    for name, row in rows.items():
        assert row["losses"] == plain["losses"], name
        assert row["faults"] == [], name
        assert (row["moved"] > 1_000_000) is not name.startswith("nothing"), name
        # Python waits for copies to memory that is not pinned, and to disks.
        assert (row["waits"] > 0) is ("other" in name or "disk" in name), (name, row["events"][:3])
