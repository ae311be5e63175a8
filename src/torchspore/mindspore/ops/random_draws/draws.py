"""Random Tensors of many distributions, shuffled order, and random choices."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.devices import device
from torchspore.engine.random.generators import drawing
from torchspore.engine.random.kernel_numbers import checked_seed, has_int_kernel, is_on_host, of_function, of_primitive
from torchspore.engine.random.operator_streams import OperatorStream, mersenne_order, order_of_true
from torchspore.engine.random.operator_streams import of_function as streams_of_functions
from torchspore.engine.random.seeded_streams import Stream, stream
from torchspore.engine.split_layouts.sharded_value import check_is_complete
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.arguments import as_dtype, sizes
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


def _by(source: Stream, kind: str, shape: Any, otherwise: Callable[[Any, Stream], T], *numbers: float) -> T:
    """Return the numbers of MindSpore's kernel if it would draw them, else those of `otherwise`."""
    values = of_primitive(source, kind, sizes(shape), *numbers)
    return otherwise(shape, source) if values is None else values


def _in_function(kernel_name: str, seed: int | None, kind: str, shape: Any, otherwise: Callable[[Any, Stream], T]) -> T:
    return of_function(kernel_name, seed, kind, sizes(shape)) if is_on_host() else otherwise(shape, stream(seed))


@drawing
def _uniform(shape: Any, source: Stream, like: torch.dtype = torch.float32) -> T:
    where = device.current()
    return torch.rand(sizes(shape), generator=source.on(where), dtype=like, device=where)


@drawing
def _normal(shape: Any, source: Stream, like: torch.dtype = torch.float32) -> T:
    where = device.current()
    return torch.randn(sizes(shape), generator=source.on(where), dtype=like, device=where)


def _together(shape: Any, *parameters: T) -> list[int]:
    """Return the shape of a draw: `shape` broadcast with the shapes of the distribution's parameters."""
    return list(torch.broadcast_shapes(tuple(sizes(shape)), *(p.shape for p in parameters)))


def _tensor(value: Any) -> T:
    return value if isinstance(value, T) else constant(value, device.current(), torch.float32)


def _laplace(shape: Any, source: Stream) -> T:
    """Laplace with mean 0 and scale 1, by the inverse of its distribution function."""
    centred = _uniform(shape, source) - 0.5
    return -torch.sign(centred) * torch.log1p(-2 * torch.abs(centred).clamp(max=0.5 - 2**-25))


@op(primitive="UniformReal", init=("seed", "seed2"))
def _uniform_real(shape: Any, seed: Any = 0, seed2: int = 0) -> T:
    """Uniform in [0, 1), float32."""
    return _by(stream(seed, seed2), "uniform", shape, _uniform)


@op(primitive="UniformInt", init=("seed", "seed2"), numbers=("minval", "maxval"))
@drawing
def _uniform_int(shape: Any, minval: T, maxval: T, seed: Any = 0, seed2: int = 0) -> T:
    """Uniform integers in [minval, maxval), int32. Raises ValueError if the range is empty."""
    if not int(minval) < int(maxval):
        raise ValueError(f"expected minval below maxval, got {int(minval)} and {int(maxval)}.")
    where = device.current()
    drawn = of_primitive(stream(seed, seed2), "int", sizes(shape), int(minval), int(maxval))
    if drawn is not None:
        return drawn
    source = stream(seed, seed2).on(where)
    return torch.randint(int(minval), int(maxval), sizes(shape), generator=source, dtype=torch.int32, device=where)


@op(primitive="StandardNormal", init=("seed", "seed2"))
def _standard_normal(shape: Any, seed: Any = 0, seed2: int = 0) -> T:
    """Normal with mean 0 and standard deviation 1, float32."""
    return _by(stream(seed, seed2), "normal", shape, _normal)


@op()
def standard_normal(shape: Any, seed: int | None = None) -> T:
    """Normal with mean 0 and standard deviation 1, float32."""
    return _in_function("standard_normal", seed, "normal", shape, _normal)


