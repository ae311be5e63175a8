"""New arrays: from data, constants, ranges, random numbers; and the names of array-creating functions in other files."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.engine.devices import device
from torchspore.engine.random import kernel_numbers
from torchspore.engine.random.generators import drawing
from torchspore.mindspore.numpy.utils import (
    axis_of,
    dtype_of,
    dtype_of_cast,
    floating,
    function,
    only_tensor,
    pair,
    part_of,
    shape_of,
    to_tensor,
)
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


def _in_dtype(t: T, dtype: Any) -> T:
    """Return a new array in the requested dtype, or unchanged if that is None."""
    return t if dtype is None else t.to(dtype_of(dtype))


@part_of("array")
def _create_array(obj: Any, dtype: Any, ndmin: int) -> T:
    t = _in_dtype(to_tensor(obj), dtype)
    t = t.clone() if t is obj else t
    return t.reshape([1] * max(0, ndmin - t.ndim) + list(t.shape))


def _is_done(obj: Any, dtype: Any) -> bool:
    from torchspore.mindspore.common import Tensor

    return isinstance(obj, Tensor) and (dtype is None or dtype_of(dtype) is obj._t.dtype)


def array(obj: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Any:
    """A Tensor from a number, a list, a tuple or a Tensor, with at least `ndmin` axes; int32 for ints, float32 for floats.

    Without `copy`, a Tensor that already has the requested form is returned. Raises TypeError for other data, including NumPy arrays.
    """
    if not copy and _is_done(obj, dtype) and obj.ndim >= ndmin:
        return obj
    return _create_array(obj, dtype, ndmin)


def asarray(a: Any, dtype: Any = None) -> Any:
    """A Tensor from a number, a list or a tuple, or the Tensor `a` itself; int32 for ints, float32 for floats."""
    return array(a, dtype, copy=False)


@function
def asfarray(a: Any, dtype: Any = torch.float32) -> T:
    """`a` in a floating dtype: float32 if `dtype` is not one; unchanged if `dtype` is None."""
    t = to_tensor(a)
    if dtype is None:
        return t.clone()
    target_dtype = dtype_of(dtype)
    return t.to(target_dtype if target_dtype.is_floating_point else torch.float32)


@function
def copy(a: Any) -> T:
    """A new Tensor with the values of `a`, a Tensor, a number, a list or a tuple."""
    return to_tensor(a).clone()


def _full(shape: Any, value: Any, dtype: torch.dtype) -> T:
    return torch.full(shape_of(shape), value, dtype=dtype, device=device.current())


@function
def zeros(shape: Any, dtype: Any = torch.float32) -> T:
    """Zeros of `shape`, an int or a sequence of ints."""
    return _full(shape, 0, dtype_of(dtype))


@function
def ones(shape: Any, dtype: Any = torch.float32) -> T:
    """Ones of `shape`, an int or a sequence of ints."""
    return _full(shape, 1, dtype_of(dtype))


@function
def empty(shape: Any, dtype: Any = torch.float32) -> T:
    """An array of `shape` with unspecified values (zeros)."""
    return _full(shape, 0, dtype_of(dtype))


@function
def full(shape: Any, fill_value: Any, dtype: Any = None) -> T:
    """`fill_value`, a number or an array-like that is broadcast, in `shape`; in its dtype unless `dtype` says otherwise."""
    value = _in_dtype(to_tensor(fill_value), dtype)
    return value.expand(shape_of(shape)).clone()


def _like(prototype: Any, value: Any, dtype: Any, shape: Any) -> T:
    t = to_tensor(prototype)
    target_dtype = t.dtype if dtype is None else dtype_of(dtype)
    lengths = list(t.shape) if shape is None else shape_of(shape)
    return to_tensor(value).to(target_dtype).expand(lengths).clone()


@function
def zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> T:
    """Zeros in the shape and dtype of `a`, a Tensor, a number, a list or a tuple, unless `dtype` or `shape` say otherwise."""
    return _like(a, 0, dtype, shape)


@function
def ones_like(a: Any, dtype: Any = None, shape: Any = None) -> T:
    """Ones in the shape and dtype of `a`, a Tensor, a number, a list or a tuple, unless `dtype` or `shape` say otherwise."""
    return _like(a, 1, dtype, shape)


@function
def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> T:
    """An array in the shape and dtype of `prototype` with unspecified values (zeros)."""
    return _like(prototype, 0, dtype, shape)


@function
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> T:
    """`fill_value` in the shape and dtype of `a`, a Tensor, a number, a list or a tuple, unless `dtype` or `shape` say otherwise."""
    return _like(a, fill_value, dtype, shape)


@function
def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> T:
    """The numbers from `start` to `stop` (exclusive) by `step`: int32 for ints, else float32. One argument means `stop`, from 0.

    Raises ValueError if there are no numbers.
    """
    bounds = [value for value in (start, stop, step) if value is not None]
    natural = torch.float32 if any(not isinstance(v, (int, torch.SymInt)) for v in bounds) else torch.int32
    start, stop, step = (v.item() if isinstance(v, T) else v for v in (start, stop, step))
    if stop is None:
        natural = torch.bool if isinstance(start, bool) and step is None else natural
        start, stop = 0, start
    step = 1 if step is None else step
    for value in (start, stop, step):
        if isinstance(value, str) or not hasattr(value, "__float__"):
            raise TypeError(message(f"arange of {value!r}", "numbers"))
    if step == 0:
        raise ZeroDivisionError("step=0: expected another number.")
    if (stop - start) / step <= 0:
        raise ValueError(f"start={start}, stop={stop}, step={step}: expected at least one number between them.")
    # Integers are counted exactly; fractions in float64, because the count of values must not depend on float32.
    exact = torch.int64 if natural in (torch.int32, torch.bool) else torch.float64
    return torch.arange(start, stop, step, dtype=exact, device=device.current()).to(natural if dtype is None else dtype_of_cast(dtype))


def _count(num: Any) -> int:
    if not is_int(num):
        raise TypeError(message(f"num={num!r}", "an int"))
    if num < 1:
        raise ValueError(message(f"num={num}", "at least 1"))
    return num


def _spaced(start: Any, stop: Any, num: int, endpoint: bool) -> tuple[T, T | None]:
    """Return `num` values along a new axis 0 (float32), and the step between them, or None without a step."""
    first, last = (t.to(torch.float32) for t in pair(start, stop))
    first, last = torch.broadcast_tensors(first, last)
    parts = num - 1 if endpoint else num
    step = (last - first) / parts if parts else None
    positions = torch.arange(num, dtype=torch.float32, device=first.device).reshape([-1] + [1] * first.ndim)
    values = first + positions * (step if step is not None else torch.zeros_like(first))
    if endpoint and num > 1:
        values = torch.cat([values[:-1], last.unsqueeze(0)])
    return values, step


@function
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0,
) -> Any:
    """`num` numbers from `start` to `stop`, arrays too, along a new `axis`, float32 unless `dtype` says otherwise.

    `endpoint` sets whether `stop` is the last one; `retstep` adds the step, NaN for a single number.
    """
    values, step = _spaced(start, stop, _count(num), endpoint)
    out = _in_dtype(torch.movedim(values, 0, axis_of(axis, values.ndim)), dtype)
    return (out, math.nan if step is None else step) if retstep else out


@function
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0,
) -> T:
    """`num` numbers from base ** start to base ** stop with constant ratio along a new `axis`, float32 unless `dtype` says otherwise."""
    if isinstance(base, bool) or not isinstance(base, (int, float)):
        raise TypeError(message(f"base={base!r}", "a number"))
    values, _ = _spaced(start, stop, _count(num), endpoint)
    return _in_dtype(torch.movedim(torch.pow(float(base), values), 0, axis_of(axis, values.ndim)), dtype)


@function
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> T:
    """`num` numbers from `start` to `stop`, of one sign, with constant ratio along a new `axis`, float32 unless `dtype` says otherwise."""
    first, last = torch.broadcast_tensors(*(t.to(torch.float32) for t in pair(start, stop)))
    parts = _count(num) - 1 if endpoint else num
    positions = torch.arange(num, dtype=torch.float32, device=first.device).reshape([-1] + [1] * first.ndim)
    values = first * torch.pow(torch.pow(last / first, 1 / max(parts, 1)), positions)
    return _in_dtype(torch.movedim(values, 0, axis_of(axis, values.ndim)), dtype)


def _window(m: Any, terms: tuple[float, ...] | None) -> T:
    """Return a window of `m` points: a sum of cosines with the weights `terms`, or a triangle."""
    if not is_int(m):
        raise TypeError(message(f"M={m!r}", "an int"))
    if m <= 1:
        return torch.ones(max(m, 0), device=device.current())
    n = torch.arange(m, dtype=torch.float64, device=device.current())
    if terms is None:
        return (1 - torch.abs(2 * n / (m - 1) - 1)).to(torch.float32)
    parts = [weight * torch.cos(2 * math.pi * k * n / (m - 1)) for k, weight in enumerate(terms)]
    return torch.stack(parts).sum(0).to(torch.float32)


@function
def bartlett(M: int) -> T:
    """The triangular window of `M` points (float32), 0 at both ends."""
    return _window(M, None)


@function
def blackman(M: int) -> T:
    """The Blackman window of `M` points (float32): 0.42 - 0.5 cos + 0.08 cos of the double angle."""
    return _window(M, (0.42, -0.5, 0.08))


@function
def hamming(M: int) -> T:
    """The Hamming window of `M` points (float32): 0.54 - 0.46 cos."""
    return _window(M, (0.54, -0.46))


@function
def hanning(M: int) -> T:
    """The Hann window of `M` points (float32): 0.5 - 0.5 cos."""
    return _window(M, (0.5, -0.5))


def _drawn(draw: Any, kernel_name: str, kind: str, shape: Any, dtype: Any) -> T:
    target_dtype = dtype_of(dtype)
    if not target_dtype.is_floating_point:
        raise ValueError(f"dtype={dtype!r}: expected float16, float32 or float64.")
    lengths = shape_of(shape[0] if len(shape) == 1 else shape) if shape else [1]
    if kernel_numbers.is_on_host():
        return kernel_numbers.by_program_seed(kernel_name, kind, lengths).to(target_dtype)
    return drawing(draw)(lengths, device=device.current()).to(target_dtype)


@function
def rand(*shape: Any, dtype: Any = torch.float32) -> T:
    """Uniform in [0, 1) of `shape`, ints or one tuple; one value without a shape."""
    return _drawn(torch.rand, "UniformReal", "uniform", shape, dtype)


@function
def randn(*shape: Any, dtype: Any = torch.float32) -> T:
    """Standard normal of `shape`, ints or one tuple; one value without a shape."""
    return _drawn(torch.randn, "StandardNormal", "normal", shape, dtype)


@function
@drawing
def randint(minval: Any, maxval: Any = None, shape: Any = None, dtype: Any = torch.int32) -> T:
    """Uniform integers in [minval, maxval), or, with one bound, in [0, minval), of `shape`; one value without a shape."""
    for value in (minval, maxval):
        if value is not None and not is_int(value):
            raise TypeError(f"expected ints as minval and maxval, got {value!r}.")
    low, high = (0, minval) if maxval is None else (minval, maxval)
    if high <= low:
        raise ValueError(f"minval={minval}, maxval={maxval}: expected at least one integer between them.")
    target_dtype = dtype_of(dtype)
    if target_dtype.is_floating_point or target_dtype.is_complex or target_dtype is torch.bool:
        raise ValueError(f"dtype={dtype!r}: expected an integer dtype such as mindspore.int32.")
    if kernel_numbers.has_int_kernel(low, high):
        return kernel_numbers.by_program_seed("UniformInt", "int", [1] if shape is None else shape_of(shape), low, high).to(target_dtype)
    return torch.randint(low, high, [1] if shape is None else shape_of(shape), device=device.current()).to(target_dtype)


@function
def vander(x: Any, N: int | None = None, increasing: bool = False) -> T:
    """The powers of x (1-D) as `N` columns, the highest first unless `increasing`; as many as x has elements for None or 0."""
    t = to_tensor(x)
    if t.ndim != 1:
        raise ValueError(f"x of shape {tuple(t.shape)}: expected one axis.")
    if N is not None and (isinstance(N, bool) or not isinstance(N, int)):
        raise TypeError(message(f"N={N!r}", "an int"))
    if not isinstance(increasing, bool):
        raise TypeError(message(f"increasing={increasing!r}", "True or False"))
    if N is not None and N < 0:
        raise ValueError(f"N={N}: expected at least 0.")
    powers = torch.arange(N or t.shape[0], device=t.device)
    return torch.pow(t.unsqueeze(1), powers if increasing else powers.flip(0)).to(t.dtype)


@function
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> T:
    """The edges between `bins` bins of equal width over the values of `a`, or over `range`; `bins` itself if it is a sequence.

    `weights` have no effect but must have the shape of `a`. Raises NotImplementedError if `bins` is the name of a rule.
    """
    from torchspore.mindspore.numpy.statistics import edges_of

    if weights is not None and to_tensor(weights).shape != to_tensor(a).shape:
        raise ValueError("weights: expected the shape of a.")
    return edges_of(floating(to_tensor(a)).reshape(-1), bins, range)


@function
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> T:
    """The diagonal of two axes, `offset` positions above the main one, along a new last axis."""
    t = only_tensor(a, "a")
    if t.ndim < 2:
        raise ValueError(f"a of shape {tuple(t.shape)}: expected two axes at least.")
    return torch.diagonal(t, offset, axis_of(axis1, t.ndim), axis_of(axis2, t.ndim)).clone()


@function(wide=Widening())
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> T:
    """The sum of the diagonal of two axes, `offset` positions above the main one; int64 for integers; in `dtype` if it is set."""
    t = _in_dtype(only_tensor(a, "a"), dtype)
    if t.ndim < 2:
        raise ValueError(f"a of shape {tuple(t.shape)}: expected two axes at least.")
    out = torch.diagonal(t, offset, axis_of(axis1, t.ndim), axis_of(axis2, t.ndim)).sum(-1)
    return _in_dtype(out.to(torch.bool) if t.dtype is torch.bool else out, dtype)


from torchspore.mindspore.numpy.array_ops import (  # noqa: E402
    apply_along_axis,
    broadcast_arrays,
    broadcast_to,
    concatenate,
    flip,
    moveaxis,
    ravel,
    reshape,
    where,
)
from torchspore.mindspore.numpy.grids import (  # noqa: E402
    MGridClass,
    OGridClass,
    diag,
    diag_indices,
    diagflat,
    eye,
    identity,
    indices,
    ix_,
    meshgrid,
    mgrid,
    ogrid,
    tri,
    tril,
    tril_indices,
    tril_indices_from,
    triu,
    triu_indices,
    triu_indices_from,
)
from torchspore.mindspore.numpy.padding import pad  # noqa: E402

__all__ = [
    "MGridClass", "OGridClass", "apply_along_axis", "arange", "array", "asarray", "asfarray", "bartlett", "blackman", "broadcast_arrays",
    "broadcast_to", "concatenate", "copy", "diag", "diag_indices", "diagflat", "diagonal", "empty", "empty_like", "eye", "flip", "full",
    "full_like", "geomspace", "hamming", "hanning", "histogram_bin_edges", "identity", "indices", "ix_", "linspace", "logspace",
    "meshgrid", "mgrid", "moveaxis", "ogrid", "ones", "ones_like", "pad", "rand", "randint", "randn", "ravel", "reshape", "trace", "tri",
    "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices", "triu_indices_from", "vander", "where", "zeros", "zeros_like",
]
