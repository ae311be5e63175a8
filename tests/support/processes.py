"""Programs that run in separate processes."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
USES_STAND_IN = os.environ.get("TESTS_STAND_IN") == "1"
"""True if programs run with the stand-in accelerator as their GPU (tests/stand_in): `TESTS_STAND_IN=1 pytest tests/gpu`."""


@dataclass(frozen=True)
class Run:
    """The exit status and the output of a program."""

    code: int
    out: str
    err: str


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without the variables that change a program's behaviour, and with `extra`."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("TORCHSPORE_", "MS_", "GLOG_"))}
    stand_in = {"PYTHONPATH": f"{TESTS / 'stand_in_site'}{os.pathsep}{TESTS}"} if USES_STAND_IN else {}
    return {**plain, "COLUMNS": "120", "TORCHSPORE_PATIENCE": "1000", "TORCHSPORE_WAIT": "1", **stand_in, **(extra or {})}


def torchspore(*arguments: str | Path, cwd: Path, extra: Mapping[str, str] | None = None, timeout: float = 120) -> Run:
    """Run `python -m torchspore ARGUMENTS` in the folder `cwd`."""
    return python("-m", "torchspore", *arguments, cwd=cwd, extra=extra, timeout=timeout)


def python(*arguments: str | Path, cwd: Path, extra: Mapping[str, str] | None = None, timeout: float = 120) -> Run:
    """Run `python ARGUMENTS` in the folder `cwd`."""
    command = [sys.executable, *map(str, arguments)]
    ended = subprocess.run(command, cwd=cwd, env=environment(extra), capture_output=True, text=True, timeout=timeout)
    return Run(ended.returncode, ended.stdout, ended.stderr)
