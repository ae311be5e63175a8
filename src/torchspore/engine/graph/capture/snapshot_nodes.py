"""The nodes of a snapshot: what one container, array or object was. The quick way through compares items by identity, a loop in C."""
from __future__ import annotations

import array
import datetime
import decimal
import fractions
import functools
import io
import logging
import math
import operator
import pathlib
import re
import struct
import sys
import threading
import types
import uuid
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from torchspore.engine.front import FRONT
from torchspore.engine.tensor import TensorBase
from torchspore.engine.tree import entries

MISSING = object()

PLAIN = (int, float, complex, str, bytes, bool, type(None))
_VALUES: tuple[type, ...] = (
    range, slice, type(Ellipsis), np.generic, decimal.Decimal, fractions.Fraction, datetime.date, datetime.time, datetime.timedelta,
    datetime.tzinfo, uuid.UUID, pathlib.PurePath, re.Pattern,
)
"""Values that never change, known by what they equal."""

_SETTLED: tuple[type, ...] = (
    types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.dtype, property, staticmethod, classmethod,
    types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType, types.CodeType,
    logging.Logger, logging.Handler, logging.Manager,
)

_LARGEST = 64 << 20
"""Bytes of an array that are compared at each call, at most."""
CELLS_OWN = ("_graphs", "_hooks", "_forward", "_changed_at", "_is_step")
"""Attributes of a Cell that are no business of the program's."""
_OURS = ("_graphs",)
"""Attributes in which torchspore keeps something of its own."""


class Unwatchable(Exception):
    """Raised for a value of which nothing tells whether it has changed; its text says what it is."""


def is_constant(value: Any) -> bool:
    """Whether `value` can't change by itself: then only its name can be given another one."""
    kind = type(value)
    if kind in PLAIN:
        return True
    if kind is types.BuiltinFunctionType:
        return not _is_bound(value)
    if isinstance(value, tuple):
        return (kind is tuple or not attributes(value)) and all(is_constant(item) for item in value)
    return isinstance(value, (*PLAIN, TensorBase, *(_SETTLED, FRONT.settled), *_VALUES)) and not _has_attributes(value)


def _has_attributes(value: Any) -> bool:
    """Whether a subclass of a plain type carries attributes of its own."""
    return isinstance(value, PLAIN) and bool(getattr(value, "__dict__", None))


def _is_bound(value: Any) -> bool:
    """Whether a function written in C is a method of something that may change, as `[].append`."""
    return not (value.__self__ is None or isinstance(value.__self__, (types.ModuleType, type)))


def is_settled(value: Any) -> bool:
    """Whether `value` is known by identity."""
    return isinstance(value, (_SETTLED, FRONT.settled)) and not (isinstance(value, types.BuiltinFunctionType) and _is_bound(value))


def is_exhaustible(value: Any) -> bool:
    """Whether `value` is an iterator that C code or a generator moves on, or a stream that is read: nothing shows where it stands."""
    if isinstance(value, io.IOBase):
        return isinstance(value, (io.StringIO, io.BytesIO)) or (not value.closed and value.readable())
    found = getattr(type(value), "__next__", None)
    return found is not None and not isinstance(found, types.FunctionType) and not hasattr(value, "fileno")


