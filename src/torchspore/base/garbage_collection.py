"""Pauses of the garbage collection."""
from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Disable automatic garbage collection in the block.

    A capture would take a `__del__` for traced code, and undo it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def import_without_collections() -> Iterator[None]:
    """Disable automatic garbage collection in a block that imports, and move the new objects to the oldest generation.

    An import creates many objects and little garbage: collections take up to half of its time. The first allocation after it would start
    a collection that visits all of them. The oldest generation receives them without a visit if nothing is frozen.
    """
    with garbage_collection_paused():
        yield
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()
