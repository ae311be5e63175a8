"""A stand-in for an accelerator: torch's device `spore`, whose operators compute on the host and are counted.

`begin()` makes torchspore take it for its GPU. A process has one stand-in, for good: programs that use it run in processes of their own.
With `-p stand_in` pytest runs a suite on it: `python -m pytest -p stand_in tests/parity/test_cases.py`. With `STAND_IN_LATE=1` it executes
late.

What Python would wait for is counted as a wait, and what crosses the bus as a transfer. `docs/architecture.md` describes the modules.
"""
from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

import pytest

from stand_in.backend import begin
from stand_in.counting import counted, counts, events, places
from stand_in.hazards import faults
from stand_in.operators import failing
from stand_in.skipped import reason_for
from stand_in.streams import late_execution

__all__ = ["begin", "counted", "counts", "events", "failing", "faults", "late_execution"]

_late = ExitStack()
"""Holds the late mode of a test run."""


def pytest_configure() -> None:
    """Let the tests of this run use the device."""
    import torchspore

    torchspore.install()
    begin()
    from torchspore.context.store import STORE

    STORE.learn_default("device_target", "GPU")
    if os.environ.get("STAND_IN_LATE"):
        _late.enter_context(late_execution())


def pytest_unconfigure() -> None:
    """Let queued work run while Python is still there."""
    _late.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that are not about an accelerator."""
    for item in items:
        if reason := reason_for(item.nodeid):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail a test in whose work streams did not wait for each other."""
    if faults:
        text = "\n".join(faults[:10])
        faults.clear()
        pytest.fail(f"{item.nodeid} on the stand-in accelerator:\n{text}", pytrace=False)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what ran on the device, and append the lines that waited to the file that STAND_IN_WAITS names."""
    if file := os.environ.get("STAND_IN_WAITS"):
        with open(file, "a", encoding="utf-8") as waits:
            waits.writelines(f"{place}\n" for place in places)
    terminalreporter.write_line(f"stand-in: {dict(counts)}")
