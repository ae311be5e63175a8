"""Random Tensors of many distributions, shuffled order, and sampled candidates."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine import device, private
from torchspore.engine.create import constant
from torchspore.engine.dtypes import FROM_TORCH
from torchspore.engine.generators import drawing
from torchspore.engine.operator_streams import OperatorStream, mersenne_order, order_of_true, picked
from torchspore.engine.operator_streams import of_function as streams_of_functions
from torchspore.engine.shard.parted import check_is_complete
from torchspore.engine.streams import Stream, stream
from torchspore.mindspore.ops.activation import as_dtype
from torchspore.mindspore.ops.array import sizes
from torchspore.mindspore.ops.declare import op
from torchspore.mindspore.ops.kernel_numbers import checked_seed, has_int_kernel, is_on_host, of_function, of_primitive

T = torch.Tensor


def _by(source: Stream, kind: str, shape: Any, otherwise: Callable[[Any, Stream], T], *numbers: float) -> T:
    """Numbers of MindSpore's kernel where it would draw them, else those of `otherwise`."""
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
    """The shape of a draw: `shape` stretched with that of the distribution's parameters."""
    return list(torch.broadcast_shapes(tuple(sizes(shape)), *(p.shape for p in parameters)))


def _tensor(value: Any) -> T:
    return value if isinstance(value, T) else constant(value, device.current(), torch.float32)


@drawing
def _gamma(alpha: T, source: Stream) -> T:
    """Gamma with shape `alpha` and scale 1, in alpha's shape (torch's kernel on the host, which takes a generator)."""
    host = alpha.detach().to("cpu", torch.float64 if alpha.dtype is torch.float64 else torch.float32)
    return private.standard_gamma(host, source.on(torch.device("cpu"))).to(alpha.device, alpha.dtype)


@drawing
def _poisson(rate: T, source: Stream) -> T:
    return torch.poisson(rate.detach(), generator=source.on(rate.device))


def _laplace(shape: Any, source: Stream) -> T:
    """Laplace with mean 0 and scale 1, by the inverse of its distribution."""
    centred = _uniform(shape, source) - 0.5
    return -torch.sign(centred) * torch.log1p(-2 * torch.abs(centred).clamp(max=0.5 - 2**-25))


@op(primitive="UniformReal", init=("seed", "seed2"))
def _uniform_real(shape: Any, seed: Any = 0, seed2: int = 0) -> T:
    """Uniform in [0, 1), float32."""
    return _by(stream(seed, seed2), "uniform", shape, _uniform)


@op(primitive="UniformInt", init=("seed", "seed2"), numbers=("minval", "maxval"))
@drawing
def _uniform_int(shape: Any, minval: T, maxval: T, seed: Any = 0, seed2: int = 0) -> T:
    """Uniform integers in [minval, maxval), int32. Raises ValueError where that is empty."""
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
    """Laplace with the mean and scale given."""
    numbers = _in_function("laplace", seed, "laplace", _together(shape, _tensor(mean), _tensor(lambda_param)), _laplace)
    return numbers * _tensor(lambda_param) + _tensor(mean)


@op(primitive="Gamma", init=("seed", "seed2"))
def _gamma_primitive(shape: Any, alpha: T, beta: T, seed: Any = 0, seed2: int = 0) -> T:
    """Gamma with shape `alpha` and rate `beta`: of shape `shape` stretched with theirs."""
    return _gamma(alpha.expand(_together(shape, alpha, beta)).contiguous(), stream(seed, seed2)) / beta


@op()
def gamma(shape: Any, alpha: T, beta: T, seed: int | None = None) -> T:
    """Gamma with shape `alpha` and rate `beta`: of shape `shape` stretched with theirs."""
    return _gamma(alpha.expand(_together(shape, alpha, beta)).contiguous(), stream(seed)) / beta


@op(primitive="RandomGamma", init=("seed", "seed2"))
def _random_gamma(shape: T, alpha: T, seed: Any = 0, seed2: int = 0) -> T:
    """Gamma with shapes `alpha` and scale 1: of shape `shape` + alpha.shape."""
    return _gamma(alpha.expand(*sizes(shape), *alpha.shape).contiguous(), stream(seed, seed2))


