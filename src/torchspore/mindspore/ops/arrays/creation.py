"""New Tensors: constants, ranges, random numbers."""
from __future__ import annotations

import builtins
import numbers
from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.engine.devices import device
from torchspore.engine.random import kernel_numbers
from torchspore.engine.random.generators import drawing
from torchspore.engine.random.operator_streams import mersenne_order, philox_fractions, picked
from torchspore.engine.split_layouts.sharded_value import check_is_complete
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.arguments import as_dtype, sizes
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


@op(primitive="Zeros")
def zeros(size: Any, dtype: Any = None) -> T:
    """Zeros of shape `size`, float32 unless `dtype` says otherwise."""
    return torch.zeros(sizes(size), dtype=as_dtype(dtype) or torch.float32, device=device.current())


@op(primitive="Ones")
def ones(shape: Any, dtype: Any = None) -> T:
    """Ones of `shape`, float32 unless `dtype` says otherwise."""
    return torch.ones(sizes(shape), dtype=as_dtype(dtype) or torch.float32, device=device.current())


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, (numbers.Number, T, torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise TypeError(f"expected a number as {name}, got {type(value).__name__}.")


@op()
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> T:
    """`fill_value` in the shape `size`; int64 without `dtype`, as in MindSpore."""
    _check_number("fill_value", fill_value)
    return torch.full(sizes(size), fill_value, dtype=as_dtype(dtype) or torch.int64, device=device.current())


@op()
def fill(type: Any, shape: Any, value: Any) -> T:
    """`value` in the shape `shape`, as dtype `type`."""
    _check_number("value", value)
    return torch.full(sizes(shape), value.item() if isinstance(value, T) else value, dtype=as_dtype(type), device=device.current())


@op(primitive="Fill")
def _fill(type: Any, shape: Any, value: Any) -> T:
    """`value` in the shape `shape`, as dtype `type`."""
    _check_number("value", value)
    return torch.full(sizes(shape), value, dtype=as_dtype(type), device=device.current())


@op(short_path="zeros_like")
def zeros_like(input: T, *, dtype: Any = None) -> T:
    """Zeros in the shape of `input`."""
    return torch.zeros_like(input, dtype=as_dtype(dtype))


@op(primitive="ZerosLike")
def _zeros_like(x: T) -> T:
    """Zeros in the shape of x."""
    return torch.zeros_like(x)


@op(short_path="ones_like")
def ones_like(input: T, *, dtype: Any = None) -> T:
    """Ones in the shape of `input`."""
    return torch.ones_like(input, dtype=as_dtype(dtype))


@op(primitive="OnesLike")
def _ones_like(x: T) -> T:
    """Ones in the shape of x."""
    return torch.ones_like(x)


@op()
def full_like(input: T, fill_value: Any, *, dtype: Any = None) -> T:
    """`fill_value` in the shape of `input`."""
    _check_number("fill_value", fill_value)
    return torch.full_like(input, fill_value, dtype=as_dtype(dtype))


@op(numbers=("start", "end", "step"))
def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> T:
    """The numbers from `start` up to `end` (exclusive) by `step`; int64 for ints, float32 for floats."""
    start, end, step = (v.item() if isinstance(v, T) else v for v in (start, end, step))
    start, end = (0, start) if end is None else (start, end)
    return torch.arange(start, end, step, dtype=as_dtype(dtype), device=device.current())


@op(primitive="Range", init=("maxlen",), numbers=("start", "end", "step"))
def range(start: Any, end: Any, step: Any, maxlen: int = 1000000) -> T:
    """The numbers from `start` up to `end` (exclusive) by `step`."""
    return torch.arange(*(v.item() if isinstance(v, T) else v for v in (start, end, step)), device=device.current())


@op(primitive="RangeV2", init=("maxlen",))
def _range_v2(start: Any, limit: Any, delta: Any, maxlen: int = 1000000) -> T:
    """The numbers from `start` up to `limit` (exclusive) by `delta`, in the inputs' dtype."""
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype, device=start.device)


@op(numbers=("start", "end", "steps"))
def linspace(start: Any, end: Any, steps: int) -> T:
    """`steps` numbers from `start` to `end`, both included, float32."""
    return torch.linspace(float(start), float(end), int(steps), device=device.current())


@op(primitive="Eye")
def eye(n: int, m: int | None = None, dtype: Any = None) -> T:
    """Ones on the diagonal of an (n, m) matrix, float32 unless `dtype` says otherwise."""
    return torch.eye(n, n if m is None else m, dtype=as_dtype(dtype) or torch.float32, device=device.current())


def _random(kernel_name: str, kind: str, size: Any, dtype: Any, seed: int | None) -> T:
    """Draw "uniform" or "normal" numbers: on the CPU, those of MindSpore's kernel for the function of this name."""
    if kernel_numbers.is_on_host():
        return kernel_numbers.of_function(kernel_name, seed, kind, sizes(size)).to(as_dtype(dtype) or torch.float32)
    return _torch_random(torch.rand if kind == "uniform" else torch.randn, size, dtype, seed)


@drawing
def _torch_random(make: Any, size: Any, dtype: Any, seed: int | None) -> T:
    source = None if seed is None else torch.Generator(device.current()).manual_seed(int(seed))
    return make(sizes(size), generator=source, device=device.current()).to(as_dtype(dtype) or torch.float32)


@op()
def rand(*size: Any, dtype: Any = None, seed: int | None = None) -> T:
    """Uniform in [0, 1), float32 unless `dtype` says otherwise."""
    return _random("rand", "uniform", size, dtype, seed)


