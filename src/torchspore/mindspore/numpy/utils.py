"""Helpers of `mindspore.numpy`: declarations of functions, and conversion of array-likes, dtypes, axes and shapes."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np
import torch

from torchspore.engine.autograd import integer_gradients
from torchspore.engine.devices import device
from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.number import Number
from torchspore.engine.tensors.tensor import raw
from torchspore.mindspore.ops.declaration.declare import bridged
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor
Body = TypeVar("Body", bound=Callable[..., Any])

_LIST = "as a list"
_UNSIGNED = {torch.uint8: 8, torch.uint16: 16, torch.uint32: 32, torch.uint64: 64}
_SIGNED = {torch.int8: 8, torch.int16: 16, torch.int32: 32, torch.int64: 64}
_OF_BITS = {16: torch.int16, 32: torch.int32, 64: torch.int64}
_NAMED = {"int": torch.int32, "int_": torch.int32, "uint": torch.uint32, "float": torch.float32, "float_": torch.float32}


@overload
def function(body: Body) -> Body: ...
@overload
def function(body: Body, *, shown_as: str | None = None, wide: Widening | None = None) -> Body: ...
@overload
def function(*, shown_as: str | None = None, wide: Widening | None = None) -> Callable[[Body], Body]: ...


def function(body: Body | None = None, *, shown_as: str | None = None, wide: Widening | None = None) -> Any:
    """Declare the decorated body, written on torch tensors, as a function of Tensors; `as_list` results become a list.

    Errors use the name `shown_as`, if it is set. `wide` states how the function computes wide unsigned integers
    (`ops/declaration/wide.py`).
    """
    if body is None:
        return functools.partial(function, shown_as=shown_as, wide=wide)
    if shown_as is not None:
        body.shown_as = shown_as  # type: ignore[attr-defined]
    inner = bridged(wide=wide)(body)

    @functools.wraps(body)
    def operator(*arguments: Any, **keywords: Any) -> Any:
        if engine.active:
            try:
                arguments, keywords = tuple(map(_weak, arguments)), {key: _weak(value) for key, value in keywords.items()}
            except RecursionError:                 # endlessly nested lists: the bridge raises the error
                pass
        out = inner(*arguments, **keywords)
        return out if isinstance(out, engine.TensorBase) else _with_lists(out)

    operator.gated = True  # type: ignore[attr-defined]
    return operator  # type: ignore[return-value]


def part_of(name: str) -> Callable[[Body], Body]:
    """Declare a part of the function `name`; errors use that name."""
    return functools.partial(function, shown_as=name)


def _weak(value: Any) -> Any:
    """Return a symbolic number of a graph, in `mindspore.numpy`'s dtype for Python's numbers."""
    if type(value) in (list, tuple):
        return type(value)(map(_weak, value))
    if not isinstance(value, Number):
        return value
    t = raw(value)
    return t.to(torch.float32) if t.dtype is torch.float64 else t.to(torch.int32) if t.dtype is torch.int64 else t


def as_list(items: Any) -> Any:
    """Marks a result of a body as a list; unmarked results become tuples."""
    return {_LIST: tuple(items)}


def _with_lists(out: Any) -> Any:
    if isinstance(out, dict):
        return list(out[_LIST])
    return tuple(map(_with_lists, out)) if isinstance(out, tuple) else out


def dtype_of(dtype: Any) -> torch.dtype:
    """Return the torch dtype of a new array: `int` is int32 and `float` float32; names ignore case.

    Raises TypeError for a value that is not a dtype, name or Python type.
    """
    if isinstance(dtype, str) and dtype.lower() in _NAMED:
        return _NAMED[dtype.lower()]
    if dtype is int:
        return torch.int32
    if dtype is None:
        raise TypeError("dtype=None: expected a dtype such as mindspore.float32.")
    if isinstance(dtype, str):
        try:
            return dtypes.to_torch(np.dtype(dtype))             # 'i4', '<f8' and the like
        except TypeError:
            return dtypes.of_cast(dtype)
    return dtypes.to_torch(dtype)


def dtype_of_cast(dtype: Any) -> torch.dtype:
    """Return the torch dtype of a cast, as for `Tensor.astype`: `int` is int64 and `float` float64. Raises TypeError."""
    try:
        return dtypes.of_cast(dtype)
    except TypeError:
        return dtype_of(dtype)


def cast(t: T, dtype: Any) -> T:
    """Return `t` in the requested dtype, or unchanged if that is None."""
    return t if dtype is None else integer_gradients.cast(t, dtype_of_cast(dtype))


def to_tensor(value: Any) -> T:
    """Return the torch tensor of an array-like: Python ints give int32, floats float32. Raises TypeError for other values."""
    if isinstance(value, T):
        return value
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        dtype = torch.bool if isinstance(value, bool) else torch.int32 if isinstance(value, int) else torch.float32
        return constant(value, device.current(), dtype)
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return constant(value, device.current()).to(torch.int32 if isinstance(value, torch.SymInt) else torch.float32)
    if isinstance(value, (list, tuple)):
        return _from_sequence(value)
    hint = "\n\nhint: write Tensor(array) for a NumPy array." if isinstance(value, np.ndarray) else ""
    raise TypeError(f"expected a Tensor, a number, a list or a tuple, got {type(value).__name__}.{hint}")


def _from_sequence(value: Any) -> T:
    if _has_tensor(value):
        items = [to_tensor(item) for item in value]
        return torch.stack(together(*items))
    try:
        array = np.array(value)
    except ValueError:
        raise ValueError(f"{str(value)[:60]}: expected rows of equal length.") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{str(value)[:60]}: expected numbers or truth values.")
    dtype = {"b": torch.bool, "f": torch.float32}.get(array.dtype.kind, torch.int32)
    return constant(array.tolist(), device.current(), dtype)


def _has_tensor(value: Any) -> bool:
    return any(isinstance(item, T) or (isinstance(item, (list, tuple)) and _has_tensor(item)) for item in value)


def only_tensor(value: Any, name: str = "input") -> T:
    """Return `value` if it is a Tensor. Raises TypeError otherwise."""
    if isinstance(value, T):
        return value
    raise TypeError(f"expected a Tensor as {name}, got {type(value).__name__}.\n\nhint: write mindspore.numpy.array(...) for a list.")


def promote(first: torch.dtype, second: torch.dtype) -> torch.dtype:
    """Return the common dtype: torch's, except for unsigned with signed integers, which take the next wider one."""
    if first is second:
        return first
    for candidate, other in ((first, second), (second, first)):
        if candidate in _UNSIGNED and other in _SIGNED:
            bits = max(2 * _UNSIGNED[candidate], _SIGNED[other])
            return _OF_BITS.get(bits, torch.float64)
        if candidate in _UNSIGNED and other in _UNSIGNED:
            return candidate if _UNSIGNED[candidate] > _UNSIGNED[other] else other
        if candidate in _UNSIGNED and (other.is_floating_point or other.is_complex or other is torch.bool):
            return candidate if other is torch.bool else other
    return torch.promote_types(first, second)