class Node:
    """One thing of a snapshot; known by identity where nothing else is said."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def holds(self, now: Any) -> bool:
        """Whether `now` is as the value was."""
        return now is self.value

    def restore(self) -> bool:
        """Puts the value itself, not what is in its items, back as it was; says whether it had been changed."""
        return False


class Equal(Node):
    """A number, a text or another value that never changes."""

    __slots__ = ()

    def holds(self, now: Any) -> bool:
        was = self.value
        if now is was:
            return True
        if type(now) is not type(was):
            return False
        if type(was) is float:
            return (now == was and math.copysign(1.0, now) == math.copysign(1.0, was)) or (now != now and was != was)
        return bool(now == was) or (was != was and now != now)


class Items(Node):
    """A list, a tuple or a deque."""

    __slots__ = ("_children", "_items")

    def __init__(self, value: Any, take: Callable[[Any], Node]) -> None:
        super().__init__(value)
        self._items = tuple(value)
        found = [(place, take(item)) for place, item in enumerate(self._items) if type(item) not in PLAIN]
        self._children = [(place, node) for place, node in found if not is_constant(node.value)]

    def holds(self, now: Any) -> bool:
        items = self._items
        if type(now) is not type(self.value) or len(now) != len(items):
            return False
        if isinstance(now, deque) and now.maxlen != self.value.maxlen:
            return False
        if not all(map(operator.is_, now, items)):
            if not all(a is b or not is_constant(b) or constant(b).holds(a) for a, b in zip(now, items)):
                return False
        return all(child.holds(now[place]) for place, child in self._children)

    def restore(self) -> bool:
        value = self.value
        if isinstance(value, tuple) or (len(value) == len(self._items) and all(map(operator.is_, value, self._items))):
            return False
        kind = deque if isinstance(value, deque) else list
        kind.clear(value)
        kind.extend(value, self._items)
        return True


class Entries(Node):
    """A dict of any kind."""

    __slots__ = ("_children", "_entries", "_keys")

    def __init__(self, value: Any, take: Callable[[Any], Node], skipped: tuple[str, ...] = ()) -> None:
        super().__init__(value)
        self._entries = {key: item for key, item in entries(value) if key not in skipped}
        self._keys = tuple(self._entries)
        found = [(key, take(item)) for key, item in self._entries.items() if type(item) not in PLAIN]
        self._children = [(key, node) for key, node in found if not is_constant(node.value)]

    def holds(self, now: Any) -> bool:
        was = self._entries
        if type(now) is not type(self.value):
            return False
        if type(now) is not dict:
            now = dict(entries(now))
        if len(now) != len(was):
            now = {key: item for key, item in now.items() if key not in _OURS}
            if len(now) != len(was):
                return False
        if not (all(map(operator.is_, now.values(), was.values())) and all(map(operator.is_, now, self._keys))):
            if not all(a is b or constant(b).holds(a) for a, b in zip(now, self._keys)):
                return False
            if not all(a is b or not is_constant(b) or constant(b).holds(a) for a, b in zip(now.values(), was.values())):
                return False
        return all(child.holds(now[key]) for key, child in self._children)

    def nodes(self) -> Iterator[tuple[Any, Node]]:
        """The keys and what was there."""
        children = dict(self._children)
        for key, item in self._entries.items():
            yield key, children.get(key) or constant(item)

    def restore(self) -> bool:
        value, was = self.value, self._entries
        kept = {key: dict.__getitem__(value, key) for key in _OURS if key in value and key not in was} if len(value) != len(was) else {}
        now = {key: item for key, item in entries(value) if key not in kept}
        if len(now) == len(was) and all(map(operator.is_, now.values(), was.values())) and all(map(operator.is_, now, self._keys)):
            return False
        kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict
        kind.clear(value)
        for key, item in {**was, **kept}.items():
            kind.__setitem__(value, key, item)
        return True


class Attributes(Node):
    """The attributes of a Cell, each by identity: a trace that writes them past `setattr` is to be undone."""

    __slots__ = ("_held",)

    def __init__(self, value: Any, take: Callable[[Any], Node]) -> None:
        super().__init__(value)
        self._held = dict(value)

    def restore(self) -> bool:
        now, held = self.value, self._held
        names = [name for name in {**held, **now} if name not in CELLS_OWN and now.get(name, MISSING) is not held.get(name, MISSING)]
        for name in names:
            if name in held:
                now[name] = held[name]
            else:
                del now[name]
        return bool(names)


class Members(Node):
    """A set; its members are known by identity, numbers and texts by value."""

    __slots__ = ("_members",)

    def __init__(self, value: Any, take: Callable[[Any], Node]) -> None:
        super().__init__(value)
        self._members = frozenset(value)

    def holds(self, now: Any) -> bool:
        return type(now) is type(self.value) and _identities(now) == _identities(self._members)

    def restore(self) -> bool:
        value = self.value
        if isinstance(value, frozenset) or value == self._members:
            return False
        set.clear(value)
        set.update(value, self._members)
        return True


def _identities(members: Any) -> frozenset[Any]:
    return frozenset((type(item), item) if isinstance(item, PLAIN) else id(item) for item in members)


class Data(Node):
    """A NumPy array, a bytearray or another buffer: by its bytes."""

    __slots__ = ("_bytes", "_form")

    def __init__(self, value: Any, take: Callable[[Any], Node]) -> None:
        super().__init__(value)
        size = value.nbytes if isinstance(value, (np.ndarray, memoryview)) else len(value)
        if size > _LARGEST:
            raise Unwatchable(f"is a {type(value).__name__} of {size >> 20} MB, too large to be compared at each call")
        self._form, self._bytes = _form(value), _bytes(value)

    def holds(self, now: Any) -> bool:
        return now is self.value and _form(now) == self._form and _bytes(now) == self._bytes

    def restore(self) -> bool:
        if self.holds(self.value):
            return False
        value: Any = self.value
        if isinstance(value, np.ndarray):
            dtype, shape = self._form
            if value.shape != shape or value.dtype != dtype:
                value.resize(shape, refcheck=False)
            value[...] = np.frombuffer(self._bytes, dtype).reshape(shape)
        elif isinstance(value, array.array):
            del value[:]
            value.frombytes(self._bytes)
        else:
            value[:] = self._bytes
        return True


class Table(Node):
    """A NumPy array of objects."""

    __slots__ = ("_inner", "_items")

    def __init__(self, value: Any, take: Callable[[Any], Node]) -> None:
        super().__init__(value)
        self._items = value.ravel().tolist()
        self._inner = take(self._items)

    def holds(self, now: Any) -> bool:
        return now is self.value and self._inner.holds(now.ravel().tolist())

    def restore(self) -> bool:
        if all(map(operator.is_, self.value.ravel().tolist(), self._items)):
            return False
        self.value.ravel()[...] = self._items
        return True


def _form(value: Any) -> Any:
    return (value.dtype, value.shape) if isinstance(value, np.ndarray) else len(value)


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytearray) else value.tobytes()


class Unwatched(Node):
    """An attribute of which nothing tells whether it has changed, of an object whose attributes count by name; none asks for this one."""

    __slots__ = ()

    def holds(self, now: Any) -> bool:
        return True


class Named:
    """Of an object's attributes those whose names stand in what ran: no others can have been read."""

    __slots__ = ("_names", "_nodes")

    def __init__(self, attributes: Entries, names: frozenset[str]) -> None:
        self._names = names
        self._nodes = {name: node for name, node in attributes.nodes() if name in names}

    def holds(self, now: dict[str, Any]) -> bool:
        """Whether they are as they were, and those that were absent are."""
        nodes = self._nodes
        return all(name in now and node.holds(now[name]) for name, node in nodes.items()) and not any(
            name in self._names and name not in nodes for name in now
        )


