"""A copy of a Python value: compared by contents at any depth, and restored if a trace changed the value in place."""
from __future__ import annotations

import array
import contextvars
import functools
import logging
import operator
import random
import types
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from torchspore.engine.front_end import FRONT
from torchspore.engine.random.operator_streams import OperatorStream
from torchspore.engine.tensors.tensor import TensorBase
from torchspore.graph.capture.snapshot_nodes import (
    Data,
    Entries,
    Items,
    Members,
    Node,
    Object,
    Snapshot,
    Table,
    Unwatchable,
    Unwatched,
    constant,
)
from torchspore.graph.capture.value_kinds import MISSING, PLAIN, attributes, hides_state, is_constant, is_exhaustible, is_settled, slots_of

__all__ = ["CACHED", "MISSING", "Node", "Object", "Unwatchable", "Walk", "constant", "is_constant", "is_settled"]

_DEEP = 100
"""Levels of containers in containers that are looked into, at most: each takes several of Python's frames, here and at each call."""

_MANY = 100_000
"""So many objects are looked into for one thing that is read, at most."""


class Draws(Node):
    """A source of random numbers: its position matters only once the trace draws from it."""

    __slots__ = ("_state",)

    def __init__(self, value: Any, take: Callable[[Any], Node]) -> None:
        super().__init__(value)
        self._state = _stands(value)

    def restore(self) -> bool:
        if _has_equal_state(_stands(self.value), self._state):
            return False
        value: Any = self.value
        if isinstance(value, random.Random):
            value.setstate(self._state)
        else:
            getattr(value, "bit_generator", getattr(value, "_bit_generator", value)).state = self._state
        return True


def _stands(value: Any) -> Any:
    if isinstance(value, random.Random):
        return None if isinstance(value, random.SystemRandom) else value.getstate()
    return getattr(value, "bit_generator", getattr(value, "_bit_generator", value)).state


def _has_equal_state(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_has_equal_state(a[key], b[key]) for key in a)
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else bool(a == b)


class Variable(Node):
    """A context variable, by its value in this context."""

    __slots__ = ("_inner", "_old_value")

    def __init__(self, value: Any, take: Callable[[Any], Node]) -> None:
        super().__init__(value)
        self._old_value = _current(value)
        self._inner = take(self._old_value)

    def holds(self, now: Any) -> bool:
        return now is self.value and self._inner.holds(_current(now))

    def restore(self) -> bool:
        value: Any = self.value
        if _current(value) is self._old_value:
            return False
        value.set(self._old_value)
        return True


def _current(variable: Any) -> Any:
    try:
        return variable.get()
    except LookupError:
        return MISSING


class Cached(Node):
    """The result of `functools.lru_cache`: while nothing is added and nothing cleared, it stays the same."""

    __slots__ = ("_counts",)

    def __init__(self, value: Any, take: Callable[[Any], Node]) -> None:
        super().__init__(value)
        self._counts = _counts(value)
        take(getattr(value, "__wrapped__", None))

    def holds(self, now: Any) -> bool:
        return now is self.value and _counts(now) == self._counts


def _counts(cached: Any) -> tuple[int, int]:
    info = cached.cache_info()
    return info.misses, info.currsize


CACHED = type(functools.lru_cache(_counts))
_RANDOM = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)

_MAKERS: list[tuple[tuple[type, ...], Callable[[Any], Any]]] = [
    ((types.MethodType,), lambda v: (v.__func__, v.__self__)),
    ((functools.partial,), lambda v: (v.func, v.args, v.keywords)),
    ((functools.partialmethod,), lambda v: (v.func, v.args, v.keywords)),
    ((types.MappingProxyType,), dict),
    ((type({}.keys()), type({}.values()), type({}.items())), lambda v: dict(v.mapping)),
    ((operator.methodcaller,), lambda v: v.__reduce__()),
    ((types.BuiltinFunctionType, types.MethodWrapperType), lambda v: (v.__name__, v.__self__)),
]