@op()
def random_gamma(shape: T, alpha: T, seed: int | None = None) -> T:
    """Gamma with shapes `alpha` and scale 1: of shape `shape` + alpha.shape."""
    return _gamma(alpha.expand(*sizes(shape), *alpha.shape).contiguous(), stream(seed))


@op(primitive="Poisson", init=("seed", "seed2"))
def _poisson_primitive(shape: Any, mean: T, seed: Any = 0, seed2: int = 0) -> T:
    """Poisson counts with the mean given, int32: of shape `shape` stretched with that of `mean`."""
    return _poisson(mean.expand(_together(shape, mean)), stream(seed, seed2)).to(torch.int32)


@op()
def poisson(shape: Any, mean: T, seed: int | None = None) -> T:
    """Poisson counts with the mean given, int32: of shape `shape` stretched with that of `mean`."""
    return _poisson(mean.expand(_together(shape, mean)), stream(seed)).to(torch.int32)


@op(primitive="RandomPoisson", init=("seed", "seed2", "dtype"))
def _random_poisson(shape: T, rate: T, seed: Any = 0, seed2: int = 0, dtype: Any = torch.int64) -> T:
    """Poisson counts with the means `rate`: of shape `shape` + rate.shape."""
    return _poisson(_real(rate).expand(*sizes(shape), *rate.shape), stream(seed, seed2)).to(as_dtype(dtype))


@op()
def random_poisson(shape: T, rate: T, seed: int | None = None, dtype: Any = torch.float32) -> T:
    """Poisson counts with the means `rate`: of shape `shape` + rate.shape."""
    return _poisson(_real(rate).expand(*sizes(shape), *rate.shape), stream(seed)).to(as_dtype(dtype))


def _real(t: T) -> T:
    return t if t.is_floating_point() else t.to(torch.float32)


def _truncated(shape: Any, low: Any, high: Any, source: Stream, dtype: torch.dtype) -> T:
    """Standard normal between `low` and `high`, by the inverse of its distribution."""
    start, end = (torch.special.ndtr(constant(v, device.current(), torch.float64)) for v in (low, high))
    return torch.special.ndtri(start + (end - start) * _uniform(shape, source, torch.float64)).to(dtype)


@op(primitive="TruncatedNormal", init=("dtype", "seed", "seed2"))
def _truncated_normal(shape: Any, dtype: Any = torch.float32, seed: Any = 0, seed2: int = 0) -> T:
    """Normal with mean 0 and standard deviation 1, nowhere further than 2 from 0."""
    kind = as_dtype(dtype) or torch.float32
    numbers = of_primitive(stream(seed, seed2), "truncated", sizes(shape))
    return _truncated(shape, -2.0, 2.0, stream(seed, seed2), kind) if numbers is None else numbers.to(kind)


@op(primitive="ParameterizedTruncatedNormal", init=("seed", "seed2"))
def _parameterized_truncated_normal(shape: Any, mean: T, stdevs: T, min: T, max: T, seed: Any = 0, seed2: int = 0) -> T:
    """Normal between `min` and `max`, with one mean and standard deviation for all or for each along axis 0."""
    lengths = sizes(shape)
    mean, spread, low, high = (t.reshape(-1, *[1] * (len(lengths) - 1)) for t in (mean, stdevs, min, max))
    return mean + spread * _truncated(lengths, (low - mean) / spread, (high - mean) / spread, stream(seed, seed2), mean.dtype)


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
    """Cauchy with the median and scale given, float32."""
    return median + sigma * torch.tan(math.pi * (_uniform(size, Stream()) - 0.5))


@op(primitive="LogNormalReverse", init=("mean", "std"))
def _log_normal(input: T, mean: float = 1.0, std: float = 2.0) -> T:
    """exp of normal numbers with the mean and standard deviation given, in the shape and dtype of `input`."""
    return torch.exp(mean + std * _normal(list(input.shape), Stream())).to(input.dtype)


