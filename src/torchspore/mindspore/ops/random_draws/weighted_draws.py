"""Indexes drawn with weights."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.text import message, with_type
from torchspore.engine.random.generators import drawing
from torchspore.engine.random.kernel_numbers import by_stream, check_float, is_on_host, of_primitive
from torchspore.engine.random.operator_streams import OperatorStream, picked
from torchspore.engine.random.seeded_streams import Stream, stream
from torchspore.engine.tensors.creation import constant
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.random_draws.distribution_draws import real

T = torch.Tensor


@op(primitive="Multinomial", init=("seed", "seed2", "dtype"))
def _multinomial(x: T, num_samples: int, seed: Any = 0, seed2: int = 0, dtype: Any = torch.int32) -> T:
    """Draw indexes by weight, with replacement, along the last axis."""
    source = stream(seed, seed2)
    key = f"{[*map(int, x.shape)]}"
    numbers = of_primitive(source, "minstd_uniform", [*x.shape[:-1], int(num_samples)], key=key) if x.device.type == "cpu" else None
    if numbers is not None:
        return picked(x, numbers).to(as_dtype(dtype))
    return _drawn(x, int(num_samples), True, stream(seed, seed2)).to(as_dtype(dtype))


@drawing
def _drawn(weights: T, count: int, replacement: bool, source: Stream) -> T:
    return torch.multinomial(real(weights), count, replacement, generator=source.on(weights.device))


def _as_seed(name: str, value: Any) -> T:
    """Return a seed as an int64 Tensor on the CPU. Raises TypeError unless it is an int or a Tensor of one."""
    if isinstance(value, T):
        if value.is_floating_point() or value.is_complex() or value.numel() != 1:
            raise TypeError(f"expected one int as {name}, got a Tensor of shape {tuple(value.shape)} and {FROM_TORCH[value.dtype]}.")
        return value.detach().to("cpu", torch.int64).reshape(())
    if isinstance(value, (bool, float, str)) or not hasattr(type(value), "__int__"):
        raise TypeError(message(f"{name}={value!r:.40}", with_type("an int", value)))
    return constant(int(value), torch.device("cpu"), torch.int64)


def _weighted(x: T, seed: Any, offset: Any, numsamples: int, replacement: bool, operator_stream: OperatorStream | None) -> T:
    seeds = _as_seed("seed", seed), _as_seed("offset", offset)
    check_float("x", x)
    if x.ndim not in (1, 2):
        raise ValueError(f"x of shape {tuple(x.shape)}: expected one or two dimensions.")
    if numsamples < 1:
        raise ValueError(message(f"numsamples={numsamples}", "an int from 1 on"))
    if not replacement and numsamples > x.shape[-1]:
        raise ValueError(f"numsamples={numsamples}: expected at most {x.shape[-1]}, the number of weights, without replacement.")
    if is_on_host():
        return by_stream(operator_stream, "weighted", [x, *seeds], [int(numsamples)], float(bool(replacement)))
    first, second = int(seeds[0]), int(seeds[1])
    return _drawn(x, numsamples, replacement, stream(0) if (first, second) == (-1, 0) else stream(abs(first), abs(second)))


@op()
def multinomial_with_replacement(x: T, seed: int, offset: int, numsamples: int, replacement: bool = False) -> T:
    """Draw indexes (int64) by weight along the last axis.

    Raises:
        TypeError: `x` does not have a float dtype, or a seed is not an int.
        ValueError: `x` does not have one or two dimensions, a weight is negative or not finite, a row is 0, or `numsamples` is below 1 or,
            without replacement, above the number of weights.
    """
    return _weighted(x, seed, offset, numsamples, replacement, None)


@op(primitive="MultinomialWithReplacement", init=("numsamples", "replacement"))
def _multinomial_with_replacement(
    x: T, seed: T, offset: T, numsamples: int, replacement: bool = False, operator_stream: Any = None,
) -> T:
    """Draw indexes (int64) by weight along the last axis. Calls with the seeds of the preceding call continue its numbers.

    Raises:
        TypeError: `x` does not have a float dtype, or a seed is not an int.
        ValueError: `x` does not have one or two dimensions, a weight is negative or not finite, a row is 0, or `numsamples` is below 1 or,
            without replacement, above the number of weights.
    """
    return _weighted(x, seed, offset, numsamples, replacement, operator_stream)


_CLASSES = torch.int16, torch.int32, torch.int64
"""The dtypes of drawn classes."""


def _categorical(logits: T, count: Any, seed: Any, dtype: Any, operator_stream: OperatorStream | None) -> T:
    kind, first = as_dtype(dtype), _as_seed("seed", seed)
    if kind not in _CLASSES:
        choices = ", ".join(str(FROM_TORCH[choice]) for choice in _CLASSES)
        raise TypeError(f"dtype={FROM_TORCH.get(kind, kind)}: expected one of {choices}.")
    check_float("logits", logits)
    if logits.ndim != 2:
        raise ValueError(f"logits of shape {tuple(logits.shape)}: expected two dimensions.")
    if int(count) < 1:
        raise ValueError(message(f"num_sample={int(count)}", "an int from 1 on"))
    if is_on_host():
        key = "Tensor" if isinstance(seed, T) else ""
        return by_stream(operator_stream, "classes", [logits, first], [int(count)], key=key).to(kind)
    return _drawn(torch.softmax(logits, -1), int(count), True, stream(abs(int(first)))).to(kind)


@op(methods=("random_categorical",))
def random_categorical(logits: T, num_sample: int, seed: int = 0, dtype: Any = torch.int64) -> T:
    """Draw classes by the rows of `logits`: shape (N, num_sample).

    Raises:
        TypeError: `logits` do not have a float dtype, `seed` is not an int, or `dtype` is not int16, int32 or int64.
        ValueError: `logits` do not have two dimensions, a row has NaN, infinity or no finite number, or `num_sample` is below 1.
    """
    return _categorical(logits, num_sample, seed, dtype, None)


@op(primitive="RandomCategorical", init=("dtype",))
def _random_categorical(logits: T, num_sample: int, seed: int = 0, dtype: Any = torch.int64, operator_stream: Any = None) -> T:
    """Draw classes by the rows of `logits`: shape (N, num_sample). Calls with one seed continue its numbers.

    Raises:
        TypeError: `logits` do not have a float dtype, `seed` is not an int, or `dtype` is not int16, int32 or int64.
        ValueError: `logits` do not have two dimensions, a row has NaN, infinity or no finite number, or `num_sample` is below 1.
    """
    return _categorical(logits, num_sample, seed, dtype, operator_stream)
