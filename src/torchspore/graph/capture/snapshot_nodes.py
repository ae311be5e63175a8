"""The nodes of a snapshot: what one container, array or object was. The quick way through compares items by identity, a loop in C."""
from __future__ import annotations

import array
import math
import operator
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tree import entries
from torchspore.graph.capture.value_kinds import MISSING, PLAIN, VALUES, attributes, is_constant, slots_of

_LARGEST = 64 << 20
"""Bytes of an array that are compared at each call, at most."""
CELL_PRIVATE_NAMES = (
    "_graphs_", "_hooks_", "_forward_", "_gradient_function_", "_changed_at_", "_is_step_", "_covered_",
    change_counters.SETTINGS_CHANGED_AT, "_is_checked_",
)
"""Attributes of a Cell that are not business of the program's."""
_OURS = ("_graphs_",)
"""Attributes in which torchspore stores its own data."""


class Unwatchable(Exception):
    """Raised for a value whose changes cannot be detected; the text describes it."""


class Node:
    """A part of a snapshot; by default known by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def holds(self, now: Any) -> bool:
        """Return whether `now` is as the value was."""
        return now is self.value

    def inside(self) -> Iterable[Any]:
        """The contents of the value itself."""
        return ()

    def restore(self) -> bool:
        """Restore the value itself, not the contents of its items; return whether it had changed."""
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
        nodes = [(index, take(item)) for index, item in enumerate(self._items) if type(item) not in PLAIN]
        self._children = [(index, node) for index, node in nodes if not is_constant(node.value)]

    def holds(self, now: Any) -> bool:
        items = self._items
        if type(now) is not type(self.value) or len(now) != len(items):
            return False
        if isinstance(now, deque) and now.maxlen != self.value.maxlen:
            return False
        if not all(map(operator.is_, now, items)):
            if not all(a is b or not is_constant(b) or constant(b).holds(a) for a, b in zip(now, items)):
                return False
        return all(child.holds(now[index]) for index, child in self._children)

    def inside(self) -> Iterable[Any]:
        return self._items

    def restore(self) -> bool:
        value = self.value
        if isinstance(value, tuple) or (len(value) == len(self._items) and all(map(operator.is_, value, self._items))):
            return False
        kind = deque if isinstance(value, deque) else list
        kind.clear(value)
        kind.extend(value, self._items)
        return True


_PLAIN_CONTAINERS = frozenset({dict, OrderedDict, list})


class Entries(Node):
    """A dict of any kind."""

    __slots__ = ("_checked", "_children", "_empty", "_entries", "_keys")

    def __init__(self, value: Any, take: Callable[[Any], Node], skipped: tuple[str, ...] = ()) -> None:
        super().__init__(value)
        self._entries = {key: item for key, item in entries(value) if key not in skipped}
        self._keys = tuple(self._entries)
        nodes = [(key, take(item)) for key, item in self._entries.items() if type(item) not in PLAIN]
        self._children = [(key, node) for key, node in nodes if not is_constant(node.value)]
        # Many are empty: a torch Module has 15 dicts of hooks.
        self._empty = [(key, type(node.value)) for key, node in self._children if type(node.value) in _PLAIN_CONTAINERS and not node.value]
        empty_keys = {key for key, _ in self._empty}
        self._checked = [(key, node) for key, node in self._children if key not in empty_keys]

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
        for key, kind in self._empty:
            item = now[key]
            if item or type(item) is not kind:
                return False
        return all(child.holds(now[key]) for key, child in self._checked)

    def inside(self) -> Iterable[Any]:
        return (*self._keys, *self._entries.values())

    def nodes(self) -> Iterator[tuple[Any, Node]]:
        """Yield the keys and the earlier values."""
        children = dict(self._children)
        for key, item in self._entries.items():
            yield key, children.get(key) or constant(item)

    def restore(self) -> bool:
        value, was = self.value, self._entries
        old_entries = (
            {key: dict.__getitem__(value, key) for key in _OURS if key in value and key not in was} if len(value) != len(was) else {}
        )
        now = {key: item for key, item in entries(value) if key not in old_entries}
        if len(now) == len(was) and all(map(operator.is_, now.values(), was.values())) and all(map(operator.is_, now, self._keys)):
            return False
        kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict
        kind.clear(value)
        for key, item in {**was, **old_entries}.items():
            kind.__setitem__(value, key, item)
        return True


class Attributes(Node):
    """The attributes of a Cell, each by identity: a trace that writes them past `setattr` is to be undone."""

    __slots__ = ("_old_value",)

    def __init__(self, value: Any, take: Callable[[Any], Node]) -> None:
        super().__init__(value)
        self._old_value = dict(value)

    def restore(self) -> bool:
        now, old_value = self.value, self._old_value
        names = [
            name
            for name in {**old_value, **now}
            if name not in CELL_PRIVATE_NAMES and now.get(name, MISSING) is not old_value.get(name, MISSING)
        ]
        for name in names:
            if name in old_value:
                now[name] = old_value[name]
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

    def inside(self) -> Iterable[Any]:
        return self._members

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

    def inside(self) -> Iterable[Any]:
        return self._items

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
    """An attribute whose changes cannot be detected, of an object whose attributes count by name, while no name refers to it."""

    __slots__ = ()

    def holds(self, now: Any) -> bool:
        return True


class Named:
    """The attributes of an object whose names the code that ran contains: no others can have been read."""

    __slots__ = ("_names", "_nodes")

    def __init__(self, attributes: Entries, names: frozenset[str]) -> None:
        self._names = names
        self._nodes = {name: node for name, node in attributes.nodes() if name in names}

    def holds(self, now: dict[str, Any]) -> bool:
        """Return whether they are as they were, and those that were absent are."""
        nodes = self._nodes
        return all(name in now and node.holds(now[name]) for name, node in nodes.items()) and not any(
            name in self._names and name not in nodes for name in now
        )


class Object(Node):
    """An object: its attributes and slots, and its items if it is also a container."""

    __slots__ = ("_attributes", "_itself", "_line", "_named", "_slots")

    def __init__(self, value: Any, take: Callable[[Any], Node], itself: Node | None = None) -> None:
        super().__init__(value)
        attributes_now = attributes(value)
        self._itself = itself
        self._line = type(value).__mro__                     # another tuple where the object is given another class, or that other bases
        self._named: Named | None = None
        self._attributes = Entries(attributes_now, take, _OURS) if attributes_now is not None else None
        self._slots = [(slot, take(_slot(slot, value))) for slot in slots_of(value)]

    def holds(self, now: Any) -> bool:
        return now is self.value and self.is_like(now)

    def is_like(self, now: Any) -> bool:
        """Return whether `now`, an object of the same class, holds the same."""
        if type(now).__mro__ is not self._line:
            return False
        watched = self._named or self._attributes
        if watched is not None and not watched.holds(attributes(now) or {}):
            return False
        return all(node.holds(_slot(slot, now)) for slot, node in self._slots) and (self._itself is None or self._itself.holds(now))

    def inside(self) -> Iterable[Any]:
        inner = () if self._attributes is None else self._attributes.inside()
        return (*inner, *(node.value for _, node in self._slots), *(() if self._itself is None else self._itself.inside()))

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


class Snapshot(Node):
    """A value that is known by its parts, such as a bound method: `of` returns them."""

    __slots__ = ("_of", "_parts", "_snapshot")

    def __init__(self, value: Any, take: Callable[[Any], Node], of: Callable[[Any], Any]) -> None:
        super().__init__(value)
        self._of, self._snapshot = of, of(value)
        self._parts = take(self._snapshot)

    def holds(self, now: Any) -> bool:
        return type(now) is type(self.value) and self._parts.holds(self._of(now))

    def inside(self) -> Iterable[Any]:
        return self._snapshot if isinstance(self._snapshot, tuple) else ()


def _slot(slot: Any, value: Any) -> Any:
    try:
        return slot.__get__(value)
    except AttributeError:
        return MISSING


def constant(value: Any) -> Node:
    """The node of a value that cannot change by itself."""
    if isinstance(value, tuple):
        return Items(value, constant)
    return Equal(value) if isinstance(value, (*PLAIN, *VALUES)) else Node(value)
