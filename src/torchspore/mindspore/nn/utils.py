"""`mindspore.nn.utils`."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torchspore.mindspore.common import initializer


@contextmanager
def no_init_parameters() -> Iterator[None]:
    """Context in which `initializer` does not fill Parameters: they are zeros, because a checkpoint will set their values."""
    before = initializer.fills
    initializer.fills = False
    try:
        yield
    finally:
        initializer.fills = before


__all__ = ["no_init_parameters"]