def together(*values: T) -> list[T]:
    """Return the tensors in their common dtype."""
    common = functools.reduce(promote, [value.dtype for value in values])
    return [value if value.dtype is common else value.to(common) for value in values]


def pair(x: Any, y: Any) -> list[T]:
    """Return two array-likes in one dtype."""
    return together(to_tensor(x), to_tensor(y))


def floating(t: T) -> T:
    """Return `t`, in float32 if it has integers or bools."""
    return t if t.is_floating_point() or t.is_complex() else t.to(torch.float32)


def axis_of(axis: Any, ndim: int) -> int:
    """Return an axis counted from the front. Raises TypeError if it is not an int, ValueError if it does not exist."""
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)):
        raise TypeError(f"expected an int as axis, got {type(axis).__name__}.")
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis={axis}: expected one from {-ndim} to {ndim - 1}, the array has {ndim} axes.")
    return int(axis) % ndim


def axes_of(axis: Any, ndim: int, can_repeat: bool = False) -> tuple[int, ...]:
    """Return the axes of an int, a tuple or a list, all for None or ().

    Raises ValueError for a repeated axis, unless `can_repeat`: then it counts once.
    """
    if axis is None or (isinstance(axis, tuple) and not axis):
        return tuple(range(ndim))
    axes = [axis_of(a, ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    distinct = tuple(dict.fromkeys(axes))
    if len(distinct) < len(axes) and not can_repeat:
        raise ValueError(f"axis={axis!r}: expected each axis once.")
    return distinct


def shape_of(shape: Any) -> list[int]:
    """Return the lengths of an int, a tuple, a list or a Tensor. Raises TypeError for other values, ValueError for a negative length."""
    if isinstance(shape, T):
        shape = shape.reshape(-1).tolist()
    lengths = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    lengths = [int(item) if isinstance(item, T) else item for item in lengths]
    for item in lengths:
        if isinstance(item, bool) or not isinstance(item, (int, np.integer, torch.SymInt)):
            raise TypeError(f"shape={shape!r}: expected an int, or a tuple or list of ints.")
        if item < 0:
            raise ValueError(f"shape={shape!r}: expected lengths of at least 0.")
    return lengths


def is_scalar(value: Any) -> bool:
    """Return whether `value` is a Python number."""
    return isinstance(value, (bool, int, float))


def widened(t: T) -> T:
    """Return `t`, in int64 if it has an unsigned integer dtype that torch hardly supports."""
    return t.to(torch.int64) if t.dtype in (torch.uint16, torch.uint32, torch.uint64) else t
