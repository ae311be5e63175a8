"""Protection of a block of code against Ctrl-C."""
from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def postponed() -> Iterator[None]:
    """Postpone the first Ctrl-C until the block has ended; the second one interrupts it. Only the main thread receives Ctrl-C."""
    previous_handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous_handler):
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []

    def postpone(number: int, frame: FrameType | None) -> None:
        waiting.append((number, frame))
        if len(waiting) > 1:
            previous_handler(number, frame)

    signal.signal(signal.SIGINT, postpone)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)
        if len(waiting) == 1:
            previous_handler(*waiting[0])
