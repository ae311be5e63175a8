"""Records which properties of classes, functions and modules a trace reads, apart from their members: names, lists of names."""
from __future__ import annotations

import abc
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

from torchspore.graph.capture.ambient_state.queries import Answers
from torchspore.graph.capture.state import Named, View


class TypeFacts(Named):
    """The properties of a class or a function."""

    NAMES = frozenset(("__name__", "__qualname__", "__doc__", "__annotations__", "__module__"))


class ClassOf(Named):
    """The class of a Cell, read through Python: a trace would record a read through the Cell."""

    NAMES = frozenset(("__class__",))

    def get(self, name: str, default: Any = None) -> Any:
        return type(self._item)

    def __getitem__(self, name: str) -> Any:
        return type(self._item)


class Registrations(View):
    """The classes that are registered with an abstract class or with its subclasses: `isinstance` depends on them.

    Classes of modules that are imported later do not count: the trace met no object of them. Imports of libraries register such classes at
    any time (Inductor's import, while the graph is compiled), and the graph must survive that.
    """

    def __init__(self, cls: abc.ABCMeta) -> None:
        self._class, self._modules = cls, frozenset(sys.modules)
        self._token: object = None
        self._registered: frozenset[tuple[type, type]] = frozenset()

    def get(self, name: str, default: Any = None) -> Any:
        """Pairs of an abstract class and a class registered with it; the same object while they are the same."""
        token = abc.get_cache_token()
        if token != self._token:
            registered = frozenset(pair for pair in _registered_with(self._class, set()) if pair[1].__module__ in self._modules)
            self._token = token
            if registered != self._registered:
                self._registered = registered
        return self._registered

    def __getitem__(self, name: str) -> Any:
        return self.get(name)

    def __setitem__(self, name: str, value: Any) -> None:
        """Does nothing: Python can't undo a registration."""

    def __delitem__(self, name: str) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(("",))


def _registered_with(cls: type, visited: set[type]) -> Iterator[tuple[type, type]]:
    """The pairs (abstract class, registered class) of `cls`, of its subclasses, and of the classes registered with them."""
    if cls in visited:
        return
    visited.add(cls)
    below: list[type] = list(type.__subclasses__(cls))
    if isinstance(cls, abc.ABCMeta):
        for reference in abc._get_dump(cls)[0]:  # type: ignore[attr-defined]
            registered = reference()
            if registered is not None:
                yield cls, registered
                below.append(registered)
    for other in below:
        yield from _registered_with(other, visited)


def names_in(members: Mapping[str, Any]) -> Answers:
    """Return the names that a class or a module defines."""
    return Answers(lambda: tuple(members))


def subclasses(asking: Any) -> Answers | None:
    """Return the answer of a function written in C that is about to list the subclasses of a class."""
    if type(asking) is types.BuiltinFunctionType and asking.__name__ == "__subclasses__" and isinstance(asking.__self__, type):
        return Answers(asking)
    return None
