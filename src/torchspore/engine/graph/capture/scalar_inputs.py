"""Python numbers that keep changing (a step counter, an epoch in an attribute) become inputs of the graph, where it computes with them.

A number counts as changing once it has had three values. A trace that needs its value (a shape, a branch that can't be a graph's) is
refused; then each value has a graph of its own again.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from torchspore.engine.graph.capture.state import Read
from torchspore.engine.number import MUTABLE, Number, number

VALUES = 3
"""So many different values make a number one that changes."""

Holder = MutableMapping[str, Any]
Key = tuple[int, str]


@dataclass
class _Arguments:
    """The numbers among the arguments of calls of one form."""

    last: tuple[Any, ...]
    values: list[set[Any]] = field(default_factory=list)
    fixed: set[int] = field(default_factory=set)
    lifted: frozenset[int] = frozenset()


class Numbers:
    """What changes, of one Cell or function."""

    def __init__(self) -> None:
        self._arguments: dict[Any, _Arguments] = {}
        self._values: dict[Key, set[Any]] = {}
        self._fixed: dict[Key, Holder] = {}
        self.attributes: dict[Key, tuple[Holder, str]] = {}

    def lifted(self, form: Any, given: tuple[Any, ...]) -> frozenset[int]:
        """Which of the numbers `given`, in calls of this form, are inputs of the graph."""
        found = self._arguments.get(form)
        if found is None:
            marked = frozenset(place for place, value in enumerate(given) if type(value) in MUTABLE)
            found = self._arguments[form] = _Arguments(given, [{value} for value in given], lifted=marked)
        elif found.last != given:
            found.last = given
            for place, value in enumerate(given):
                if place not in found.fixed and place not in found.lifted:
                    found.values[place].add(value)
                    if len(found.values[place]) >= VALUES:
                        found.lifted |= {place}
        return found.lifted

    def fix(self, form: Any) -> None:
        """Is told that a trace needs the values of the numbers that are lifted in calls of this form."""
        found = self._arguments[form]
        found.fixed |= found.lifted
        found.lifted = frozenset()

    def see(self, reads: Iterable[Read]) -> None:
        """Is told which reads are no longer as they were when a graph was captured."""
        for read in reads:
            now = read.now()
            if read.is_attribute and type(now) in (int, float) and type(now) is type(read.value):
                key = (id(read.holder), read.name)
                values = self._values.setdefault(key, set())
                values.update((read.value, now))
                if len(values) >= VALUES:
                    self.lift([(read.holder, read.name)])

    def lift(self, attributes: Iterable[tuple[Holder, str]]) -> bool:
        """Makes these attributes inputs; says whether one was none before."""
        wanted = {(id(holder), name): (holder, name) for holder, name in attributes if (id(holder), name) not in self._fixed}
        new = wanted.keys() - self.attributes.keys()
        self.attributes.update(wanted)
        return bool(new)

    def fix_attributes(self) -> None:
        """Is told that a trace needs the values of the attributes that are lifted."""
        self._fixed.update({key: holder for key, (holder, _) in self.attributes.items()})
        self.attributes.clear()


class OfType:
    """Equal to every number of one type, as `state.freeze` gives it."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def __eq__(self, other: object) -> bool:
        return type(other) is self._kind or (isinstance(other, tuple) and bool(other) and other[0] is self._kind)

    def __hash__(self) -> int:
        return hash(self._kind)


def source(holder: Holder, name: str) -> Callable[[], Any]:
    """What gives the torch tensor of an attribute's number of now."""
    return lambda: number(holder[name])._t


def placed(value: Any, lifted: frozenset[int], made: list[Any]) -> Any:
    """The arguments with a Number in the place of each lifted number; appends the Numbers to `made`. In the order of `key.signature`."""
    count = -1

    def walk(item: Any) -> Any:
        nonlocal count
        kind = type(item)
        if kind is int or kind is float or kind in MUTABLE:
            count += 1
            if count not in lifted:
                return item
            made.append(number(item))
            return made[-1]
        if kind is tuple or kind is list:
            return kind(walk(part) for part in item)
        if kind is dict:
            return {key: walk(part) for key, part in item.items()}
        if isinstance(item, tuple):
            parts = [walk(part) for part in item]
            return kind(*parts) if hasattr(item, "_fields") else kind(parts)
        return item

    return walk(value)


__all__ = ["Number", "Numbers", "OfType", "placed", "source"]