_KINDS: list[tuple[Any, Callable[[Any, Callable[[Any], Node]], Node]]] = [
    (_RANDOM, Draws), (OperatorStream, lambda value, take: Node(value)), (contextvars.ContextVar, Variable), (CACHED, Cached),
]


class Walk:
    """Takes a snapshot; `nodes` maps the ids of values to the first node of each."""

    def __init__(self, nodes: dict[int, Node], counts_by_name: Callable[[Any], bool] = lambda value: False) -> None:
        self._nodes, self._seen, self._depth, self._counts_by_name = nodes, dict[int, None](), 0, counts_by_name
        self.objects: list[Object] = []
        """The objects of whose attributes only those count that are named by what runs."""
        self.unwatched: list[tuple[str, str]] = []
        """Of their attributes those that can't be watched, and why."""
        self.met: list[Any] = []
        """The modules, functions, Tensors and Cells that were visited, and the classes: those visited and those of visited objects."""

    def take(self, value: Any) -> Node:
        """The node of `value`. Raises Unwatchable."""
        if is_constant(value):
            self._meet(value)
            return constant(value)
        if id(value) in self._seen:
            return Node(value)
        if len(self._seen) >= _MANY:
            raise Unwatchable(f"holds more than {_MANY:,} objects, too many to be compared at each call")
        if is_exhaustible(value):
            raise Unwatchable(f"is an iterator ({type(value).__name__}): nothing shows how far it is")
        if self._depth >= _DEEP:
            raise Unwatchable(f"nests more than {_DEEP} levels deep, too deep to be compared at each call")
        self._seen[id(value)] = None
        self.met.append(value if isinstance(value, CACHED) else type(value))
        self._depth += 1
        node = self._node(value)
        self._depth -= 1
        self._nodes.setdefault(id(value), node)
        return node

    def seen(self) -> Iterable[int]:
        """Return the ids of the visited values."""
        return self._seen

    def _meet(self, value: Any) -> None:
        if isinstance(value, tuple):
            for item in value:
                self._meet(item)
        elif isinstance(value, (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)):
            self.met.append(value)
        elif type(value) not in PLAIN:
            self.met += (value, type(value)) if isinstance(value, (TensorBase, logging.Logger, FRONT.cell)) else (type(value),)

    def _node(self, value: Any) -> Node:
        kind: Any = type(value)
        for kinds, of in _MAKERS:
            if isinstance(value, kinds):
                return Snapshot(value, self.take, of)
        for kinds, make in _KINDS:
            if isinstance(value, kinds):
                return make(value, self.take)
        itself = self._container(value)
        if itself is None and hides_state(kind):
            raise Unwatchable(f"is a {kind.__name__}: nothing shows whether it has changed")
        if itself is not None and (kind in (list, tuple, dict, set, np.ndarray, deque) or attributes(value) is None):
            return itself
        if attributes(value) is not None or slots_of(value):
            if itself is None and not slots_of(value) and self._counts_by_name(value):
                self.objects.append(node_object := Object(value, self._take_if_watchable(value)))
                return node_object
            return Object(value, self.take, itself)
        return itself or Node(value)

    def _take_if_watchable(self, owner: Any) -> Callable[[Any], Node]:
        """`take` for the attributes of `owner`, that puts off the error of one that can't be watched."""

        def take(value: Any) -> Node:
            seen, depth = len(self._seen), self._depth
            try:
                return self.take(value)
            except Unwatchable as reason:
                while len(self._seen) > seen:
                    self._seen.popitem()
                self._depth = depth
                self.unwatched += [(name, str(reason)) for name, item in (attributes(owner) or {}).items() if item is value]
                return Unwatched(value)

        return take

    def _container(self, value: Any) -> Node | None:
        if isinstance(value, (list, tuple, deque)):
            return Items(value, self.take)
        if isinstance(value, dict):
            return Entries(value, self.take)
        if isinstance(value, (set, frozenset)):
            return Members(value, self.take)
        if isinstance(value, np.ndarray):
            return Table(value, self.take) if value.dtype.hasobject else Data(value, self.take)
        return Data(value, self.take) if isinstance(value, (bytearray, array.array, memoryview)) else None
