"""Lists, tuples and dicts that `mutable` marks: gradient transforms differentiate by their Tensors."""
from __future__ import annotations

from typing import Any

from torchspore.engine.tensors import tree


class MutableTuple(tuple[Any, ...]):
    """A tuple that `mutable` marks."""

    __ms_mutable__ = True


class MutableList(list[Any]):
    """A list that `mutable` marks."""

    __ms_mutable__ = True


class MutableDict(dict[Any, Any]):
    """A dict that `mutable` marks."""

    __ms_mutable__ = True


MUTABLE_SEQUENCES = MutableTuple, MutableList
MUTABLE_CONTAINERS = MutableTuple, MutableList, MutableDict


def unmark(value: Any) -> Any:
    """Return `value` with plain lists, tuples and dicts instead of the marked ones."""
    if isinstance(value, dict):
        items = [unmark(item) for item in value.values()]
        return dict(zip(value, items)) if type(value) is MutableDict else tree.like(value, items)
    if isinstance(value, (list, tuple)):
        items = [unmark(item) for item in value]
        return items if type(value) is MutableList else tuple(items) if type(value) is MutableTuple else tree.like(value, items)
    return value
