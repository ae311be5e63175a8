"""The key of a call: what must be equal for a captured graph to be used again."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.engine.graph.capture.dynamic_shapes import Axes
from torchspore.engine.graph.refusal import Kind, Refusal
from torchspore.engine.number import MUTABLE
from torchspore.engine.tensor import Composite, TensorBase

_NO_AXES: dict[int, Axes] = {}
_PLAIN = (int, float, complex, str, bytes, bool, type(None))


def signature(value: Any, flat: list[TensorBase], numbers: list[Any], axes: dict[int, Axes] = _NO_AXES) -> Any:
    """What counts of an argument: of a Tensor shape, strides, dtype, device and which alias which, of all else its value.

    Appends the Tensors in it to `flat`, and the ints and floats, of which only the type counts here, to `numbers`. `axes` says by id of a
    Tensor which of its lengths do not count. Raises Refusal for a mutable object that can't be compared.
    """
    kind = type(value)
    if isinstance(value, TensorBase):
        return _of_tensor(value, flat, axes)
    if kind is int or kind is float or kind in MUTABLE:
        numbers.append(value)
        return kind
    if kind in _PLAIN:
        return (kind, value)
    if kind is tuple or kind is list:
        return (kind, *[signature(item, flat, numbers, axes) for item in value])
    if kind is dict:
        return (kind, *[(key, signature(item, flat, numbers, axes)) for key, item in value.items()])
    if isinstance(value, tuple):
        return (kind, *[signature(item, flat, numbers, axes) for item in value])
    if isinstance(value, Composite):
        return (kind, value.fixed(), *[signature(part, flat, numbers, axes) for part in value.parts()])
    if isinstance(value, (np.ndarray, list, dict, set)):
        raise Refusal(f"is given an argument of type {kind.__name__}", kind=Kind.ARGUMENT)
    try:
        hash(value)
    except TypeError:
        raise Refusal(f"is given an argument of type {kind.__name__}", kind=Kind.ARGUMENT) from None
    return (kind, value)


def _of_tensor(tensor: TensorBase, flat: list[TensorBase], axes: dict[int, Axes]) -> Any:
    for place, other in enumerate(flat):
        if other is tensor:
            flat.append(tensor)
            return place
    flat.append(tensor)
    t = tensor._t
    if type(tensor).__dict__.get("__parameter__"):
        return (tensor, t.shape, t.stride(), t.dtype, t.device)
    if axes and id(tensor) in axes:
        open_ = axes[id(tensor)]
        return (tuple(None if axis in open_ else size for axis, size in enumerate(t.shape)), t.dtype, t.device)
    return (t.shape, t.stride(), t.dtype, t.device)


def meta(tensor: TensorBase) -> Any:
    """What a graph depends on of an input that is no argument."""
    t = tensor._t
    return (t.shape, t.stride(), t.dtype, t.device, tensor.__dict__.get("_requires_grad"))


