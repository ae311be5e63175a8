"""`mindspore.common._register_for_recompute`: the function with which packages replace recomputation in PyNative mode.

`Cell.recompute()` here draws the same random numbers again in any case, for which packages replace the function; the registered one is not
called.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.public_names import missing

__getattr__ = missing(__name__)


class Registry:
    """Stores a function."""

    def __init__(self) -> None:
        self._function: Callable[..., Any] | None = None

    def register(self, fn: Callable[..., Any]) -> None:
        """Store the function."""
        self._function = fn

    def get(self) -> Callable[..., Any] | None:
        """Return the function, or None."""
        return self._function


recompute_registry = Registry()

__all__ = ["Registry", "recompute_registry"]
