"""The key of a call: what must be equal for a captured graph to be used again."""
from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from typing import Any

import numpy as np
import torch

from torchspore.engine.tensors.mutable_containers import MUTABLE_SEQUENCES, MutableDict
from torchspore.engine.tensors.number import MUTABLE
from torchspore.engine.tensors.tensor import Composite, TensorBase
from torchspore.graph.capture.dynamic_shapes import Axes
from torchspore.graph.capture.ownership import is_identified_by_identity
from torchspore.graph.capture.snapshot import Node, Object, Unwatchable, Walk, is_settled
from torchspore.graph.refusal import Kind, Refusal
from torchspore.translations import translate

_NO_AXES: dict[int, Axes] = {}
_PLAIN = (int, float, complex, str, bytes, bool, type(None))


def signature(value: Any, flat: list[TensorBase], numbers: list[Any], axes: dict[int, Axes] = _NO_AXES) -> Any:
    """Return the part of an argument that a graph depends on: of a Tensor shape, strides, dtype, device and aliases, else its value.

    Of a plain object its identity: the graph watches those of its attributes that what ran names. Appends the Tensors in it to `flat`,
    and the ints and floats, of which only the type counts here, to `numbers`. `axes` says by id of a Tensor which of its lengths do not
    count. Raises Refusal for a mutable object that can't be compared.
    """
    kind = type(value)
    if isinstance(value, TensorBase):
        return _of_tensor(value, flat, axes)
    if kind is int or kind is float or kind in MUTABLE:
        numbers.append(value)
        return (kind, "-0") if value == 0 and kind is float and math.copysign(1.0, value) < 0 else kind
    if kind in _PLAIN:
        return (kind, value)
    if kind is tuple or kind is list or kind in MUTABLE_SEQUENCES:
        return (kind, *[signature(item, flat, numbers, axes) for item in value])
    if kind is dict or kind is OrderedDict or kind is MutableDict:
        return (kind, *[(_of_key(key), signature(item, flat, numbers, axes)) for key, item in value.items()])
    if isinstance(value, tuple):
        if getattr(value, "__dict__", None):
            raise Refusal(translate("receives an argument of type {kind}, which has attributes").format(kind=kind.__name__))
        return (kind, *[signature(item, flat, numbers, axes) for item in value])
    if isinstance(value, Composite):
        return (kind, value.fixed(), *[signature(part, flat, numbers, axes) for part in value.parts()])
    if isinstance(value, (np.ndarray, list, dict, set)):
        raise Refusal(translate("receives an argument of type {kind}").format(kind=kind.__name__), kind=Kind.ARGUMENT)
    if is_settled(value) or is_identified_by_identity(value):
        return (kind, value)
    if getattr(kind, "__dataclass_params__", None) is not None and kind.__dataclass_params__.frozen:
        fixed: list[Any] = []                                      # numbers in it are not inputs of a graph
        fields = [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
        return (kind, *[(name, signature(item, flat, fixed, axes)) for name, item in fields], tuple(fixed))
    return Argument(value)


class Argument:
    """An object among the arguments: equal to itself or, where its class knows another equality, to one of that class that holds the same.

    The class's own equality is not used: it belongs to the program, may ignore what counts, and may count how often it is called.
    """

    __slots__ = ("_hash", "_is_itself", "_node", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._node: Node | None = None
        kind: Any = type(value)
        self._is_itself = kind.__eq__ is object.__eq__
        if kind.__hash__ is None:
            raise Refusal(translate("receives an argument of type {kind}").format(kind=kind.__name__), kind=Kind.ARGUMENT)
        self._hash = id(value) if self._is_itself else hash(kind)

    def keep(self) -> None:
        """Take a snapshot, before this becomes part of a stored key. Raises Refusal."""
        try:
            self._node = Walk({}).take(self.value)
        except (Unwatchable, RecursionError) as reason:
            raise Refusal(f"receives an argument of type {type(self.value).__name__}, which {reason}", kind=Kind.ARGUMENT) from None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Argument):
            return False
        if self._node is None:
            return other._node is not None and other == self
        if self._is_itself or not isinstance(self._node, Object):
            return self._node.holds(other.value)
        return type(other.value) is type(self.value) and self._node.is_like(other.value)


def _of_key(key: Any) -> Any:
    """The key of a dict with its type: 1 and True are one key, but not one value."""
    if type(key) is str:
        return key
    return (tuple, *map(_of_key, key)) if type(key) is tuple else (type(key), key)


def keep(form: Any) -> None:
    """Prepare the objects in a signature for storage. Raises Refusal."""
    if isinstance(form, tuple):
        for item in form:
            keep(item)
    elif isinstance(form, Argument):
        form.keep()


def _of_tensor(tensor: TensorBase, flat: list[TensorBase], axes: dict[int, Axes]) -> Any:
    for index, other in enumerate(flat):
        if other is tensor:
            flat.append(tensor)
            return index
    flat.append(tensor)
    t = tensor._t
    if type(tensor).__dict__.get("__parameter__"):
        return (tensor, t.shape, t.stride(), t.dtype, t.device)
    if axes and id(tensor) in axes:
        sizes: list[int | None] = list(t.shape)
        for axis in axes[id(tensor)]:
            sizes[axis] = None
        return (tuple(sizes), t.dtype, t.device)
    attributes = tensor.__dict__
    if t.__class__ is torch.Tensor and "_sharded_layout" not in attributes:
        return (t.shape, t.stride(), t.dtype, t.device, *_carried(attributes)) if attributes else (t.shape, t.stride(), t.dtype, t.device)
    layout = tensor.__dict__.get("_sharded_layout") or getattr(t, "sharded_layout", None)
    return (t.shape, t.stride(), t.dtype, t.device, layout)


def _carried(attributes: dict[str, Any]) -> list[Any]:
    """Return the attributes that a program attached to a Tensor. Raise Refusal for values that may change."""
    custom = [(name, type(value), value) for name, value in attributes.items() if name[0] != "_" and name != "init"]
    for name, kind, _ in custom:
        if kind not in _PLAIN:
            raise Refusal(f"receives a Tensor with an attribute {name!r} of type {kind.__name__}", kind=Kind.ARGUMENT)
    return custom
