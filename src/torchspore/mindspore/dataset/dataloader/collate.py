"""Collation of samples into a batch: Tensors are stacked, containers are processed recursively."""
from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.tensor import Tensor

_NO_NUMBERS = "SUO"
"""Kinds of NumPy arrays that a Tensor can't hold."""


def mapped(function: Callable[[Any], Any], data: Any) -> Any:
    """Apply `function` to each leaf in the containers of `data`. A plain tuple becomes a list; other containers keep their class."""
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: mapped(function, value) for key, value in data.items()})
    if isinstance(data, tuple):
        values = [mapped(function, value) for value in data]
        return type(data)(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [mapped(function, value) for value in data])
    return function(data)


def _like_mapping(like: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """Return a mapping of the class of `like`; a dict if that class can't be constructed from a dict."""
    try:
        if isinstance(like, MutableMapping):
            copied = copy.copy(like)             # a custom class may have state in addition to its items
            copied.update(values)
            return copied
        return type(like)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def _like_sequence(like: Sequence[Any], values: list[Any]) -> Any:
    """Return a sequence of the class of `like`; a list if that class can't be constructed from a list."""
    try:
        if isinstance(like, MutableSequence):
            copied = copy.copy(like)
            for index, value in enumerate(values):
                copied[index] = value
            return copied
        return type(like)(values)  # type: ignore[call-arg]
    except TypeError:
        return values


def default_convert(data: Any) -> Any:
    """Convert a sample of a DataLoader without batches: arrays and numbers of NumPy become Tensors, in containers too."""
    return mapped(_converted, data)


def _converted(leaf: Any) -> Any:
    if isinstance(leaf, (np.number, np.bool_)):
        return Tensor(leaf)
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind not in _NO_NUMBERS:
        return Tensor.from_numpy(leaf)
    return leaf


def collate(batch: Sequence[Any], *, collate_fn_map: Mapping[Any, Callable[..., Any]] | None = None) -> Any:
    """Collate samples into one batch by the function of `collate_fn_map` for their type, otherwise container by container.

    A function of the map takes the list and `collate_fn_map`. Raises TypeError for a type without a function, RuntimeError if the lengths
    of sequences differ.
    """
    first, functions = batch[0], collate_fn_map or {}
    if type(first) in functions:
        return functions[type(first)](batch, collate_fn_map=collate_fn_map)
    for kind, function in functions.items():
        if isinstance(first, kind):
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _like_mapping(first, {key: collate([each[key] for each in batch], collate_fn_map=collate_fn_map) for key in first})
    if isinstance(first, Sequence):
        return _collate_sequences(batch, collate_fn_map)
    raise TypeError(message(
        f"a batch of {type(first).__name__}", "Tensors, arrays, numbers, texts, and containers of them",
        hint="pass a function that makes a batch: DataLoader(..., collate_fn=...)",
    ))


def _collate_sequences(batch: Sequence[Sequence[Any]], functions: Mapping[Any, Callable[..., Any]] | None) -> Any:
    first = batch[0]
    named = isinstance(first, tuple) and hasattr(first, "_fields")
    if not named and len({len(each) for each in batch}) > 1:
        lengths = sorted({len(each) for each in batch})
        raise RuntimeError(message(f"a batch of sequences of lengths {lengths}", "sequences of one length"))
    columns = [collate(column, collate_fn_map=functions) for column in zip(*batch)]
    if named:
        return type(first)(*columns)
    return columns if isinstance(first, tuple) else _like_sequence(first, columns)


def _tensors(batch: Any, *, collate_fn_map: Any = None) -> Tensor:  # noqa: ARG001 (every function of a map is called so)
    from torchspore.mindspore.ops import stack

    return stack(list(batch), 0)


def _arrays(batch: Any, *, collate_fn_map: Any = None) -> Any:
    if batch[0].dtype.kind in _NO_NUMBERS:
        raise TypeError(message(f"a batch of arrays of {batch[0].dtype}", "arrays of numbers", hint="use numbers, or pass a collate_fn"))
    return collate([Tensor.from_numpy(each) for each in batch], collate_fn_map=collate_fn_map)


def _numbers(batch: Any, *, collate_fn_map: Any = None) -> Tensor:  # noqa: ARG001
    return Tensor(np.stack(batch))


def _floats(batch: Any, *, collate_fn_map: Any = None) -> Tensor:  # noqa: ARG001
    return Tensor(list(batch), dtype=mstype.float64)


def _ints(batch: Any, *, collate_fn_map: Any = None) -> Tensor:  # noqa: ARG001
    return Tensor(list(batch))


def _texts(batch: Any, *, collate_fn_map: Any = None) -> Any:  # noqa: ARG001
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: _tensors, np.ndarray: _arrays, (np.bool_, np.number, np.object_): _numbers, float: _floats, int: _ints, str: _texts,
    bytes: _texts,
}


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate the samples of a batch: Tensors, arrays and numbers are stacked, container by container."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
