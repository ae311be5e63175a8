"""What a trace reads of classes, functions and modules beside what stands there: what they are called, which names there are."""
from __future__ import annotations

import abc
import types
from collections.abc import Mapping
from typing import Any

from torchspore.engine.graph.capture.answers import Answers
from torchspore.engine.graph.capture.state import Named


class Facts(Named):
    """What a class or a function says of itself."""

    NAMES = frozenset(("__name__", "__qualname__", "__doc__", "__annotations__", "__module__"))


class ClassOf(Named):
    """The class of a Cell, asked of Python: a trace would hear of what is asked of the Cell."""

    NAMES = frozenset(("__class__",))

    def get(self, name: str, default: Any = None) -> Any:
        return type(self._item)

    def __getitem__(self, name: str) -> Any:
        return type(self._item)


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
