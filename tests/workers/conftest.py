"""Tests of several processes: their ranks are forked from one process that has torch loaded (`server.py`)."""
from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import worker_jobs

UNMET = "Gloo connectFullMesh failed"
"""gloo's own error where one of its connections is closed while processes meet."""
SERVER = Path(__file__).resolve().parent / "server.py"


class Workers:
    """Runs a function of a test file by several ranks: `workers(2, function, *arguments)` gives what each of them returned."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def ended(
        self, count: int, function: Callable[..., Any], *arguments: Any, seconds: float = 60.0, **variables: str,
    ) -> list[Any]:
        """What came of each rank, errors too. A variable of the environment that is '<unset>' is taken away."""
        if self.process is None or self.process.poll() is not None:
            plain = {name: value for name, value in os.environ.items() if not name.startswith(("TORCHSPORE_", "MS_", "GLOG_"))}
            self.process = subprocess.Popen([sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=plain)
        assert self.process.stdin is not None and self.process.stdout is not None
        file = inspect.getfile(function)
        limit = seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))     # 24 tests were late beside three other suites
        worker_jobs.write(self.process.stdin, worker_jobs.Job(file, function.__qualname__, count, arguments, limit, variables))
        return worker_jobs.read(self.process.stdout)

    def __call__(self, count: int, function: Callable[..., Any], *arguments: Any, seconds: float = 60.0, **variables: str) -> list[Any]:
        """What each rank returned. Fails with all that was said where one of them raised, died or was late."""
        ends = self.ended(count, function, *arguments, seconds=seconds, **variables)
        if any(UNMET in str(end.error) + str(end.traceback) for end in ends):     # seen once in 15,000 tests, beside another suite
            ends = self.ended(count, function, *arguments, seconds=seconds, **variables)
        bad = [
            f"rank {rank}: {'late' if end.is_late else end.error or f'ended by {end.code}'}\n{end.traceback}\n{end.out}"
            for rank, end in enumerate(ends) if end.is_late or end.error or end.code
        ]
        if bad:
            pytest.fail("\n".join(bad), pytrace=False)
        return [end.value for end in ends]

    def close(self) -> None:
        """Ends the process that forks."""
        if self.process is not None:
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait(10)


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    """Runs functions by several ranks; see `Workers`."""
    runner = Workers()
    yield runner
    runner.close()
