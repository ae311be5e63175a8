"""Lists of a call's arguments: a graph changes copies of them, as in MindSpore, and returns the caller's lists if they are unchanged."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.engine.tensors import tree
from torchspore.engine.tensors.mutable_containers import MUTABLE_CONTAINERS, MutableTuple

_LISTS = (list, *(kind for kind in MUTABLE_CONTAINERS if kind is not MutableTuple))
"""The classes of lists and marked containers that are copied; a dict that is not marked is an object of Python, which a call changes."""


def run(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], with_dicts: bool = False) -> Any:
    """Return `call(args, kwargs)` for copies of the lists in the arguments, also of those inside of lists and tuples.

    With `with_dicts` all dicts are copied too.
    """
    copies: list[tuple[Any, Any]] = []
    kinds = (*_LISTS, dict) if with_dicts else _LISTS
    copied_args = tuple(_copied(argument, kinds, copies) for argument in args)
    copied_kwargs = {name: _copied(argument, kinds, copies) for name, argument in kwargs.items()} if kwargs else kwargs
    if not copies:
        return call(args, kwargs)
    result = call(copied_args, copied_kwargs)
    unchanged: dict[int, Any] = {}
    for copy, original in copies:                          # those inside of another come first
        before, now = _items(original), _items(copy)
        if len(before) == len(now) and all(unchanged.get(id(item), item) is old for item, old in zip(now, before)):
            unchanged[id(copy)] = original
    return _with_originals(result, unchanged) if unchanged else result


def _copied(value: Any, kinds: tuple[type, ...], copies: list[tuple[Any, Any]]) -> Any:
    kind = type(value)
    if kind is not tuple and kind is not MutableTuple and kind not in kinds:
        return value
    items = list(value.values()) if isinstance(value, dict) else list(value)
    copied_items = [_copied(item, kinds, copies) for item in items]
    if kind not in kinds and all(copy is item for copy, item in zip(copied_items, items)):
        return value
    copy = tree.like(value, copied_items)
    copies.append((copy, value))
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
