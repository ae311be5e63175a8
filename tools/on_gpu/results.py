"""The result file: one JSON line for each check, appended as soon as the check ends.

A line has `stage` (a letter), `check` (a name), `outcome` (one of OUTCOMES), `seconds`, `detail` (a text) and, for measurements, `values`.
The first line describes the machine: its stage is MACHINE.
"""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

MACHINE = "machine"
PASSED, FAILED, SKIPPED, CRASHED, TIMED_OUT = OUTCOMES = "passed", "failed", "skipped", "crashed", "timed out"
DETAIL = 1500
"""The most characters of a detail; the end of a long one is the interesting part."""


def append(path: Path, stage: str, check: str, outcome: str, seconds: float = 0.0, detail: str = "", **values: Any) -> None:
    """Append a line. Several processes append to one file: a single write to a file opened for appending is atomic."""
    line = {"stage": stage, "check": check, "outcome": outcome, "seconds": round(seconds, 3)}
    if detail:
        line["detail"] = detail[-DETAIL:]
    if values:
        line["values"] = values
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
    finally:
        os.close(descriptor)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file. An incomplete last line, which a killed process wrote, is omitted."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines
