"""Programs that run in forked children of one warm process."""
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from support.processes import Run, environment


class Warm:
    """A process that has the front end imported, for one setting of the environment."""

    def __init__(self, extra: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "forking.py")],
            env=environment({"PYTHONPATH": str(Path(__file__).parent / "programs"), **extra}),      # where programs find `measured`
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, arguments: list[str], cwd: Path) -> Run:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps({"arguments": arguments, "cwd": str(cwd)}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return Run(answer["code"], answer["out"], answer["err"])

    def end(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(30)


@pytest.fixture(scope="session")
def warm() -> Iterator[Callable[..., Run]]:
    """Runs `python -m torchspore ARGUMENTS` in `cwd`, as the fixture `run` does, in milliseconds."""
    processes: dict[tuple[tuple[str, str], ...], Warm] = {}

    def call(*arguments: str | Path, cwd: Path, **extra: str) -> Run:
        key = tuple(sorted(extra.items()))
        if key not in processes:
            processes[key] = Warm(extra)
        return processes[key].run([str(argument) for argument in arguments], cwd)

    yield call
    for process in processes.values():
        process.end()
