"""What PyNative mode does around each operator."""

from __future__ import annotations

from torchspore.context.effects import Outcome
from torchspore.engine import device

# Read by the dispatcher after each operator: whether to wait until the device has finished it.
wait_for_each = False


def synchronize(wanted: bool) -> Outcome:
    """Makes `pynative_synchronize` act: each operator is waited for, so that an error appears at the line that caused it."""
    global wait_for_each
    if not device.has_queue():
        wait_for_each = False
        return Outcome.no_effect("operators on the CPU run in the caller's thread")
    wait_for_each = wanted
    return Outcome.applied("each operator is waited for" if wanted else "operators run ahead of Python")
