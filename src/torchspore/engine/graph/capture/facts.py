"""What a trace reads of classes, functions and modules beside what stands there: what they are called, which names there are."""
from __future__ import annotations

import abc
import types
from collections.abc import Iterator, Mapping
from typing import Any

from torchspore.engine.graph.capture.answers import Answers
from torchspore.engine.graph.capture.state import View


class Facts(View):
    """What a class or a function says of itself."""

    NAMES = frozenset(("__name__", "__qualname__", "__doc__", "__annotations__", "__module__"))

    def __init__(self, item: Any) -> None:
        self._item = item

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self._item, name, default)

    def __getitem__(self, name: str) -> Any:
        return getattr(self._item, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._item, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self._item, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.NAMES)


class ClassOf(View):
    """The class of a Cell."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def get(self, name: str, default: Any = None) -> Any:
        return type(self._cell)

    def __getitem__(self, name: str) -> Any:
        return type(self._cell)

    def __setitem__(self, name: str, value: Any) -> None:
        self._cell.__class__ = value

    def __delitem__(self, name: str) -> None:
        raise TypeError("A Cell has a class.")

    def __iter__(self) -> Iterator[str]:
        return iter(("__class__",))


REGISTRATIONS = Answers(abc.get_cache_token)
"""How many classes were registered with an abstract one: `isinstance` may say something else after the next."""


def names_in(held: Mapping[str, Any]) -> Answers:
    """Which names stand in a class or a module."""
    return Answers(lambda: tuple(held))


def subclasses(asking: Any) -> Answers | None:
    """What a function written in C is about to tell, where that is the subclasses of a class."""
    if type(asking) is types.BuiltinFunctionType and asking.__name__ == "__subclasses__" and isinstance(asking.__self__, type):
        return Answers(asking)
    return None