@op(primitive="Multinomial", init=("seed", "seed2", "dtype"))
def _multinomial(x: T, num_samples: int, seed: Any = 0, seed2: int = 0, dtype: Any = torch.int32) -> T:
    """Indexes drawn with the weights given, with replacement, along the last axis."""
    source = stream(seed, seed2)
    key = f"{[*map(int, x.shape)]}"
    numbers = of_primitive(source, "minstd_uniform", [*x.shape[:-1], int(num_samples)], key=key) if x.device.type == "cpu" else None
    if numbers is not None:
        return picked(x, numbers).to(as_dtype(dtype))
    return _drawn(x, int(num_samples), True, stream(seed, seed2)).to(as_dtype(dtype))


@drawing
def _drawn(weights: T, count: int, replacement: bool, source: Stream) -> T:
    return torch.multinomial(_real(weights), count, replacement, generator=source.on(weights.device))


@op()
def multinomial_with_replacement(x: T, seed: int, offset: int, numsamples: int, replacement: bool = False) -> T:
    """Indexes (int64) drawn with the weights given, along the last axis."""
    return _drawn(x, numsamples, replacement, stream(seed, offset))


@op(primitive="MultinomialWithReplacement", init=("numsamples", "replacement"))
def _multinomial_with_replacement(x: T, seed: T, offset: T, numsamples: int, replacement: bool = False) -> T:
    """Indexes (int64) drawn with the weights given, along the last axis."""
    return _drawn(x, numsamples, replacement, stream(int(seed), int(offset)))


def _categorical(logits: T, count: int, source: Stream, dtype: Any) -> T:
    return _drawn(torch.softmax(logits, -1), count, True, source).to(as_dtype(dtype))


@op(methods=("random_categorical",))
def random_categorical(logits: T, num_sample: int, seed: int = 0, dtype: Any = torch.int64) -> T:
    """Classes drawn by the rows of `logits`: shape (N, num_sample)."""
    return _categorical(logits, num_sample, stream(seed), dtype)


@op(primitive="RandomCategorical", init=("dtype",))
def _random_categorical(logits: T, num_sample: int, seed: int = 0, dtype: Any = torch.int64) -> T:
    """Classes drawn by the rows of `logits`: shape (N, num_sample)."""
    return _categorical(logits, num_sample, stream(seed), dtype)


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
    """The integers below n in random order, filled up to `max_length` with `pad`."""
    count = int(n)
    if count > max_length:
        raise ValueError(f"expected at most {max_length}, which is max_length, got {count}.")
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
        raise ValueError(f"dtype={FROM_TORCH[kind]}: expected one of integers.")
    check_is_complete("randint_like", input)
    where = input.device
    if has_int_kernel(low, high):
        return of_function("randint_like", seed, "int", input.shape, low, high).to(kind)
    return torch.randint(low, high, list(input.shape), generator=stream(seed).on(where), device=where).to(kind)


def _choice(mask: T, count: int, source: Stream, operator: OperatorStream | None) -> Any:
    """`count` indexes of true elements in random order (int32), (0, …) where there are fewer; and which are real.

    On the CPU MindSpore's kernel draws from the stream `operator`.
    """
    if count < 1:
        raise ValueError(f"count={count}: expected at least 1.")
    if operator is not None and mask.device.type == "cpu":
        order = order_of_true(operator, mask, count)
        places, real = order.clamp(min=0), order >= 0
    else:
        places, real = _torch_choice(mask, count, source)
    rows = []
    for length in reversed(mask.shape):
        rows.append(places % length)
        places = places // length
    return torch.stack(rows[::-1], -1).to(torch.int32), real


@drawing
def _torch_choice(mask: T, count: int, source: Stream) -> tuple[T, T]:
    flat = mask.reshape(-1)
    keys = torch.rand(flat.shape[0], generator=source.on(mask.device), device=mask.device)
    order = torch.argsort(torch.where(flat, keys, 2.0))[:count]
    real = flat[order]
    places = torch.where(real, order, 0)
    if places.shape[0] < count:
        rest = count - places.shape[0]
        places, real = torch.cat([places, places.new_zeros(rest)]), torch.cat([real, real.new_zeros(rest)])
    return places, real


@op(primitive="RandomChoiceWithMask", init=("count", "seed", "seed2"))
def _random_choice_with_mask(input_x: T, count: int = 256, seed: Any = 0, seed2: int = 0) -> Any:
    """`count` indexes of true elements in random order (int32, a row each), zeros where there are fewer, and which are real (bool)."""
    source = stream(seed, seed2)
    return _choice(input_x, count, source, source.operator)


