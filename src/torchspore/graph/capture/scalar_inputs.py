"""A Python number that is an input of a graph: where its present value is read, and which values the graph serves."""
from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

from torchspore.engine.tensors.number import is_large, number

Holder = MutableMapping[str, Any]


class OfType:
    """A snapshot that every number of one type is like, but for ints that are too large to be computed with in 64 bits."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def holds(self, now: Any) -> bool:
        """Return whether `now` is such a number."""
        return type(now) is self._kind and not is_large(now)


def source(holder: Holder, name: str) -> Callable[[], Any]:
    """Return a function that returns the torch tensor of an attribute's present number."""
    return lambda: number(holder[name])._t