class Object(Node):
    """An object: what is in its attributes and slots, and in itself where it is a container too."""

    __slots__ = ("_attributes", "_itself", "_named", "_slots")

    def __init__(self, value: Any, take: Callable[[Any], Node], itself: Node | None = None) -> None:
        super().__init__(value)
        own = attributes(value)
        self._itself = itself
        self._named: Named | None = None
        self._attributes = Entries(own, take, _OURS) if own is not None else None
        self._slots = [(slot, take(_slot(slot, value))) for slot in slots_of(value)]

    def holds(self, now: Any) -> bool:
        return now is self.value and self.is_like(now)

    def is_like(self, now: Any) -> bool:
        """Whether `now`, an object of the same class, holds the same."""
        watched = self._named or self._attributes
        if watched is not None and not watched.holds(attributes(now) or {}):
            return False
        return all(node.holds(_slot(slot, now)) for slot, node in self._slots) and (self._itself is None or self._itself.holds(now))

    def narrow(self, names: frozenset[str]) -> None:
        """From now on only attributes of these names count."""
        if self._attributes is not None and self._itself is None and not self._slots:
            self._named = Named(self._attributes, names)

    def restore(self) -> bool:
        changed = self._attributes is not None and self._attributes.restore()
        for slot, node in self._slots:
            if _slot(slot, self.value) is not node.value:
                changed = True
                slot.__delete__(self.value) if node.value is MISSING else slot.__set__(self.value, node.value)
        return (self._itself is not None and self._itself.restore()) or changed


