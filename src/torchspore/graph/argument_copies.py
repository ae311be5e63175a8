"""Lists of a call's arguments: a graph changes copies of them, as in MindSpore, and returns the caller's lists if they are unchanged."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.engine.tensors import tree
from torchspore.engine.tensors.mutable_containers import MUTABLE_CONTAINERS, MutableTuple

_LISTS = (list, *(kind for kind in MUTABLE_CONTAINERS if kind is not MutableTuple))
"""The classes of lists and marked containers that are copied; a dict that is not marked is an object of Python, which a call changes."""


def run(owner: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], with_dicts: bool = False) -> Any:
    """Return `call(args, kwargs)` for copies of the lists in the arguments, also of those inside of lists and tuples.

    A list that is an attribute of `owner`, or of a Cell inside it, is not copied, because the call may compare both with `is`. With
    `with_dicts` all dicts are copied too.
    """
    kinds = (*_LISTS, dict) if with_dicts else _LISTS
    if not any(isinstance(argument, (tuple, *kinds)) for argument in (*args, *kwargs.values())):
        return call(args, kwargs)
    copies = _Copies(kinds, owner)
    copied_args = tuple(map(copies.of, args))
    copied_kwargs = {name: copies.of(argument) for name, argument in kwargs.items()}
    if not copies.pairs:
        return call(args, kwargs)
    result = call(copied_args, copied_kwargs)
    unchanged: dict[int, Any] = {}
    for copy, original in copies.pairs:                    # those inside of another come first
        before, now = _items(original), _items(copy)
        if len(before) == len(now) and all(unchanged.get(id(item), item) is old for item, old in zip(now, before)):
            unchanged[id(copy)] = original
    return _with_originals(result, unchanged) if unchanged else result


class _Copies:
    """The copies of the lists in one call's arguments; a list that is passed twice has one copy."""

    def __init__(self, kinds: tuple[type, ...], owner: Any) -> None:
        self.pairs: list[tuple[Any, Any]] = []
        """Each copy and its original; those inside of another come first."""
        self._kinds = kinds
        self._of_id: dict[int, Any] = {}
        cells = [cell for _, cell in owner.cells_and_names()] if hasattr(owner, "cells_and_names") else []
        self._of_id.update((id(value), value) for cell in cells for value in vars(cell).values() if type(value) in kinds)

    def of(self, value: Any) -> Any:
        """Return the copy of a value that is a list or contains one, else the value."""
        kind = type(value)
        if kind is not tuple and kind is not MutableTuple and kind not in self._kinds:
            return value
        if id(value) in self._of_id:
            return self._of_id[id(value)]
        items = list(value.values()) if isinstance(value, dict) else list(value)
        copied_items = list(map(self.of, items))
        if kind not in self._kinds and all(copy is item for copy, item in zip(copied_items, items)):
            return value
        copy = self._of_id[id(value)] = tree.like(value, copied_items)
        self.pairs.append((copy, value))
        return copy


def _items(value: Any) -> list[Any]:
    return [item for entry in value.items() for item in entry] if isinstance(value, dict) else list(value)


def _with_originals(value: Any, originals: dict[int, Any]) -> Any:
    """Return a result with the caller's lists in place of their unchanged copies."""
    if id(value) in originals:
        return originals[id(value)]
    kind = type(value)
    if kind is list:
        value[:] = [_with_originals(item, originals) for item in value]
        return value
    if kind is tuple:
        items = tuple(_with_originals(item, originals) for item in value)
        return value if all(new is old for new, old in zip(items, value)) else items
    if kind is dict:
        for key, item in value.items():
            value[key] = _with_originals(item, originals)
    return value