@op(primitive="StandardLaplace", init=("seed", "seed2"))
def _standard_laplace(shape: Any, seed: Any = 0, seed2: int = 0) -> T:
    """Laplace with mean 0 and scale 1, float32."""
    return _by(stream(seed, seed2), "laplace", shape, _laplace)


@op()
def standard_laplace(shape: Any, seed: int | None = None) -> T:
    """Laplace with mean 0 and scale 1, float32."""
    return _in_function("standard_laplace", seed, "laplace", shape, _laplace)


@op()
def laplace(shape: Any, mean: T, lambda_param: T, seed: int | None = None) -> T:
    """Laplace with this mean and scale."""
    numbers = _in_function("laplace", seed, "laplace", _together(shape, _tensor(mean), _tensor(lambda_param)), _laplace)
    return numbers * _tensor(lambda_param) + _tensor(mean)


@op(primitive="NonDeterministicInts", init=("dtype",))
def _non_deterministic_ints(shape: Any, dtype: Any = torch.int64) -> T:
    """Any integers of the dtype, from the generator of the operating system."""
    kind = as_dtype(dtype)
    assert kind is not None
    free = torch.Generator()
    free.seed()
    limits = torch.iinfo(kind)
    return torch.randint(limits.min, limits.max, sizes(shape), generator=free, dtype=kind).to(device.current())


@op(primitive="Bernoulli", init=("seed", "offset"))
def _bernoulli(x: T, p: Any = 0.5, seed: int = -1, offset: int = 0) -> T:
    """1 with probability `p`, else 0, in the shape and dtype of x; seed -1 stands for the global stream."""
    return (_uniform(list(x.shape), stream(0 if seed == -1 else seed, offset)) < p).to(x.dtype)


@op(primitive="Cauchy", init=("size", "median", "sigma"))
def _cauchy(size: Any, median: float = 0.0, sigma: float = 1.0) -> T:
    """Cauchy with this median and scale, float32."""
    return median + sigma * torch.tan(math.pi * (_uniform(size, Stream()) - 0.5))


@op(primitive="LogNormalReverse", init=("mean", "std"))
def _log_normal(input: T, mean: float = 1.0, std: float = 2.0) -> T:
    """exp of normal numbers with this mean and standard deviation, in the shape and dtype of `input`."""
    return torch.exp(mean + std * _normal(list(input.shape), Stream())).to(input.dtype)


@drawing
def _permuted(x: T, source: Stream) -> T:
    if not x.ndim:
        return x.clone()
    return x.index_select(0, torch.randperm(x.shape[0], generator=source.on(x.device), device=x.device))


@op()
def shuffle(x: T, seed: int | None = None) -> T:
    """The slices along axis 0 in random order."""
    if x.device.type == "cpu":
        return x.index_select(0, of_function("shuffle", seed, "order", x.shape[:1])) if x.ndim else x.clone()
    return _permuted(x, stream(seed))


@op(primitive="RandomShuffle", init=("seed", "seed2"))
def _random_shuffle(x: T, seed: Any = 0, seed2: int = 0) -> T:
    """The slices along axis 0 in random order."""
    order = of_primitive(stream(seed, seed2), "order", x.shape[:1]) if x.ndim and x.device.type == "cpu" else None
    return _permuted(x, stream(seed, seed2)) if order is None else x.index_select(0, order)


@op(primitive="Randperm", init=("max_length", "pad", "dtype"))
@drawing
def _randperm(n: T, max_length: int = 1, pad: int = -1, dtype: Any = torch.int32) -> T:
    """The integers below n in random order, padded to `max_length` with `pad`."""
    count = int(n)
    if count > max_length:
        raise ValueError(f"expected at most max_length, {max_length}, got {count}.")
    out = torch.full((max_length,), pad, dtype=as_dtype(dtype), device=n.device)
    out[:count] = torch.randperm(count, device=n.device).to(out.dtype)
    return out