class Made(Node):
    """Something that is known by what it was made of, as a bound method: `of` gives that."""

    __slots__ = ("_of", "_parts")

    def __init__(self, value: Any, take: Callable[[Any], Node], of: Callable[[Any], Any]) -> None:
        super().__init__(value)
        self._of, self._parts = of, take(of(value))

    def holds(self, now: Any) -> bool:
        return type(now) is type(self.value) and self._parts.holds(self._of(now))


def attributes(value: Any) -> dict[str, Any] | None:
    """The `__dict__` of an object, past what its class makes of attribute access; None where it has none."""
    try:
        found = value.__dict__ if isinstance(value, threading.local) else object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) else None


@functools.lru_cache(maxsize=4096)
def _slots(kind: Any) -> tuple[Any, ...]:
    """The slots that classes written in Python give to their objects."""
    return tuple(
        found for cls in kind.__mro__ if "__slots__" in vars(cls) for found in vars(cls).values()
        if isinstance(found, types.MemberDescriptorType)
    )


_HELD: tuple[Any, ...] = (
    *PLAIN, list, tuple, deque, dict, set, frozenset, np.ndarray, bytearray, array.array, memoryview, threading.local, TensorBase,
)
"""Kinds written in C whose contents are looked into, and their subclasses."""

_Named = namedtuple("_Named", "item")
_UNCHANGING: tuple[Any, ...] = (
    type(threading.Lock()), type(threading.RLock()), io.IOBase, types.GenericAlias, types.UnionType, types.ClassMethodDescriptorType,
    types.TracebackType, types.FrameType, types.CellType, type(sys.flags), type(re.match("", "")), type(datetime.datetime_CAPI),
    type(vars(_Named)["item"]), struct.Struct, operator.itemgetter, operator.attrgetter, np.ufunc, type(np.concatenate),
    BaseException, super, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Tensor, torch.Generator,
)
"""Kinds written in C in which nothing changes that a program reads unnoticed: a lock is taken and given back, a stream's methods are
noticed when they are called."""


@functools.lru_cache(maxsize=4096)
def hides_state(kind: Any) -> bool:
    """Whether objects of a class keep something in C where nothing shows it: a queue, an array of ctypes, a hash, a weak reference.

    Objects of classes written in Python have room for their slots, attributes and weak references, and for nothing else.
    """
    if issubclass(kind, (*_HELD, *_UNCHANGING, *_SETTLED, *_VALUES)):
        return False
    known = len(_slots(kind)) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)          # a negative one is outside of the object
    return kind.__basicsize__ > object.__basicsize__ + known * struct.calcsize("P")


def slots_of(value: Any) -> tuple[Any, ...]:
    """The slots of an object."""
    kind: Any = type(value)
    return _slots(kind)


def _slot(slot: Any, value: Any) -> Any:
    try:
        return slot.__get__(value)
    except AttributeError:
        return MISSING


def constant(value: Any) -> Node:
    """The node of what can't change by itself."""
    if isinstance(value, tuple):
        return Items(value, constant)
    return Equal(value) if isinstance(value, (*PLAIN, *_VALUES)) else Node(value)
