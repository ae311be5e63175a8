"""Joins the values that two branches leave in the same position: equal Python values stay, Tensors and numbers become results of the graph.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.number import KINDS, Number, is_plain
from torchspore.engine.tensors.tensor import TensorBase, raw, transform, wrap
from torchspore.engine.tensors.tree import like
from torchspore.graph.capture.ambiguous_tensors import may_be_number, may_be_parameter
from torchspore.graph.control_flow.subgraph import Outcome, origin
from torchspore.graph.fx.control_flow import meta_tensor_like
from torchspore.graph.refusal import Kind, Refusal


class _Nothing:
    """A value that does not exist on this way, and that no later code reads after it."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING: Any = _Nothing()


class Mismatch(Exception):
    """Two sides that can't be one; the text shows both."""


@dataclass(frozen=True)
class Source:
    """Where one side has a value: output `index` of its graph, a tensor from outside, a Python number, or nothing."""

    index: int | None = None
    outside: torch.Tensor | None = None
    value: Any = NOTHING
    is_fixed: bool = False
    """The number represents a Python number, which cannot be written into."""


@dataclass
class Slot:
    """One result of the joined graph."""

    then_source: Source
    right: Source
    meta: torch.Tensor
    contiguous: bool = False
    is_shared: bool = False
    """One side may be a Parameter itself."""
    may_be_number: bool = False
    """One side is, or may be, a Python number, and the other a Tensor."""
    tensors: tuple[TensorBase | None, TensorBase | None] = (None, None)
    """The Tensor of each side, if it is one."""


@dataclass(frozen=True)
class JoinedTensor:
    """Represents the result number `index` in a structure."""

    index: int
    is_number: bool


class Join:
    """The join of two outcomes; `slots` are the results that their graphs are to have."""

    def __init__(self, then_outcome: Outcome, right: Outcome) -> None:
        self._then, self._right = then_outcome, right
        self.slots: list[Slot] = []
        self._pairs: dict[tuple[int, int], JoinedTensor] = {}

    def value(self, a: Any, b: Any) -> Any:
        """Return one structure for both, with Places where the sides differ. Raises Mismatch."""
        if a is b:
            return a
        if a is NOTHING or b is NOTHING:
            return self._join_one_sided(b if a is NOTHING else a, a is NOTHING)
        if isinstance(a, TensorBase) or isinstance(b, TensorBase) or (is_plain(a) and is_plain(b)):
            return self._leaves(a, b)
        if type(a) is not type(b):
            raise Mismatch(sides(a, b))
        if isinstance(a, (list, tuple)):
            if len(a) != len(b):
                raise Mismatch(sides(a, b))
            return like(a, [self.value(x, y) for x, y in zip(a, b)])
        if isinstance(a, dict):
            if list(a) != list(b):
                raise Mismatch(sides(a, b))
            return like(a, [self.value(x, b[key]) for key, x in a.items()])
        if is_equal(a, b):
            return a
        raise Mismatch(sides(a, b))

    def _leaves(self, a: Any, b: Any) -> Any:
        if is_plain(a) and is_plain(b):
            if type(a) is not type(b):
                raise Mismatch(sides(a, b))
            if a == b or (a != a and b != b):
                return a
            return self._slot(Source(value=a, is_fixed=True), Source(value=b, is_fixed=True), _number_meta(a), True)
        kinds = [_kind(v) for v in (a, b)]
        if None in kinds:
            raise Mismatch(sides(a, b))
        if isinstance(a, TensorBase) and isinstance(b, TensorBase):
            if (id(a), id(b)) in self._pairs:
                return self._pairs[id(a), id(b)]
            then_source, other = self._source(self._then, a), self._source(self._right, b)
            then_meta, right = self._meta(self._then, a), self._meta(self._right, b)
            has_equal_class = isinstance(a, Number) is isinstance(b, Number)
            if then_meta.shape != right.shape or then_meta.dtype is not right.dtype or not (has_equal_class or then_meta.ndim == 0):
                raise Mismatch(sides(a, b))
            uneven = then_meta.stride() != right.stride()
            is_number = isinstance(a, Number) and isinstance(b, Number)
            joined = self._slot(then_source, other, meta_tensor_like(then_meta, uneven), is_number, uneven)
            self.slots[joined.index].is_shared = may_be_parameter(a) or may_be_parameter(b)
            self.slots[joined.index].may_be_number = may_be_number(a) or may_be_number(b)
            self.slots[joined.index].tensors = (a, b)
            self._pairs[id(a), id(b)] = joined
            return joined
        tensor, plain = (a, b) if isinstance(a, TensorBase) else (b, a)
        side = self._then if tensor is a else self._right
        meta = self._meta(side, tensor)
        if meta.ndim or not holds(meta.dtype, plain):
            raise Mismatch(sides(a, b))
        is_number = isinstance(tensor, Number)
        if is_number and type(plain) is not KINDS[meta.dtype]:         # `2.5 or 1`: a float or an int, which Tensors take differently
            raise Mismatch(sides(a, b))
        here, there = self._source(side, tensor), Source(value=plain, is_fixed=is_number)
        joined = self._slot(here if tensor is a else there, there if tensor is a else here, meta, is_number)
        self.slots[joined.index].may_be_number = not is_number
        self.slots[joined.index].tensors = (tensor, None) if tensor is a else (None, tensor)
        return joined

    def _join_one_sided(self, value: Any, is_right: bool) -> Any:
        """Return the value of one side if the other side has none: zeros replace it."""
        side = self._right if is_right else self._then

        def join_tensor(tensor: TensorBase) -> JoinedTensor:
            here = self._source(side, tensor)
            is_number = isinstance(tensor, Number)
            joined = self._slot(Source() if is_right else here, here if is_right else Source(), self._meta(side, tensor), is_number)
            slot = self.slots[joined.index]
            slot.is_shared, slot.may_be_number = may_be_parameter(tensor), may_be_number(tensor)
            slot.tensors = (None, tensor) if is_right else (tensor, None)
            return joined

        return transform(value, join_tensor)

    def _slot(self, then_source: Source, right: Source, meta: torch.Tensor, is_number: bool, contiguous: bool = False) -> JoinedTensor:
        self.slots.append(Slot(then_source, right, meta_tensor_like(meta), contiguous))
        return JoinedTensor(len(self.slots) - 1, is_number)

    def _source(self, side: Outcome, tensor: TensorBase) -> Source:
        index = side.outs.get(id(tensor))
        return Source(index=index) if index is not None else from_outside(side, tensor)

    def _meta(self, side: Outcome, tensor: TensorBase) -> torch.Tensor:
        index = side.outs.get(id(tensor))
        return side.metas[index] if index is not None else meta_tensor_like(raw(tensor))


