"""Counts of what the device does: operators, transfers, and waits of Python for the device."""
from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from torchspore.base.frames import is_torchspore_file, is_user_file

counts: Counter[str] = Counter()
"""`operators` that ran on the device, `to_device` and `to_host` transfers, and `waits`: reads of values, blocking transfers,
synchronizations."""
events: list[str] = []
"""Each wait and each transfer, in order, with the lines of torchspore and of the program."""
places: Counter[str] = Counter()
"""How often each line of torchspore waited, by reason: `nonzero at /.../ops/search.py:3`, over the whole process."""


def count_wait(reason: str) -> None:
    """Count a wait of Python for the device."""
    counts["waits"] += 1
    text = f"{reason} at {describe_caller()}"
    places[text.partition(" for ")[0]] += 1
    _note(text)


def count_transfer(direction: str) -> None:
    """Count a transfer; `direction` is `to_device` or `to_host`."""
    counts[direction] += 1
    _note(f"{direction} at {describe_caller()}")


def describe_caller() -> str:
    """Return the innermost line of torchspore that is running, and the innermost line of the program."""
    frames: list[str] = []
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_torchspore_file(file) and not frames:
            frames.append(f"{file}:{frame.f_lineno}")
        elif is_user_file(file):
            frames.append(f"{file}:{frame.f_lineno}")
            break
        if frame.f_back is None:
            break
        frame = frame.f_back
    return " for ".join(frames) or "no line of a program"


def _note(text: str) -> None:
    events.append(text)
    del events[:-10_000]


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Yield a counter that holds after the block what the block did to the device."""
    counts.clear()
    events.clear()
    result: Counter[str] = Counter()
    yield result
    result.update(counts)
