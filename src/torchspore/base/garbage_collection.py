"""Pauses of the garbage collection."""
from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Disable automatic garbage collection in the block.

    A capture would take a `__del__` for traced code, and undo it. An import creates many objects and little garbage, and collections take
    up to half of its time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
