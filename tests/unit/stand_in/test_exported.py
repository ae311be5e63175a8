"""A network that is exported on one device runs on another."""
from __future__ import annotations

from pathlib import Path

import pytest
from stand_in import guard
from support import processes

TESTS = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "exported.py"
pytestmark = pytest.mark.skipif(bool(guard.why_not()), reason=guard.why_not() or "it can be built")


def run(*arguments: str) -> str:
    ended = processes.python(PROGRAM, *arguments, cwd=TESTS, extra={"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)})
    assert ended.code == 0, ended.err[-3000:]
    return ended.out.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("first,second", [("CPU", "GPU"), ("GPU", "CPU"), ("GPU", "GPU")])
def test_a_file_of_one_device_runs_on_another(first: str, second: str, tmp_path: Path) -> None:
    file = str(tmp_path / "net.mindir")
    assert run("write", first, file) == run("read", second, file)