@op(primitive="RandpermV2", init=("seed", "offset", "dtype"))
@drawing
def _randperm_v2(n: int, seed: Any = 0, offset: int = 0, dtype: Any = torch.int64) -> T:
    """The integers below n in random order."""
    where = device.current()
    seed, offset = seed.seeds if isinstance(seed, Stream) else (seed, offset)
    if where.type == "cpu" and (offset or seed != -1) and isinstance(n, int) and n >= 0:
        return mersenne_order(int(n), offset or seed).to(as_dtype(dtype))
    source = None if seed == -1 else stream(seed, offset).on(where)
    return torch.randperm(int(n), generator=source, device=where).to(as_dtype(dtype))


@op()
@drawing
def randint_like(input: T, low: int, high: int, seed: int | None = None, *, dtype: Any = None) -> T:
    """Uniform integers in [low, high) in the shape of `input`, and in its dtype unless `dtype` says otherwise."""
    kind = as_dtype(dtype) or input.dtype
    if kind.is_floating_point:
        raise ValueError(f"dtype={FROM_TORCH[kind]}: expected an integer dtype.")
    check_is_complete("randint_like", input)
    where = input.device
    if has_int_kernel(low, high):
        return of_function("randint_like", seed, "int", input.shape, low, high).to(kind)
    return torch.randint(low, high, list(input.shape), generator=stream(seed).on(where), device=where).to(kind)


def _choice(mask: T, count: int, source: Stream, operator: OperatorStream | None) -> Any:
    """Return `count` indexes of true elements in random order (int32), (0, …) if there are fewer; and which are valid.

    On the CPU, MindSpore's kernel draws from the stream `operator`.
    """
    if count < 1:
        raise ValueError(message(f"count={count}", "at least 1"))
    if operator is not None and mask.device.type == "cpu":
        order = order_of_true(operator, mask, count)
        positions, real = order.clamp(min=0), order >= 0
    else:
        positions, real = _torch_choice(mask, count, source)
    rows = []
    for length in reversed(mask.shape):
        rows.append(positions % length)
        positions = positions // length
    return torch.stack(rows[::-1], -1).to(torch.int32), real


@drawing
def _torch_choice(mask: T, count: int, source: Stream) -> tuple[T, T]:
    flat = mask.reshape(-1)
    keys = torch.rand(flat.shape[0], generator=source.on(mask.device), device=mask.device)
    order = torch.argsort(torch.where(flat, keys, 2.0))[:count]
    real = flat[order]
    positions = torch.where(real, order, 0)
    if positions.shape[0] < count:
        rest = count - positions.shape[0]
        positions, real = torch.cat([positions, positions.new_zeros(rest)]), torch.cat([real, real.new_zeros(rest)])
    return positions, real


@op(primitive="RandomChoiceWithMask", init=("count", "seed", "seed2"))
def _random_choice_with_mask(input_x: T, count: int = 256, seed: Any = 0, seed2: int = 0) -> Any:
    """`count` indexes of true elements in random order (int32, a row each), zeros if there are fewer, and which are valid (bool)."""
    source = stream(seed, seed2)
    return _choice(input_x, count, source, source.operator)


@op()
def choice_with_mask(input_x: T, count: int = 256, seed: int | None = None) -> Any:
    """`count` indexes of true elements in random order (int32, a row each), zeros if there are fewer, and which are valid (bool)."""
    return _choice(input_x, count, stream(seed), streams_of_functions("choice_with_mask", checked_seed(seed)))


def _get_seed(op_seed: int | None, kernel_name: str) -> tuple[int, int]:
    """Return (the program's seed or 0, `op_seed` or 0), the seeds that seeded operators get; `kernel_name` makes no difference."""
    from torchspore.mindspore.common.initializer import _get_graph_seed

    return _get_graph_seed(op_seed or 0, kernel_name)


def _set_prim_op_user_data(prim: Any, key: str, value: Any) -> Any:
    """Set `key` of the primitive `prim` to `value`, and return `prim`."""
    return prim.add_prim_attr(key, value)
