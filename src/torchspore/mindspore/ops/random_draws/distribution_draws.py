"""Random Tensors of distributions whose parameters are Tensors: Gamma, Poisson, normal between limits."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.devices import device, gpu_kinds
from torchspore.engine.random.generators import drawing
from torchspore.engine.random.kernel_numbers import by_function, by_primitive, check_float, is_on_host, of_primitive
from torchspore.engine.random.seeded_streams import Stream, stream
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.torch_internals import torch_private
from torchspore.mindspore.ops.declaration.arguments import as_dtype, sizes
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor
_WITHOUT_GAMMA = gpu_kinds.MPS, gpu_kinds.XPU, "npu"
"""The devices on which torch does not draw gamma numbers: the host draws them."""


def _expanded(shape: Any, *parameters: T) -> list[int]:
    """Return the shape of a draw: `shape` broadcast with the shapes of the distribution's parameters."""
    return list(torch.broadcast_shapes(tuple(sizes(shape)), *(p.shape for p in parameters)))


def _sample_sizes(shape: Any, least: int) -> list[int]:
    """Return the sizes in `shape`. Raises ValueError for a Tensor of several dimensions, and for sizes below `least`."""
    lengths = sizes(shape)
    if isinstance(shape, T) and shape.ndim > 1:
        raise ValueError(f"expected one dimension of shape, got {shape.ndim}.")
    if any(length < least for length in lengths):
        raise ValueError(f"shape={lengths}: expected ints from {least} on.")
    return lengths


def _shape_key(shape: Any) -> str:
    """Return a key for the dtype of `shape`, because MindSpore has a separate generator for each."""
    return str(shape.dtype) if isinstance(shape, T) else ""


@drawing
def _gamma(alpha: T, source: Stream) -> T:
    """Gamma with shape `alpha` and scale 1, in alpha's shape."""
    where = torch.device("cpu") if alpha.device.type in _WITHOUT_GAMMA else alpha.device
    shape = alpha.detach().to(where, torch.float64 if alpha.dtype is torch.float64 else torch.float32)
    return torch_private.standard_gamma(shape, source.on(where)).to(alpha.device, alpha.dtype)


@drawing
def _poisson(rate: T, source: Stream) -> T:
    return torch.poisson(rate.detach(), generator=source.on(rate.device))


@op(primitive="Gamma", init=("seed", "seed2"))
def _gamma_primitive(shape: Any, alpha: T, beta: T, seed: Any = 0, seed2: int = 0) -> T:
    """Gamma with shape `alpha` and rate `beta`: `shape` broadcast with their shapes."""
    return _gamma(alpha.expand(_expanded(shape, alpha, beta)).contiguous(), stream(seed, seed2)) / beta


@op()
def gamma(shape: Any, alpha: T, beta: T, seed: int | None = None) -> T:
    """Gamma with shape `alpha` and rate `beta`: `shape` broadcast with their shapes."""
    return _gamma(alpha.expand(_expanded(shape, alpha, beta)).contiguous(), stream(seed)) / beta


@op(primitive="RandomGamma", init=("seed", "seed2"))
def _random_gamma(shape: T, alpha: T, seed: Any = 0, seed2: int = 0) -> T:
    """Gamma with shapes `alpha` and scale 1: of shape `shape` + alpha.shape.

    Raises:
        TypeError: `alpha` does not have a float dtype.
        ValueError: a size is below 1, or an `alpha` below 0.
    """
    lengths, source = _sample_sizes(shape, 1), stream(seed, seed2)
    check_float("alpha", alpha)
    values = by_primitive(source, "gamma", [alpha], lengths, key=_shape_key(shape))
    return _gamma(alpha.expand(*lengths, *alpha.shape).contiguous(), source) if values is None else values


@op()
def random_gamma(shape: T, alpha: T, seed: int | None = None) -> T:
    """Gamma with shapes `alpha` and scale 1: of shape `shape` + alpha.shape.

    Raises:
        TypeError: `alpha` does not have a float dtype.
        ValueError: a size is below 1, or an `alpha` below 0.
    """
    lengths = _sample_sizes(shape, 1)
    check_float("alpha", alpha)
    if is_on_host():
        return by_function("random_gamma", seed, "gamma", [alpha], lengths)
    return _gamma(alpha.expand(*lengths, *alpha.shape).contiguous(), stream(seed))


@op(primitive="Poisson", init=("seed", "seed2"))
def _poisson_primitive(shape: Any, mean: T, seed: Any = 0, seed2: int = 0) -> T:
    """Poisson counts with these means, int32: `shape` broadcast with the shape of `mean`."""
    return _poisson(mean.expand(_expanded(shape, mean)), stream(seed, seed2)).to(torch.int32)


@op()
def poisson(shape: Any, mean: T, seed: int | None = None) -> T:
    """Poisson counts with these means, int32: `shape` broadcast with the shape of `mean`."""
    return _poisson(mean.expand(_expanded(shape, mean)), stream(seed)).to(torch.int32)


