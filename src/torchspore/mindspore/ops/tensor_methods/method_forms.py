"""Tensor methods that MindSpore 2.x accepts in two forms: that of 1.x (`axis`, `keepdims`) and that of torch (`dim`, `keepdim`)."""
from __future__ import annotations

import functools
from typing import Any

from torchspore.base.text import message, short
from torchspore.engine.native.operators import with_short_path
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import raw, wrap
from torchspore.mindspore.ops.arrays import array, scattering, search, selection
from torchspore.mindspore.ops.declaration.arguments import sizes
from torchspore.mindspore.ops.declaration.explain import replaced
from torchspore.mindspore.ops.declaration.older_keywords import split_of_older_releases
from torchspore.mindspore.ops.elementwise import arithmetic, unary
from torchspore.mindspore.ops.reductions import cumulative, extremes, reduction, statistics


def spelled(function: Any, **spellings: str) -> Any:
    """Return the method with both names of its keywords: MindSpore accepts `axis` and `dim`, `keepdims` and `keepdim`."""

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {spellings.get(key, key): value for key, value in kwargs.items()}
        return function(self, *args, **kwargs)

    return method


def _flatten(self: Any, *args: Any, order: str = "C", **kwargs: int) -> Any:
    """Merge the axes from `start_dim` to `end_dim`: flatten(order='C', *, start_dim=0, end_dim=-1) or flatten(start_dim=0, end_dim=-1)."""
    if args and isinstance(args[0], str):
        order, args = args[0], args[1:]
    arguments = dict(zip(("start_dim", "end_dim"), args))
    if len(args) > 2 or arguments.keys() & kwargs.keys():
        raise TypeError(message(f"Tensor.flatten({', '.join(map(short, args))})", "flatten(start_dim=0, end_dim=-1)"))
    return array.flatten(self, order, **{"start_dim": 0, **arguments, **kwargs})


def _transpose(self: Any, *axes: Any, dim0: int | None = None, dim1: int | None = None) -> Any:
    """Permute the axes: to the order in one tuple or in ints; two ints swap two axes; without arguments, reverse all."""
    try:
        if dim0 is not None or dim1 is not None:
            axes = (*axes, *[axis for axis in (dim0, dim1) if axis is not None])
        if len(axes) == 2 and isinstance(axes[0], int):
            return array.swapaxes(self, *axes)
        return array.transpose(self, sizes(axes) if axes else tuple(range(self.ndim))[::-1])
    except Exception as error:
        raise replaced(error, _transpose, "Tensor.transpose", axes, {}) from None


def _permute(self: Any, *axis: Any, **kwargs: Any) -> Any:
    """Permute the axes to the order in one tuple (`axis` or `dims`) or in ints."""
    try:
        if not axis and len(kwargs) == 1 and kwargs.keys() <= {"axis", "dims"}:
            axis, kwargs = tuple(kwargs.values()), {}
        if kwargs:
            raise TypeError(message(f"Tensor.permute({', '.join(kwargs)})", "permute(axis) or permute(dims)"))
        if not axis:
            axis = tuple(range(self.ndim))[::-1]            # no argument reverses the axes, as in MindSpore
        return array.permute(self, sizes(axis))
    except Exception as error:
        raise replaced(error, _permute, "Tensor.permute", axis, {}) from None


def _view(self: Any, *shape: Any, dtype: Any = None) -> Any:
    """The same elements in another shape, from one tuple or ints; or the same bytes as another `dtype`."""
    if dtype is None and not engine.active:
        try:
            return wrap(self._t.reshape(*shape))
        except (AttributeError, RuntimeError, TypeError):                          # raised again, and explained, below
            pass
    try:
        if dtype is None and len(shape) == 1 and isinstance(shape[0], dtypes.Type):
            dtype = shape[0]
        if dtype is not None:
            return wrap(raw(self).view(dtypes.to_torch(dtype)))
        return array.reshape(self, sizes(shape))
    except Exception as error:
        raise replaced(error, _view, "Tensor.view", shape, {}) from None


def _tile(self: Any, *dims: Any, **kwargs: Any) -> Any:
    """Repeat along each axis, `dims` (or `reps`) times, from one tuple or ints."""
    try:
        if kwargs.keys() - {"dims", "reps"} or len(kwargs) + bool(dims) != 1:
            raise TypeError(message(f"Tensor.tile({', '.join([*map(short, dims), *kwargs])})", "tile(dims) or tile(reps)"))
        return array.tile(self, tuple(sizes(dims or tuple(kwargs.values()))))
    except Exception as error:
        raise replaced(error, _tile, "Tensor.tile", dims, {}) from None