def from_outside(side: Outcome, tensor: TensorBase) -> Source:
    """The Source of a Tensor that `side` left as it was. Raises Refusal where the side wrote into its memory."""
    base = origin(tensor)
    reason = next((reason for other, reason in side.unknown if other is base), None)
    if reason is not None:
        raise reason
    if id(base) in side.rewritten:
        raise Refusal("stores a Tensor in one branch, depending on a Tensor, and writes into it in place in the other", kind=Kind.TWO_KINDS)
    return Source(outside=raw(tensor))


def holds(dtype: torch.dtype, value: Any) -> bool:
    """Return whether a 0-d Tensor of `dtype` may stand for the Python number `value`."""
    if isinstance(value, bool):
        return dtype is torch.bool
    if isinstance(value, int):
        return dtype is not torch.bool
    return dtype.is_floating_point or dtype.is_complex


def filled(structure: Any, results: Sequence[torch.Tensor]) -> Any:
    """Return the structure with Tensors and Numbers in the positions of results."""
    made: dict[int, Any] = {}
    if isinstance(structure, JoinedTensor):
        return Number(results[structure.index]) if structure.is_number else wrap(results[structure.index])
    if isinstance(structure, (tuple, list)):
        return like(structure, [filled(item, results) for item in structure])
    if isinstance(structure, dict):
        return like(structure, [filled(item, results) for item in structure.values()])
    return made.get(id(structure), structure)


def _number_meta(value: Any) -> torch.Tensor:
    dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.float64
    meta_tensor = torch.empty((), dtype=dtype, device="meta")
    meta_tensor.at = torch.device("cpu")  # type: ignore[attr-defined]
    return meta_tensor


def _kind(value: Any) -> str | None:
    return "tensor" if isinstance(value, TensorBase) else "number" if is_plain(value) else None


def is_equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # an object of the user with a custom __eq__
        return False


def shown(value: Any) -> str:
    """A value of one side in a few words."""
    if isinstance(value, Number):
        return f"a Python {KINDS[value._t.dtype].__name__}"
    if isinstance(value, TensorBase):
        return f"a Tensor of shape {tuple(value._t.shape)} and dtype {FROM_TORCH[value._t.dtype]}"
    if isinstance(value, (list, tuple)) and any(isinstance(item, TensorBase) for item in value):
        inner = ", ".join(shown(item) for item in value)
        return f"a {type(value).__name__} of {len(value)}: {inner}"
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def sides(a: Any, b: Any) -> str:
    """Both sides, below each other."""
    return f"  one way:   {shown(a)}\n  the other: {shown(b)}"
