"""Python numbers that change (a loss scale, a step counter, an epoch in an attribute) become inputs of the graph that computes with them.

A number is tried as an input where its value is not written at the call, or code that runs assigns its attribute, and at its second value.
A trace that needs the value (a shape, a branch) drops the trial and runs again with the value. After three values a number counts as
changing, and branches on it may become part of the graph; where the graph still needs the value, each value has a graph of its own.
"""
from __future__ import annotations

import dis
import functools
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from torchspore.base.frames import user_frame_object
from torchspore.engine.tensors.mutable_containers import MutableDict, MutableList
from torchspore.engine.tensors.number import MUTABLE, is_large, number
from torchspore.engine.tensors.tree import like
from torchspore.graph.capture.scalar_inputs import Holder
from torchspore.graph.capture.state import Read

VALUES = 3
"""So many different values make a number one that changes, for which branches are part of the graph."""

Key = tuple[int, str]


@dataclass
class _Arguments:
    """The numbers among the arguments of calls of one form."""

    last: tuple[Any, ...]
    values: list[set[Any]] = field(default_factory=list)
    fixed: set[int] = field(default_factory=set)
    lifted: frozenset[int] = frozenset()
    tried: frozenset[int] = frozenset()
    """Those that are inputs as long as no trace needs their values."""
    now: frozenset[int] = frozenset()
    """Those of `lifted` and `tried` that a graph can compute with in the call of now."""


class NumberInputs:
    """The numbers of one Cell or function that change. `tries`: whether numbers become inputs before they had three values."""

    def __init__(self, tries: bool = True) -> None:
        self._tries = tries
        self._arguments: dict[Any, _Arguments] = {}
        self._values: dict[Key, set[Any]] = {}
        self._fixed: dict[Key, Holder] = {}
        self.attributes: dict[Key, tuple[Holder, str]] = {}
        self.tried: dict[Key, tuple[Holder, str]] = {}
        """Attributes that are inputs as long as no trace needs their values."""
        self._needed_attributes: dict[Key, Holder] = {}
        self._needed: set[tuple[Any, int]] = set()
        """The numbers among arguments, by function and place, whose values a trace needed."""

    def lifted(self, form: Any, values: tuple[Any, ...]) -> frozenset[int]:
        """Return which of the numbers `values`, in calls of this form, are inputs of the graph."""
        numbers = self._arguments.get(form)
        if numbers is None:
            marked = frozenset(index for index, value in enumerate(values) if type(value) in MUTABLE)
            literals = literals_of_call() if len(marked) < len(values) else frozenset()
            tried = frozenset(
                index for index, value in enumerate(values)
                if self._tries and index not in marked and (form[0], index) not in self._needed and (type(value), value) not in literals
            )
            numbers = self._arguments[form] = _Arguments(values, [{value} for value in values], lifted=marked, tried=tried)
        elif numbers.last == values:
            return numbers.now
        numbers.last = values
        for index, value in enumerate(values):
            if index not in numbers.fixed and index not in numbers.lifted:
                numbers.values[index].add(value)
                if len(numbers.values[index]) >= VALUES:
                    numbers.lifted |= {index}
                    numbers.tried -= {index}
                elif self._tries and len(numbers.values[index]) > 1 and (form[0], index) not in self._needed:
                    numbers.tried |= {index}
        numbers.now = _small(numbers.lifted | numbers.tried, values)
        return numbers.now

    def is_trial(self, form: Any) -> bool:
        """Return whether a number is an input of calls of this form only as long as no trace needs its value."""
        numbers = self._arguments.get(form)
        return numbers is not None and not numbers.tried.isdisjoint(numbers.now)

    def fix(self, form: Any) -> None:
        """Record that a trace needs the values of the lifted numbers in calls of this form."""
        numbers = self._arguments[form]
        if numbers.tried:
            self._needed.update((form[0], index) for index in numbers.tried)
            numbers.tried, numbers.now = frozenset(), _small(numbers.lifted, numbers.last)
            return
        self._needed.update((form[0], index) for index in numbers.lifted)
        numbers.fixed |= numbers.lifted
        numbers.lifted = numbers.now = frozenset()

    def see(self, reads: Iterable[Read]) -> None:
        """Record which reads differ from those at the capture of a graph."""
        for read in reads:
            now = read.now()
            if read.is_attribute and type(now) in (int, float) and type(now) is type(read.value):
                key = (id(read.holder), read.name)
                values = self._values.setdefault(key, set())
                values.update((read.value, now))
                if len(values) >= VALUES and not is_large(now):
                    self.tried.pop(key, None)
                    self.lift([(read.holder, read.name)])
                else:
                    self.try_attributes([(read.holder, read.name)])

    def inputs(self) -> dict[Key, tuple[Holder, str]]:
        """The attributes that are inputs of the next trace."""
        return {**self.attributes, **self.tried}

    def try_attributes(self, attributes: Iterable[tuple[Holder, str]]) -> None:
        """Make these attributes inputs as long as no trace needs their values."""
        for holder, name in attributes if self._tries else ():
            key = (id(holder), name)
            if not any(key in keys for keys in (self._needed_attributes, self._fixed, self.attributes)):
                self.tried[key] = (holder, name)

    def drop_trial(self) -> bool:
        """Called after a trace; return whether attributes were tried as inputs, which the next trace reads as constants."""
        self._needed_attributes.update({key: holder for key, (holder, _) in self.tried.items()})
        was_trial = bool(self.tried)
        self.tried.clear()
        return was_trial

    def lift(self, attributes: Iterable[tuple[Holder, str]]) -> bool:
        """Make these attributes inputs; return whether one was not an input before."""
        candidates = {(id(holder), name): (holder, name) for holder, name in attributes if (id(holder), name) not in self._fixed}
        new = candidates.keys() - self.attributes.keys()
        self.attributes.update(candidates)
        return bool(new)

    def fix_attributes(self) -> None:
        """Record that a trace needs the values of the lifted attributes."""
        self._fixed.update({key: holder for key, (holder, _) in self.attributes.items()})
        self.attributes.clear()


