"""`mutable`: marks values that a graph must not treat as constants."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, with_type
from torchspore.engine.tensors.number import MutableFloat, MutableInt
from torchspore.engine.tensors.tensor import TensorBase


def mutable(input_data: Any, dynamic_len: bool = False) -> Any:
    """Return `input_data`; its numbers are inputs of a graph from the first call on, as Tensors always are.

    It is an int, a float, a Tensor, or a list, tuple or dict of such. `dynamic_len` is for lists and tuples that change their length: each
    length has a separate graph here. Raises TypeError for other values, ValueError for `dynamic_len` with a value that has no length.

    >>> mutable((Tensor([1.0]), 2))[1]
    2
    """
    if not isinstance(dynamic_len, bool):
        raise TypeError(message(f"mutable(dynamic_len={dynamic_len!r:.40})", with_type("a bool", dynamic_len)))
    if dynamic_len and not isinstance(input_data, (list, tuple)):
        raise ValueError(f"mutable(dynamic_len=True): expected a list or tuple, got {type(input_data).__name__}.")
    return _marked(input_data)


def _marked(value: Any) -> Any:
    if isinstance(value, (TensorBase, bool)):
        return value
    if isinstance(value, int):
        return MutableInt(value)
    if isinstance(value, float):
        return MutableFloat(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_marked(item) for item in value)
    if isinstance(value, dict):
        return {key: _marked(item) for key, item in value.items()}
    raise TypeError(
        f"mutable({value!r:.40}): expected an int, a float, a Tensor, or a list, tuple or dict of them, got {type(value).__name__}."
    )
