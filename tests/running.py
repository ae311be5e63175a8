"""Runs programs in processes of their own."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent
USES_STAND_IN = os.environ.get("TESTS_STAND_IN") == "1"
"""Whether programs run with the stand-in accelerator as their GPU (tests/stand_in.py): `TESTS_STAND_IN=1 pytest tests/gpu`."""


@dataclass(frozen=True)
class Run:
    """What came of a program that ran in a process of its own."""

    code: int
    out: str
    err: str


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would change a program's behaviour, and with `extra`."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("TORCHSPORE_", "MS_", "GLOG_"))}
    stand_in = {"PYTHONPATH": f"{TESTS / 'stand_in_site'}{os.pathsep}{TESTS}"} if USES_STAND_IN else {}
    return {**plain, "COLUMNS": "120", "TORCHSPORE_PATIENCE": "1000", **stand_in, **(extra or {})}


def torchspore(*arguments: str | Path, cwd: Path, extra: Mapping[str, str] | None = None, timeout: float = 120) -> Run:
    """Runs `python -m torchspore ARGUMENTS` in the folder `cwd`."""
    return python("-m", "torchspore", *arguments, cwd=cwd, extra=extra, timeout=timeout)


def python(*arguments: str | Path, cwd: Path, extra: Mapping[str, str] | None = None, timeout: float = 120) -> Run:
    """Runs `python ARGUMENTS` in the folder `cwd`."""
    command = [sys.executable, *map(str, arguments)]
    ended = subprocess.run(command, cwd=cwd, env=environment(extra), capture_output=True, text=True, timeout=timeout)
    return Run(ended.returncode, ended.stdout, ended.stderr)
