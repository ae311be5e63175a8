"""Nested values: lists, tuples and dicts, of any class, with leaves of other types."""
from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from typing import Any


def leaves(value: Any) -> Iterator[Any]:
    """Yield every leaf, in order; `value` itself if it is a leaf."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for _, item in entries(value):
            yield from leaves(item)
    else:
        yield value


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same structure with what `change` gives for each leaf."""
    if isinstance(value, (list, tuple)):
        return like(value, [mapped(item, change) for item in value])
    if isinstance(value, dict):
        return like(value, [mapped(item, change) for _, item in entries(value)])
    return change(value)


def listed(value: Any) -> list[Any]:
    """The items of a list or tuple; anything else as the only item."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def entries(value: Any) -> Any:
    """The items of a dict past what its class makes of them, in its own order: that of an OrderedDict is not an order of a dict's."""
    return OrderedDict.items(value) if isinstance(value, OrderedDict) else dict.items(value)


def like(holder: Any, items: list[Any]) -> Any:
    """Return a tuple, list or dict of the class of `holder`, with `items` in the positions of its items (a dict: of its values).

    Constructors of the program's classes are not called, because they may take any arguments.
    """
    kind: Any = type(holder)
    if kind is tuple:
        return tuple(items)
    if kind is list:
        return items
    if kind is dict:
        return dict(zip(holder, items))
    keys = [key for key, _ in entries(holder)] if isinstance(holder, dict) else []
    if isinstance(holder, tuple):
        try:
            copied = tuple.__new__(kind, items)
        except TypeError:                                          # C types of torch: torch.Size, torch.return_types.topk
            return tuple(items)
    else:
        copied = kind.__new__(kind)
        if isinstance(holder, list):
            list.extend(copied, items)
        else:
            put: Any = OrderedDict.__setitem__ if isinstance(holder, OrderedDict) else dict.__setitem__
            for key, item in zip(keys, items):
                put(copied, key, item)
    if isinstance(holder, defaultdict):
        copied.default_factory = holder.default_factory
    attributes = getattr(holder, "__dict__", None)
    if attributes:
        before = [item for _, item in entries(holder)] if isinstance(holder, dict) else list(holder)
        now = {id(old): new for old, new in zip(before, items)}            # a field that is an item too, as in data classes that are dicts
        copied.__dict__.update({name: now.get(id(value), value) for name, value in attributes.items()})
    return copied
