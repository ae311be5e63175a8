"""What a trace reads of Python's state, so that a graph is used only while that state is the same, and that a trace leaves no mark on it.

Read are: attributes of Cells, and the globals and free variables of the functions that ran. Each is kept with its value, frozen
deeply enough to see a change: numbers and strings by value, containers and plain objects by their contents, all else by identity.
"""
from __future__ import annotations

import random
import types
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchspore.engine.front import FRONT
from torchspore.engine.tensor import TensorBase

_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_SETTLED: list[type] = FRONT.settled
_SETTLED += [types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.dtype]
_LIMIT = 4096
MISSING = object()


def freeze(value: Any, depth: int = 4) -> Any:
    """`value` in a form that compares unequal once it has changed."""
    kind = type(value)
    if kind in _PLAIN:
        return (kind, value) if kind in (bool, float) else value
    if isinstance(value, TensorBase) or depth == 0 or isinstance(value, tuple(_SETTLED)):
        return Same(value)
    if kind in (list, tuple) or isinstance(value, (list, tuple)):
        return (kind, *[freeze(item, depth - 1) for item in value]) if len(value) <= _LIMIT else (kind, len(value), Same(value))
    if isinstance(value, dict):
        return (
            kind, *[(freeze(key, depth - 1), freeze(item, depth - 1)) for key, item in value.items()],
        ) if len(value) <= _LIMIT else Same(value)
    if isinstance(value, (set, frozenset)):
        return kind, frozenset(id(item) if not isinstance(item, _PLAIN) else item for item in value)
    if isinstance(value, np.ndarray):
        return (Same(value), value.tobytes()) if value.size <= 64 else Same(value)
    own = getattr(value, "__dict__", None)
    return (Same(value), freeze(dict(own), depth - 1)) if own else Same(value)


class Same:
    """Equal only to itself's object; keeps it alive, so that its id is not used again."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def is_constant(value: Any) -> bool:
    """Whether `value` can't change by itself: then only its name can be given another one."""
    if type(value) is tuple or isinstance(value, tuple):
        return all(is_constant(item) for item in value)
    return isinstance(value, (*_PLAIN, TensorBase, *_SETTLED))


@dataclass
class Read:
    """One thing read: `holder[name]` had `value`."""

    holder: MutableMapping[str, Any]
    name: str
    value: Any
    frozen: Any
    is_attribute: bool
    is_constant: bool = False              # then only another object can make a difference

    def __post_init__(self) -> None:
        self.is_constant = is_constant(self.value) and not isinstance(self.value, TensorBase)

    def now(self) -> Any:
        """What is there now."""
        return self.holder.get(self.name, MISSING)

    def holds(self) -> bool:
        """Whether it is as it was; a Tensor may be another one, its own check follows."""
        now = self.holder.get(self.name, MISSING)
        if now is self.value and self.is_constant:
            return True
        if isinstance(self.value, TensorBase):
            return isinstance(now, TensorBase)
        return bool(freeze(now) == self.frozen)


class Cells(MutableMapping[str, Any]):
    """The free variables of a function as a mapping."""

    def __init__(self, names: tuple[str, ...], closure: tuple[Any, ...]) -> None:
        self._cells = dict(zip(names, closure))

    def __getitem__(self, name: str) -> Any:
        try:
            return self._cells[name].cell_contents
        except ValueError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        self._cells[name].cell_contents = value

    def __delitem__(self, name: str) -> None:
        del self._cells[name].cell_contents

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)


class Randomness:
    """Python's and NumPy's random state at one moment."""

    def __init__(self) -> None:
        self._python, self._numpy = random.getstate(), np.random.get_state(legacy=False)

    def was_used(self) -> bool:
        """Whether one of the two has moved on since."""
        now: Any = np.random.get_state(legacy=False)
        then: Any = self._numpy
        moved = now["state"]["pos"] != then["state"]["pos"] or not np.array_equal(now["state"]["key"], then["state"]["key"])
        return random.getstate() != self._python or moved or now["gauss"] != then["gauss"]

    def restore(self) -> None:
        """Puts both back."""
        random.setstate(self._python)
        np.random.set_state(self._numpy)


class Contents:
    """Copies of mutable things that a trace could change in place, to see it and to undo it."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, Any]] = {}

    def keep(self, value: Any, depth: int = 4) -> None:
        """Remembers what is in `value`, a list, dict, set or plain object, and in what it holds."""
        if depth == 0 or id(value) in self._kept or is_constant(value):
            return
        if isinstance(value, (list, dict, set)):
            self._kept[id(value)] = (value, value.copy())
            for item in value.values() if isinstance(value, dict) else value:
                self.keep(item, depth - 1)
        elif isinstance(value, tuple):
            for item in value:
                self.keep(item, depth - 1)
        elif isinstance(own := getattr(value, "__dict__", None), dict):
            self._kept[id(value)] = (own, dict(own))
            for item in list(own.values()):
                self.keep(item, depth - 1)

    def restore(self) -> bool:
        """Undoes what was changed in place; says whether anything was."""
        changed = False
        for value, copy in self._kept.values():
            if _differs(value, copy):
                changed = True
                value.clear()
                value.extend(copy) if isinstance(value, list) else value.update(copy)
        return changed


def _differs(value: Any, copy: Any) -> bool:
    if len(value) != len(copy):
        return True
    if isinstance(value, dict):
        return any(key not in copy or copy[key] is not item for key, item in value.items()) or list(value) != list(copy)
    return value != copy if isinstance(value, set) else any(a is not b for a, b in zip(value, copy))
