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
    kind = type(value)
    if not isinstance(value, (list, tuple, dict)):
        return value
    items = [unmark(item) for item in (value.values() if isinstance(value, dict) else value)]
    plain: dict[type, Any] = {MutableTuple: (), MutableList: [], MutableDict: dict.fromkeys(value)}
    return tree.like(plain.get(kind, value), items)
