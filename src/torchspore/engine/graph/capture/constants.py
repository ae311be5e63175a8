"""What is worked out while a graph is captured: functions under `constexpr`, and iterators that a call gives back."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any

import numpy as np

from torchspore.engine import tensor as engine
from torchspore.engine.graph.control.part import current
from torchspore.engine.private import without_modes
from torchspore.engine.tensor import TensorBase, like, tensors, transform, wrap

_LIST_ITERATOR: type = type(iter([]))
_TUPLE_ITERATOR: type = type(iter(()))
_TO_TUPLE: tuple[type, ...] = (zip, range, enumerate, _TUPLE_ITERATOR, type({}.keys()), type({}.values()))
_TO_LIST: tuple[type, ...] = (filter, GeneratorType, _LIST_ITERATOR, type({}.items()))


def constant(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `function`, whose arguments are known, gives: computed now and not by the graph, of which it is an input from then on."""
    around, capture = engine.frame(), current()
    if around is None or capture is None or any(True for _ in tensors((args, kwargs))):
        return function(*args, **kwargs)
    engine._local.frame = None
    try:
        with without_modes():
            found = function(*args, **kwargs)
    finally:
        engine._local.frame = around
    for array in _arrays(found):
        capture.watch.arrays.setdefault(id(array), lambda array=array: array)  # type: ignore[misc]
    return transform(found, lambda tensor: tensor if _is_programs(tensor) else wrap(around.literal(tensor._t, lambda t: t)))


def _is_programs(tensor: TensorBase) -> bool:
    """Whether a Tensor is a Parameter, which is itself wherever it is met."""
    return bool(type(tensor).__dict__.get("__parameter__"))


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _arrays(item)


def holds_iterator(value: Any) -> bool:
    """Whether there is an iterator in `value`, which could be gone through once and not again."""
    if isinstance(value, (tuple, list, dict)):
        return any(map(holds_iterator, value.values() if isinstance(value, dict) else value))
    return hasattr(type(value), "__next__")


def settled(value: Any) -> Any:
    """What a call gives in Graph mode: tuples and lists in the places of iterators and ranges, as MindSpore's graphs give them."""
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
