"""Python numbers that keep changing (a step counter, an epoch in an attribute) become inputs of the graph, where it computes with them.

A number counts as changing once it has had three values. A trace that needs its value (a shape, a branch that can't be a graph's) is
refused; then each value has a graph of its own again.
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from torchspore.engine.graph.capture.state import Read
from torchspore.engine.number import MUTABLE, Number, is_large, number
from torchspore.engine.tree import like

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
    now: frozenset[int] = frozenset()
    """Those of `lifted` that a graph can compute with in the call of now."""


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
            found = self._arguments[form] = _Arguments(given, [{value} for value in given], lifted=marked, now=marked)
            found.now = _small(marked, given)
        elif found.last != given:
            found.last = given
            for place, value in enumerate(given):
                if place not in found.fixed and place not in found.lifted:
                    found.values[place].add(value)
                    if len(found.values[place]) >= VALUES:
                        found.lifted |= {place}
            found.now = _small(found.lifted, given)
        return found.now

    def fix(self, form: Any) -> None:
        """Is told that a trace needs the values of the numbers that are lifted in calls of this form."""
        found = self._arguments[form]
        found.fixed |= found.lifted
        found.lifted = found.now = frozenset()

    def see(self, reads: Iterable[Read]) -> None:
        """Is told which reads are no longer as they were when a graph was captured."""
        for read in reads:
            now = read.now()
            if read.is_attribute and type(now) in (int, float) and type(now) is type(read.value):
                key = (id(read.holder), read.name)
                values = self._values.setdefault(key, set())
                values.update((read.value, now))
                if len(values) >= VALUES and not is_large(now):
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


def _small(lifted: frozenset[int], given: tuple[Any, ...]) -> frozenset[int]:
    """Less the ints that are too large for 64 bits."""
    if not any(is_large(given[place]) for place in lifted):
        return lifted
    return frozenset(place for place in lifted if not is_large(given[place]))


class OfType:
    """A snapshot that every number of one type is like, but for ints that are too large to be computed with in 64 bits."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def holds(self, now: Any) -> bool:
        """Whether `now` is such a number."""
        return type(now) is self._kind and not is_large(now)


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
        if kind is list or isinstance(item, tuple):
            return like(item, [walk(part) for part in item])
        if kind is dict or kind is OrderedDict:
            return like(item, [walk(part) for part in item.values()])
        return item

    return walk(value)


__all__ = ["Number", "Numbers", "OfType", "placed", "source"]
