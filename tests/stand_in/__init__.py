"""A stand-in for an accelerator: torch's device `spore`, whose operators compute on the host and are counted.

`begin()` makes torchspore take it for its GPU. A process has one stand-in, for good: programs that use it run in processes of their own.
With `-p stand_in` pytest runs a suite on it: `python -m pytest -p stand_in tests/parity/test_cases.py`.

What Python would wait for is counted as a wait, and what crosses the bus as a transfer. `docs/architecture.md` describes the modules.
"""
from __future__ import annotations

from typing import Any

from stand_in.backend import begin
from stand_in.counting import counted, counts, events
from stand_in.hazards import faults
from stand_in.operators import failing
from stand_in.streams import late_execution

__all__ = ["begin", "counted", "counts", "events", "failing", "faults", "late_execution"]


def pytest_configure() -> None:
    """Let the tests of this run use the device."""
    import torchspore

    torchspore.install()
    begin()
    from torchspore.context.store import STORE

    STORE.learn_default("device_target", "GPU")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what ran on the device."""
    terminalreporter.write_line(f"stand-in: {dict(counts)}")
