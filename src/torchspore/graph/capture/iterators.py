"""Iterators that a call gives back: tuples and lists in a graph, as MindSpore's graphs give them."""
from __future__ import annotations

from types import GeneratorType
from typing import Any

from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tree import like

_LIST_ITERATOR: type = type(iter([]))
_TUPLE_ITERATOR: type = type(iter(()))
_TO_TUPLE: tuple[type, ...] = (zip, range, enumerate, _TUPLE_ITERATOR, type({}.keys()), type({}.values()))
_TO_LIST: tuple[type, ...] = (filter, GeneratorType, _LIST_ITERATOR, type({}.items()))


def holds_iterator(value: Any) -> bool:
    """Return whether there is an iterator in `value`, which could be gone through once and not again."""
    return any(hasattr(type(leaf), "__next__") for leaf in tree.leaves(value))


def settled(value: Any) -> Any:
    """Return the result of a call in Graph mode: tuples and lists replace iterators and ranges, as in MindSpore's graphs."""
    kind = type(value)
    if kind is map:
        items = [settled(item) for item in value]
        return items if type(value.__reduce__()[1][1]) is _LIST_ITERATOR else tuple(items)
    if kind in _TO_TUPLE:
        return tuple(settled(item) for item in value)
    if kind in _TO_LIST:
        return [settled(item) for item in value]
    if kind is tuple or kind is list:
        items = [settled(item) for item in value]
        return value if all(new is old for new, old in zip(items, value)) else like(value, items)
    if kind is dict:
        items = [settled(item) for item in value.values()]
        return value if all(new is old for new, old in zip(items, value.values())) else like(value, items)
    return value


def without_dicts(value: Any) -> Any:
    """Return the result of a call at STRICT: tuples of values replace dicts, as in MindSpore."""
    if type(value) is dict:
        return tuple(without_dicts(item) for item in value.values())
    if type(value) in (tuple, list):
        items = [without_dicts(item) for item in value]
        return value if all(new is old for new, old in zip(items, value)) else type(value)(items)
    return value
