"""What every test may use."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import torchspore

torchspore.install()


@dataclass(frozen=True)
class Run:
    """What came of a program that ran in a process of its own."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    """Runs `python -m torchspore ARGUMENTS` in an empty folder, without the environment's TORCHSPORE_ and MS_ variables."""

    def call(*arguments: str | Path, environment: Mapping[str, str] | None = None, cwd: Path = tmp_path, timeout: float = 120) -> Run:
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("TORCHSPORE_", "MS_", "GLOG_"))}
        command = [sys.executable, "-m", "torchspore", *map(str, arguments)]
        ended = subprocess.run(
            command, cwd=cwd, env={**plain, "COLUMNS": "120", **(environment or {})}, capture_output=True, text=True, timeout=timeout
        )
        return Run(ended.returncode, ended.stdout, ended.stderr)

    return call