@op()
def choice_with_mask(input_x: T, count: int = 256, seed: int | None = None) -> Any:
    """`count` indexes of true elements in random order (int32, a row each), zeros where there are fewer, and which are real (bool)."""
    return _choice(input_x, count, stream(seed), streams_of_functions("choice_with_mask", checked_seed(seed)))


@drawing
def _candidates(true_classes: T, sampled: int, unique: bool, limit: int, weights: T, source: Stream) -> Any:
    """Classes drawn by `weights`, and how often the true and the drawn classes are expected among them (float32)."""
    if unique and sampled > limit:
        raise ValueError(f"num_sampled={sampled}: expected at most {limit}, which is range_max, where classes are unique.")
    drawn = torch.multinomial(weights, sampled, not unique, generator=source.on(weights.device))
    share = weights / weights.sum()
    expected = -torch.expm1(sampled * torch.log1p(-share)) if unique else sampled * share
    return drawn.to(true_classes.dtype), expected[true_classes.long()].to(torch.float32), expected[drawn].to(torch.float32)


def _log_uniform(true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, source: Stream) -> Any:
    _true(true_classes, num_true)
    place = torch.arange(range_max, dtype=torch.float64, device=true_classes.device)
    weights = torch.log((place + 2) / (place + 1)) / math.log(range_max + 1)
    return _candidates(true_classes, num_sampled, unique, range_max, weights, source)


def _even(true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, source: Stream, without: bool) -> Any:
    _true(true_classes, num_true)
    weights = torch.ones(range_max, dtype=torch.float64, device=true_classes.device)
    if without:
        weights = weights.index_fill(0, true_classes.reshape(-1).long(), 0.0)
    return _candidates(true_classes, num_sampled, unique, range_max, weights, source)


def _true(true_classes: T, num_true: int) -> None:
    if true_classes.ndim and true_classes.shape[-1] != num_true:
        raise ValueError(f"expected {num_true} true classes in a row, got {true_classes.shape[-1]}.")


@op()
def log_uniform_candidate_sampler(
    true_classes: T, num_true: int = 1, num_sampled: int = 5, unique: bool = True, range_max: int = 5, seed: int = 0,
) -> Any:
    """Classes below `range_max`, small ones more often, and how often the true and the drawn ones are expected among them."""
    return _log_uniform(true_classes, num_true, num_sampled, unique, range_max, stream(seed))


@op(primitive="LogUniformCandidateSampler", init=("num_true", "num_sampled", "unique", "range_max", "seed"))
def _log_uniform_candidate_sampler(
    true_classes: T, num_true: int = 1, num_sampled: int = 5, unique: bool = True, range_max: int = 5, seed: Any = 0,
) -> Any:
    """Classes below `range_max`, small ones more often, and how often the true and the drawn ones are expected among them."""
    return _log_uniform(true_classes, num_true, num_sampled, unique, range_max, stream(seed))


@op()
def uniform_candidate_sampler(
    true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int = 0, remove_accidental_hits: bool = False,
) -> Any:
    """Classes below `range_max`, and how often the true and the drawn ones are expected among them."""
    return _even(true_classes, num_true, num_sampled, unique, range_max, stream(seed), remove_accidental_hits)


@op(primitive="UniformCandidateSampler", init=("num_true", "num_sampled", "unique", "range_max", "seed", "remove_accidental_hits"))
def _uniform_candidate_sampler(
    true_classes: T, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: Any = 0, remove_accidental_hits: bool = False,
) -> Any:
    """Classes below `range_max`, and how often the true and the drawn ones are expected among them."""
    return _even(true_classes, num_true, num_sampled, unique, range_max, stream(seed), remove_accidental_hits)


def _get_seed(op_seed: int | None, kernel_name: str) -> tuple[int, int]:
    """(the seed of the program or 0, `op_seed` or 0), which operators with a seed of their own are given; for each `kernel_name` alike."""
    from torchspore.mindspore.common.initializer import _get_graph_seed

    return _get_graph_seed(op_seed or 0, kernel_name)


def _set_prim_op_user_data(prim: Any, key: str, value: Any) -> Any:
    """The primitive `prim`, which from now on carries `value` under `key`."""
    return prim.add_prim_attr(key, value)
