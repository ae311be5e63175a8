"""Scatter values into Parameters and Tensors: set, add, multiply, compare; segment sums; dense forms of sparse values."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.formulas import quotients
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration import wide
from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.declare import op, updating
from torchspore.mindspore.ops.declaration.promote import check_not_narrowed, check_stored_dtype
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor
_REDUCTIONS = {"mul": "prod", "max": "amax", "min": "amin"}


def _combine_rows(t: T, positions: T, values: T, operation: str) -> T:
    """Combine `values` (n, ...) into the slices of `t` at `positions` (n,) along axis 0, which may repeat."""
    values = values.to(t.dtype).expand(positions.shape[0], *t.shape[1:])
    if operation == "update":
        return t.index_copy(0, positions, values)
    if operation in ("add", "sub"):
        return t.index_add(0, positions, values, alpha=1 if operation == "add" else -1)
    at = positions.reshape(-1, *[1] * (t.ndim - 1)).expand(values.shape)
    if operation == "div":
        if t.dtype in wide.WIDE:
            products = torch.ones_like(t, dtype=torch.int64).scatter_reduce(0, at, values.long(), "prod")
            if t.dtype is torch.uint64:
                return wide.quotient(t, products.view(torch.uint64))
            return quotients.truncate_divide(t.long(), products).to(t.dtype)
        divisors = torch.ones_like(t).scatter_reduce(0, at, values, "prod")
        return t / divisors if t.is_floating_point() or t.is_complex() else quotients.truncate_divide(t, divisors)
    return t.scatter_reduce(0, at, values, _REDUCTIONS[operation])


def _scatter_rows(t: T, indices: T, updates: T, operation: str) -> T:
    """Combine `updates` (indices.shape + t.shape[1:]) into the slices of `t` at `indices`."""
    if tuple(updates.shape) != (*indices.shape, *t.shape[1:]):
        raise ValueError(f"expected updates of shape {(*indices.shape, *t.shape[1:])}, got {tuple(updates.shape)}.")
    return _combine_rows(t, _integers(indices).reshape(-1), updates.reshape(-1, *t.shape[1:]), operation)


def _scatter_points(t: T, indices: T, updates: T, operation: str) -> T:
    """Combine `updates` into the slices of `t` that the rows of `indices` (..., k) select along the first k axes."""
    depth = indices.shape[-1] if indices.ndim else 0
    if not 0 < depth <= t.ndim:
        raise ValueError(f"expected indices of shape (..., k) with k from 1 to {t.ndim}, got {tuple(indices.shape)}.")
    rest = t.shape[depth:]
    if tuple(updates.shape) != (*indices.shape[:-1], *rest):
        raise ValueError(f"expected updates of shape {(*indices.shape[:-1], *rest)}, got {tuple(updates.shape)}.")
    points = _integers(indices).reshape(-1, depth)
    position = points[:, 0]
    for axis in range(1, depth):
        position = position * t.shape[axis] + points[:, axis]
    flat = t.reshape(math.prod(t.shape[:depth]), *rest)
    return _combine_rows(flat, position, updates.reshape(-1, *rest), operation).reshape(t.shape)


def _integers(indices: T) -> T:
    if indices.is_floating_point() or indices.dtype is torch.bool:
        raise TypeError("expected integers as indices.\n\nhint: write indices.astype(mindspore.int32).")
    return indices.long()


_DESCRIPTIONS = {
    "update": "The values of `updates` at", "add": "`updates` added to", "sub": "`updates` subtracted from", "mul": "`updates` times",
    "div": "The quotients by `updates` of", "max": "The larger of `updates` and", "min": "The smaller of `updates` and",
}
_WIDE = {**dict.fromkeys(("update", "add", "sub", "mul"), Widening()), **dict.fromkeys(("max", "min"), Widening(compares=True))}
"""Division has its own rule in `_rows`."""


def _declare_in_place(operation: str) -> None:
    """Declare the operators that write into a Parameter: `scatter_*`, `Scatter*`, `scatter_nd_*` and `ScatterNd*`."""
    spelled = operation.title()
    locks = operation == "update"
    widening = _WIDE.get(operation)

    def function(input_x: T, indices: T, updates: T) -> T:
        check_stored_dtype(input_x.dtype, updates)
        return _scatter_rows(input_x, indices, updates, operation)

    def primitive(input_x: T, indices: T, updates: T, use_locking: bool = locks) -> T:
        return function(input_x, indices, updates)

    def function_nd(input_x: T, indices: T, updates: T, use_locking: bool = locks) -> T:
        check_stored_dtype(input_x.dtype, updates)
        return _scatter_points(input_x, indices, updates, operation)

    rows = f"{_DESCRIPTIONS[operation]} the rows of a Parameter at `indices`, in place; returns it."
    points = f"{_DESCRIPTIONS[operation]} the parts of a Parameter at the rows of `indices` (..., k), in place; returns it."
    updating("input_x", name="_scatter_sub" if operation == "sub" else f"scatter_{operation}", wide=widening)(_documented(function, rows))
    declare = updating(
        "input_x", primitive=f"Scatter{spelled}", init=("use_locking",), name=f"_scatter_{operation}_primitive", wide=widening
    )
    declare(_documented(primitive, rows))
    declare = updating("input_x", primitive=f"ScatterNd{spelled}", init=("use_locking",), name=f"scatter_nd_{operation}", wide=widening)
    declare(_documented(function_nd, points))


def _documented(function: Callable[..., T], doc: str) -> Callable[..., T]:
    function.__doc__ = doc
    return function


def _declare_copies(operation: str) -> None:
    """Declare the operators that return a changed copy: `tensor_scatter_*` and `TensorScatter*`."""

    def function(input_x: T, indices: T, updates: T) -> T:
        return _scatter_points(input_x, indices, updates, operation)

    function.__name__ = f"tensor_scatter_{operation}"
    function.__doc__ = f"{_DESCRIPTIONS[operation]} the parts at the rows of `indices` (..., k), in a copy."
    op(primitive=f"TensorScatter{operation.title()}", methods=(function.__name__, f"scatter_{operation}"), wide=_WIDE.get(operation))(
        function
    )


for _how in _DESCRIPTIONS:
    _declare_in_place(_how)
for _how in ("sub", "mul", "div", "max", "min"):
    _declare_copies(_how)


@updating("input_x", primitive="ScatterNonAliasingAdd", wide=Widening())
def _scatter_non_aliasing_add(input_x: T, indices: T, updates: T) -> T:
    """Add `updates` to the parts of a Parameter at the rows of `indices` (..., k), in place; return it."""
    check_stored_dtype(input_x.dtype, updates)
    return _scatter_points(input_x, indices, updates, "add")


@op(methods=("scatter",))
def scatter(input: T, axis: int, index: T, src: Any) -> T:
    """A copy with the elements of `src` at the positions `index` along `axis`."""
    check_not_narrowed(input.dtype, src, "src")
    return input.scatter(axis, _integers(index), src if not isinstance(src, T) else src.to(input.dtype))


def _scatter_elements(data: T, indices: T, updates: T, axis: int, reduction: str) -> T:
    if reduction not in ("none", "add"):
        raise ValueError(f"reduction={reduction!r}: expected 'none' or 'add'.")
    at = _integers(indices)
    at = torch.where(at < 0, at + data.shape[axis], at)
    return data.scatter(axis, at, updates) if reduction == "none" else data.scatter_add(axis, at, updates)


@op(wide=Widening())
def tensor_scatter_elements(input_x: T, indices: T, updates: T, axis: int = 0, reduction: str = "none") -> T:
    """A copy with `updates` at the positions `indices` along `axis`, set or (reduction 'add') added."""
    return _scatter_elements(input_x, indices, updates, axis, reduction)


@op(primitive="TensorScatterElements", init=("axis", "reduction"), wide=Widening())
def _tensor_scatter_elements(data: T, indices: T, updates: T, axis: int = 0, reduction: str = "none") -> T:
    """A copy with `updates` at the positions `indices` along `axis`, set or (reduction 'add') added."""
    return _scatter_elements(data, indices, updates, axis, reduction)


@op(primitive="ScatterAddWithAxis", init=("axis",))
def _scatter_add_with_axis(input_x: T, indices: T, updates: T, axis: int = 0) -> T:
    """A copy with `updates` added at the positions `indices` along `axis`."""
    return _scatter_elements(input_x, indices, updates, axis, "add")


def _add_to_slices(x: T, indices: T, values: T, axis: int, sign: int = 1) -> T:
    check_not_narrowed(x.dtype, values, "updates")
    return x.index_add(axis, _integers(indices), values.to(x.dtype), alpha=sign)


@updating("x")
def index_add(x: T, indices: T, y: T, axis: int, use_lock: bool = True, check_index_bound: bool = True) -> T:
    """Add y to the slices of a Parameter at `indices` along `axis`, in place; return it."""
    return _add_to_slices(x, indices, y, axis)


@updating("x", primitive="IndexAdd", init=("axis", "use_lock", "check_index_bound"))
def _index_add_primitive(x: T, indices: T, y: T, axis: int, use_lock: bool = True, check_index_bound: bool = True) -> T:
    """Add y to the slices of a Parameter at `indices` along `axis`, in place; return it."""
    return _add_to_slices(x, indices, y, axis)


@updating("var", primitive="InplaceIndexAdd", init=("axis",), name="inplace_index_add")
def _inplace_index_add(var: T, indices: T, updates: T, axis: int) -> T:
    """Add `updates` to the slices of a Parameter at `indices` along `axis`, in place; return it."""
    return _add_to_slices(var, indices, updates, axis)


@op(methods=("index_add",))
def _index_add_method(input: T, dim: int, index: T, source: T, *, alpha: Any = 1) -> T:
    """A copy with alpha * source added to the slices at `index` along `dim`."""
    return input.index_add(dim, _integers(index), source, alpha=alpha)


@op(primitive="IndexFill", methods=("index_fill",), wide=Widening())
def index_fill(x: T, axis: Any, index: T, value: Any) -> T:
    """A copy with `value` in the slices at `index` along `axis`."""
    check_not_narrowed(x.dtype, value, "a value", is_size_free=True)
    return x.index_fill(int(axis), _integers(index), value.to(x.dtype) if isinstance(value, T) else value)


@op(primitive="IndexPut", init=("accumulate",), wide=Widening())
def _index_put(x1: T, x2: T, indices: Any, accumulate: int = 0) -> T:
    """A copy of x1 with the values x2 at the indexes along its first axes, set or (accumulate 1) added."""
    if accumulate not in (0, 1):
        raise ValueError(f"accumulate={accumulate!r}: expected 0 or 1.")
    return x1.index_put(tuple(_integers(i) for i in indices), x2, accumulate=bool(accumulate))


def _at_rows(x: T, v: T, indices: Any, operation: str) -> T:
    if not isinstance(indices, (int, tuple)):
        raise TypeError(f"expected an int or a tuple of ints as indices, got {type(indices).__name__}.")
    check_not_narrowed(x.dtype, v, "v")
    return _combine_rows(x, constant(sizes(indices), x.device), v, operation)


@op()
def inplace_add(x: T, v: T, indices: Any) -> T:
    """A copy of x with v added to the rows at `indices`."""
    return _at_rows(x, v, indices, "add")


@op()
def inplace_sub(x: T, v: T, indices: Any) -> T:
    """A copy of x with v subtracted from the rows at `indices`."""
    return _at_rows(x, v, indices, "sub")


@op(methods=("inplace_update",))
def inplace_update(x: T, v: T, indices: Any) -> T:
    """A copy of x with v in place of the rows at `indices`."""
    return _at_rows(x, v, indices, "update")


@op(primitive="InplaceAdd", init=("indices",))
def _inplace_add(x: T, input_v: T, indices: Any) -> T:
    """A copy of x with v added to the rows at `indices`."""
    return _at_rows(x, input_v, indices, "add")


@op(primitive="InplaceSub", init=("indices",))
def _inplace_sub(x: T, input_v: T, indices: Any) -> T:
    """A copy of x with v subtracted from the rows at `indices`."""
    return _at_rows(x, input_v, indices, "sub")


@op(primitive="InplaceUpdate", init=("indices",))
def _inplace_update(x: T, v: T, indices: Any) -> T:
    """A copy of x with v in place of the rows at `indices`."""
    return _at_rows(x, v, indices, "update")


@op(primitive="InplaceUpdateV2")
def _inplace_update_v2(x: T, indices: Any, v: T) -> T:
    """A copy of x with v in place of the rows at `indices`."""
    return _at_rows(x, v, indices, "update")


@op(methods=("select_scatter",))
def select_scatter(input: T, src: T, axis: int, index: int) -> T:
    """A copy with `src` in place of the slice at `index` along `axis`."""
    check_not_narrowed(input.dtype, src, "src")
    return torch.select_scatter(input, src, axis, index)


@op(methods=("slice_scatter",), wide=Widening())
def slice_scatter(input: T, src: T, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> T:
    """A copy with `src` in place of the elements from `start` to `end` by `step` along `axis`."""
    positions = torch.arange(*slice(start, end, step).indices(input.shape[axis]), device=input.device)
    shape = list(input.shape)
    shape[axis] = positions.shape[0]
    if list(src.shape) != shape:
        raise ValueError(f"expected src of shape {tuple(shape)}, got {tuple(src.shape)}.")
    check_not_narrowed(input.dtype, src, "src")
    return input.index_copy(axis, positions, src.to(input.dtype))