def _take(self: Any, indices: Any, axis: int | None = None, mode: str = "clip") -> Any:
    """The elements (along `axis`, the slices) at `indices`; negative ones count from the end.

    Out of range, 'clip' takes the nearest end and 'wrap' wraps around.
    """
    if mode not in ("clip", "wrap"):
        raise ValueError(f"Tensor.take(mode={mode!r}): expected 'clip' or 'wrap'.")
    source = self.reshape(-1) if axis is None else self
    length = source.shape[0 if axis is None else axis]
    if mode == "wrap":
        return selection.gather(source, indices % length, 0 if axis is None else axis)
    at = unary.clamp(selection.where(indices < 0, indices + length, indices), 0, length - 1)
    return selection.gather(source, at, 0 if axis is None else axis)


def _gather(self: Any, *args: Any, **kwargs: Any) -> Any:
    """`gather(input_indices, axis, batch_dims)` returns slices, `gather(dim, index)` elements."""
    if "dim" in kwargs or "index" in kwargs or (args and isinstance(args[0], int)):
        return selection.gather_elements(self, *args, **kwargs)
    return selection.gather(self, *args, **kwargs)


def _searchsorted(self: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """The insertion points of the values `v` in this sorted Tensor (int32): before equal elements, or after them for side='right'."""
    return search.searchsorted(self, v, out_int32=True, side=side, right=side == "right", sorter=sorter)


def _argmax(self: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index (int64) of the largest value along `axis`, or in the flat Tensor."""
    return extremes.argmax(self, axis, keepdims)


def _argmin(self: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The index (int32) of the smallest value along `axis`, or in the flat Tensor."""
    return extremes.argmin(self, axis, keepdims)


def _cumsum(self: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """The cumulative sums along `axis`, or of the flat Tensor, in `dtype`; narrow integers are summed in int32."""
    summable = unary.cast(self, dtypes.int32) if self.dtype in _NARROW else self
    out = cumulative.cumsum(array.reshape(summable, (-1,)), 0) if axis is None else cumulative.cumsum(summable, axis)
    return out if dtype is None or dtype == self.dtype else unary.cast(out, dtype)


_NARROW = (dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.uint8)


METHODS: dict[str, Any] = {
    "flatten": _flatten, "transpose": with_short_path(_transpose, "x.transpose"), "permute": with_short_path(_permute, "x.permute"),
    "view": with_short_path(_view, "x.reshape"), "tile": _tile,
    "take": spelled(_take, index="indices"), "gather": _gather, "searchsorted": _searchsorted,
    "argmax": spelled(_argmax, dim="axis", keepdim="keepdims"), "argmin": spelled(_argmin, dim="axis", keepdim="keepdims"),
    "median": spelled(statistics.median, dim="axis", keepdim="keepdims"),
    "nanmedian": spelled(statistics.nanmedian, dim="axis", keepdim="keepdims"),
    "std": spelled(reduction.std, dim="axis", keepdim="keepdims", correction="ddof"),
    "var": spelled(reduction.var, dim="axis", keepdim="keepdims", correction="ddof"),
    "prod": spelled(reduction.prod, dim="axis", keepdim="keep_dims"), "cumsum": spelled(_cumsum, dim="axis"),
    "all": spelled(reduction.all, dim="axis", keepdim="keep_dims"), "any": spelled(reduction.any, dim="axis", keepdim="keep_dims"),
    "sort": spelled(selection.sort, dim="axis"), "argsort": spelled(selection.argsort, dim="axis"),
    "split": spelled(split_of_older_releases(array.split), dim="axis", split_size="split_size_or_sections"),
    "chunk": spelled(array.chunk, dim="axis"),
    "scatter": spelled(scattering.scatter, dim="axis"), "index_select": spelled(selection.index_select, dim="axis"),
    "repeat_interleave": spelled(array.repeat_interleave, dim="axis"), "unsqueeze": array.unsqueeze,
    "diagonal": spelled(array.diagonal, axis1="dim1", axis2="dim2"), "remainder": spelled(arithmetic.floor_mod, other="y", divisor="y"),
}