_COUNTS = torch.int64, torch.int32, torch.float16, torch.float32, torch.float64
"""The dtypes of counts and means that `RandomPoisson` accepts."""


def _check_poisson(rate: T, dtype: Any) -> Any:
    """Return the dtype of the counts. Raises TypeError for dtypes outside `_COUNTS`."""
    kind = as_dtype(dtype)
    for name, value in (("rate", rate.dtype), ("dtype", kind)):
        if value not in _COUNTS:
            names = ", ".join(str(FROM_TORCH[dtype]) for dtype in _COUNTS)
            raise TypeError(f"{name} of {FROM_TORCH.get(value, value)}: expected one of {names}.")
    return kind


@op(primitive="RandomPoisson", init=("seed", "seed2", "dtype"))
def _random_poisson(shape: T, rate: T, seed: Any = 0, seed2: int = 0, dtype: Any = torch.int64) -> T:
    """Poisson counts with the means `rate`: of shape `shape` + rate.shape.

    Raises:
        TypeError: the dtype of `rate`, or `dtype`, is not int32, int64 or a float dtype.
        ValueError: a size or a mean is below 0, or a mean is not finite.
    """
    lengths, kind, source = _sample_sizes(shape, 0), _check_poisson(rate, dtype), stream(seed, seed2)
    counts = by_primitive(source, "poisson", [rate], lengths, key=_shape_key(shape))
    return (_poisson(real(rate).expand(*lengths, *rate.shape), source) if counts is None else counts).to(kind)


@op()
def random_poisson(shape: T, rate: T, seed: int | None = None, dtype: Any = torch.float32) -> T:
    """Poisson counts with the means `rate`: of shape `shape` + rate.shape.

    Raises:
        TypeError: the dtype of `rate`, or `dtype`, is not int32, int64 or a float dtype.
        ValueError: a size or a mean is below 0, or a mean is not finite.
    """
    lengths, kind = _sample_sizes(shape, 0), _check_poisson(rate, dtype)
    if is_on_host():
        return by_function("random_poisson", seed, "poisson", [rate], lengths).to(kind)
    return _poisson(real(rate).expand(*lengths, *rate.shape), stream(seed)).to(kind)


def real(t: T) -> T:
    """Return `t`, converted to float32 unless it has a float dtype."""
    return t if t.is_floating_point() else t.to(torch.float32)


@drawing
def _truncated(shape: list[int], low: Any, high: Any, source: Stream, dtype: torch.dtype) -> T:
    """Standard normal between `low` and `high`, by the inverse of its distribution function."""
    where = device.current()
    start, end = (torch.special.ndtr(constant(v, where, torch.float64)) for v in (low, high))
    uniform = torch.rand(shape, generator=source.on(where), dtype=torch.float64, device=where)
    return torch.special.ndtri(start + (end - start) * uniform).to(dtype)


@op(primitive="TruncatedNormal", init=("dtype", "seed", "seed2"))
def _truncated_normal(shape: Any, dtype: Any = torch.float32, seed: Any = 0, seed2: int = 0) -> T:
    """Normal with mean 0 and standard deviation 1, within 2 of 0."""
    kind = as_dtype(dtype) or torch.float32
    numbers = of_primitive(stream(seed, seed2), "truncated", sizes(shape))
    return _truncated(sizes(shape), -2.0, 2.0, stream(seed, seed2), kind) if numbers is None else numbers.to(kind)


@op(primitive="ParameterizedTruncatedNormal", init=("seed", "seed2"))
def _parameterized_truncated_normal(shape: Any, mean: T, stdevs: T, min: T, max: T, seed: Any = 0, seed2: int = 0) -> T:
    """Normal between `min` and `max`, with one mean and standard deviation for all or one for each index of axis 0.

    Raises:
        TypeError: the parameters do not have one common float dtype.
        ValueError: `shape` has fewer than two sizes or one below 1, a parameter has a shape other than () or (shape[0],), a standard
            deviation is not positive, or a minimum exceeds its maximum.
    """
    lengths, source = _sample_sizes(shape, 1), stream(seed, seed2)
    if len(lengths) < 2:
        raise ValueError(f"shape={lengths}: expected at least two sizes.")
    parameters = {"mean": mean, "stdevs": stdevs, "min": min, "max": max}
    for name, value in parameters.items():
        check_float(name, value)
        if value.dtype is not mean.dtype:
            raise TypeError(f"{name} of {FROM_TORCH[value.dtype]}: expected {FROM_TORCH[mean.dtype]}, the dtype of mean.")
        if value.shape not in ((), (1,), (lengths[0],)):
            raise ValueError(f"{name} of shape {tuple(value.shape)}: expected () or ({lengths[0]},).")
    values = by_primitive(source, "truncated", list(parameters.values()), lengths, key=_shape_key(shape))
    if values is not None:
        return values
    mean, spread, low, high = (t.reshape(-1, *[1] * (len(lengths) - 1)) for t in parameters.values())
    return mean + spread * _truncated(lengths, (low - mean) / spread, (high - mean) / spread, source, mean.dtype)