def literals_of_call() -> frozenset[tuple[type, Any]]:
    """The numbers that the user's line which calls now has as constants, with their types."""
    frame = user_frame_object()
    if frame is None:
        return frozenset()
    return _literals_at(frame.f_code, frame.f_lineno)


@functools.lru_cache(maxsize=1024)
def _literals_at(code: CodeType, line: int) -> frozenset[tuple[type, Any]]:
    numbers: set[tuple[type, Any]] = set()
    current_line = code.co_firstlineno
    starts = {offset: number for offset, number in dis.findlinestarts(code) if number is not None}
    for step in dis.get_instructions(code):
        current_line = starts.get(step.offset, current_line)
        if current_line == line and step.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
            constants = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            numbers.update((type(value), value) for value in constants if type(value) in (int, float))
    return frozenset(numbers)


def _small(lifted: frozenset[int], values: tuple[Any, ...]) -> frozenset[int]:
    """Less the ints that are too large for 64 bits."""
    if not any(is_large(values[index]) for index in lifted):
        return lifted
    return frozenset(index for index in lifted if not is_large(values[index]))


def placed(value: Any, lifted: frozenset[int], numbers: list[Any]) -> Any:
    """Return the arguments with a Number in place of each lifted number; append the Numbers to `numbers`, in the order of `key.signature`.
    """
    count = -1

    def walk(item: Any) -> Any:
        nonlocal count
        kind = type(item)
        if kind is int or kind is float or kind in MUTABLE:
            count += 1
            if count not in lifted:
                return item
            numbers.append(number(item))
            return numbers[-1]
        if kind is list or isinstance(item, (tuple, MutableList)):
            return like(item, [walk(part) for part in item])
        if kind is dict or kind is OrderedDict or kind is MutableDict:
            return like(item, [walk(part) for part in item.values()])
        return item

    return walk(value)