@op()
def randn(*size: Any, dtype: Any = None, seed: int | None = None) -> T:
    """Standard normal, float32 unless `dtype` says otherwise."""
    return _random("randn", "normal", size, dtype, seed)


@op()
def rand_like(input: T, seed: int | None = None, *, dtype: Any = None) -> T:
    """Uniform in [0, 1) in the shape of `input`."""
    check_is_complete("rand_like", input)
    return _random("rand_like", "uniform", list(input.shape), dtype or input.dtype, seed)


@op()
def randn_like(input: T, seed: int | None = None, *, dtype: Any = None) -> T:
    """Standard normal in the shape of `input`, float32 unless `dtype` says otherwise."""
    check_is_complete("randn_like", input)
    return _random("randn_like", "normal", list(input.shape), dtype or torch.float32, seed)


@op(numbers=("low", "high"))
@drawing
def randint(low: int, high: int, size: Any, seed: int | None = None, *, dtype: Any = None) -> T:
    """Uniform integers in [low, high), int64 unless `dtype` says otherwise."""
    if kernel_numbers.has_int_kernel(low, high):
        return kernel_numbers.of_function("randint", seed, "int", sizes(size), low, high).to(as_dtype(dtype) or torch.int64)
    source = None if seed is None else torch.Generator(device.current()).manual_seed(int(seed))
    return torch.randint(low, high, sizes(size), generator=source, dtype=as_dtype(dtype) or torch.int64, device=device.current())


@op()
@drawing
def randperm(n: int, seed: int = 0, offset: int = 0, dtype: Any = torch.int64) -> T:
    """The integers below n in random order."""
    if kernel_numbers.is_on_host() and seed >= 0 and isinstance(n, int) and n >= 0:
        return mersenne_order(n, offset or seed).to(as_dtype(dtype))
    source = torch.Generator(device.current()).manual_seed((int(seed) + 2654435761 * int(offset)) % 2**32) if seed else None
    return torch.randperm(n, generator=source, device=device.current()).to(as_dtype(dtype))


@op()
def uniform(shape: Any, minval: T, maxval: T, seed: int | None = None, dtype: Any = torch.float32) -> T:
    """Uniform in [minval, maxval), integers in the same range for an integer dtype."""
    low, high = (v if isinstance(v, T) else constant(v, device.current()) for v in (minval, maxval))
    if as_dtype(dtype) is torch.int32 and low.numel() == high.numel() == 1 and kernel_numbers.has_int_kernel(int(low), int(high)):
        return kernel_numbers.of_function("uniform", seed, "int", sizes(shape), int(low), int(high))
    out = low + _random("uniform", "uniform", shape, None, seed) * (high - low)
    return (out.floor() if not as_dtype(dtype).is_floating_point else out).to(as_dtype(dtype))


@op()
def normal(shape: Any, mean: Any, stddev: Any, seed: int | None = None) -> T:
    """Normal numbers with the mean and standard deviation, which are numbers or Tensors."""
    return mean + _random("normal", "normal", shape, None, seed) * stddev


@op()
def bernoulli(input: T, p: Any = 0.5, seed: int | None = None) -> T:
    """1 with probability `p`, else 0, in the shape and dtype of `input`."""
    check_is_complete("bernoulli", input)
    if seed is not None and input.device.type == "cpu":
        return (philox_fractions(kernel_numbers.checked_seed(seed), 0, input.shape) <= p).to(input.dtype)
    return (_torch_random(torch.rand, list(input.shape), None, seed) < p).to(input.dtype)


@op(methods=("multinomial",))
@drawing
def multinomial(input: T, num_samples: int, replacement: bool = True, seed: int | None = None) -> T:
    """Indexes (int32) drawn with these weights along the last axis. Raises ValueError for too many draws without replacement."""
    if input.device.type == "cpu":
        return _kernel_multinomial(input, int(num_samples), replacement, seed)
    source = None if seed is None else torch.Generator(input.device).manual_seed(int(seed))
    return torch.multinomial(input, num_samples, replacement, generator=source).to(torch.int32)


def _kernel_multinomial(input: T, num_samples: int, replacement: bool, seed: int | None) -> T:
    rows = [input.shape[0]] if input.ndim > 1 else []
    if replacement:
        return picked(input, kernel_numbers.of_function("multinomial", seed, "minstd_uniform", [*rows, num_samples])).to(torch.int32)
    if num_samples > input.shape[-1]:
        raise ValueError(f"num_samples={num_samples}: expected at most {input.shape[-1]}, the number of weights, without replacement.")
    numbers = kernel_numbers.of_function("multinomial", seed, "uniform", input.shape)
    return torch.topk(torch.log(numbers) / (input + 1e-6), num_samples).indices.to(torch.int32)


@op(primitive="TupleToArray")
def tuple_to_array(input_x: Any) -> T:
    """Convert a tuple of numbers to a Tensor: float32 if it contains a float, else int32. Raises TypeError for anything else.

    >>> ops.tuple_to_array((1, 2, 3)).dtype
    mindspore.int32
    """
    input_x = tuple(input_x) if isinstance(input_x, builtins.range) else input_x
    if not isinstance(input_x, tuple) or not all(isinstance(item, (bool, int, float)) for item in input_x):
        description = "Tensor" if isinstance(input_x, torch.Tensor) else short(input_x)
        raise TypeError(message(f"tuple_to_array({description})", "a tuple of numbers", hint="write Tensor(...) for other data"))
    dtype = torch.float32 if any(isinstance(item, float) for item in input_x) else torch.int32
    return constant(input_x, device.current(), dtype)
