"""New Tensors of mint: constants, ranges, random numbers."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.engine.devices import device
from torchspore.engine.random.generators import drawing
from torchspore.mindspore.mint.shared import T, as_dtype, at_home, no_generator, sizes
from torchspore.mindspore.ops.declaration.declare import bridged


@bridged
def zeros(size: Any, *, dtype: Any = None) -> T:
    """Zeros of shape `size`, float32 unless `dtype` says otherwise."""
    return torch.zeros(sizes(size), dtype=as_dtype(dtype) or torch.float32, device=device.current())


@bridged
def ones(size: Any, *, dtype: Any = None) -> T:
    """Ones of shape `size`, float32 unless `dtype` says otherwise."""
    return torch.ones(sizes(size), dtype=as_dtype(dtype) or torch.float32, device=device.current())


@bridged
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> T:
    """`fill_value` in the shape `size`: int64 for an int, float32 for a float, unless `dtype` says otherwise."""
    value = fill_value.item() if isinstance(fill_value, T) else fill_value
    return torch.full(sizes(size), value, dtype=as_dtype(dtype), device=device.current())


def _pinned(pin_memory: bool) -> None:
    if pin_memory:
        raise ValueError("pin_memory=True: expected False; the data pipeline pins host memory for a GPU.")


@bridged
def empty(*size: Any, dtype: Any = None, device: Any = None, pin_memory: bool = False) -> T:
    """A Tensor of shape `size` with unspecified values, float32 unless `dtype` says otherwise."""
    at_home(device)
    _pinned(pin_memory)
    return torch.empty(sizes(size), dtype=as_dtype(dtype) or torch.float32, device=_here())


@bridged
def empty_like(input: T, *, dtype: Any = None, device: Any = None, pin_memory: bool = False) -> T:
    """A Tensor in the shape of `input` with unspecified values."""
    at_home(device)
    _pinned(pin_memory)
    return torch.empty_like(input, dtype=as_dtype(dtype))


def _here() -> torch.device:
    return device.current()


@bridged
def zeros_like(input: T, *, dtype: Any = None) -> T:
    """Zeros in the shape of `input`."""
    return torch.zeros_like(input, dtype=as_dtype(dtype))


@bridged
def ones_like(input: T, *, dtype: Any = None) -> T:
    """Ones in the shape of `input`."""
    return torch.ones_like(input, dtype=as_dtype(dtype))


@bridged
def full_like(input: T, fill_value: Any, *, dtype: Any = None) -> T:
    """`fill_value` in the shape of `input`."""
    return torch.full_like(input, fill_value, dtype=as_dtype(dtype))


@bridged
def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> T:
    """The numbers from `start` to `end` (exclusive) by `step`; int64 for ints, float32 for floats."""
    first, last = (0, start) if end is None else (start, end)
    return torch.arange(first, last, step, dtype=as_dtype(dtype), device=device.current())


@bridged
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None) -> T:
    """`steps` numbers from `start` to `end`, both included, float32 unless `dtype` says otherwise."""
    return torch.linspace(start, end, steps, dtype=as_dtype(dtype) or torch.float32, device=device.current())


@bridged
@drawing
def rand(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> T:
    """Uniform in [0, 1), float32 unless `dtype` says otherwise."""
    no_generator(generator)
    at_home(device)
    return torch.rand(sizes(size), dtype=as_dtype(dtype) or torch.float32, device=_here())


@bridged
@drawing
def randn(*size: Any, generator: Any = None, dtype: Any = None, device: Any = None) -> T:
    """Standard normal, float32 unless `dtype` says otherwise."""
    no_generator(generator)
    at_home(device)
    return torch.randn(sizes(size), dtype=as_dtype(dtype) or torch.float32, device=_here())


@bridged
@drawing
def rand_like(input: T, *, dtype: Any = None, device: Any = None) -> T:
    """Uniform in [0, 1) in the shape of `input`."""
    at_home(device)
    return torch.rand_like(input, dtype=as_dtype(dtype))


@bridged
@drawing
def randn_like(input: T, *, dtype: Any = None, device: Any = None) -> T:
    """Standard normal in the shape of `input`."""
    at_home(device)
    return torch.randn_like(input, dtype=as_dtype(dtype))


def _bounds(arguments: tuple[Any, ...], named: dict[str, Any], last: str) -> tuple[Any, Any, Any]:
    """Return (low, high, last) from `(high, last)` or `(low, high, last)`, by position or by name."""
    positional = list(arguments)
    by_name = {name: named.pop(name) for name in ("low", "high", last) if name in named}
    if named:
        raise TypeError(f"randint: {next(iter(named))}=: expected low, high or {last}.")
    names = [name for name in ("low", "high", last) if name not in by_name]
    names = names[1:] if names[:1] == ["low"] and len(positional) < len(names) else names
    if len(positional) != len(names):
        raise TypeError(f"randint: {len(positional)} values for {', '.join(names)}: expected one for each.")
    by_name.update(zip(names, positional))
    return by_name.get("low", 0), by_name["high"], by_name.get(last)


@bridged
@drawing
def randint(*args: Any, generator: Any = None, dtype: Any = None, device: Any = None, **named: Any) -> T:
    """Uniform integers below `high` (or from `low` on) in the shape `size`, int64 unless `dtype` says otherwise."""
    no_generator(generator)
    at_home(device)
    low, high, size = _bounds(args, named, "size")
    return torch.randint(low, high, sizes(size), dtype=as_dtype(dtype) or torch.int64, device=_here())


@bridged
@drawing
def randint_like(input: T, *args: Any, dtype: Any = None, device: Any = None, **named: Any) -> T:
    """Uniform integers below `high` (or from `low` on) in the shape of `input`."""
    at_home(device)
    low, high, _ = _bounds((*args, None), named, "size")
    return torch.randint_like(input, low, high, dtype=as_dtype(dtype))


@bridged
@drawing
def randperm(n: int, *, generator: Any = None, dtype: Any = torch.int64) -> T:
    """The integers below n in random order."""
    no_generator(generator)
    return torch.randperm(n, device=device.current()).to(as_dtype(dtype))


@bridged
@drawing
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, generator: Any = None) -> T:
    """Normal numbers with these means and standard deviations; two numbers require a `size`."""
    no_generator(generator)
    if not isinstance(mean, T) and not isinstance(std, T):
        if size is None:
            raise TypeError("normal of two numbers: expected a size.")
        return mean + std * torch.randn(sizes(size), device=device.current())
    if size is not None:
        raise TypeError("normal with size: expected mean and std as numbers, because a Tensor already has a shape.")
    shape = torch.broadcast_shapes(*(value.shape for value in (mean, std) if isinstance(value, T)))
    like = next(value for value in (mean, std) if isinstance(value, T))
    return mean + std * torch.randn(shape, dtype=like.dtype, device=like.device)


@bridged
@drawing
def bernoulli(input: T, *, generator: Any = None) -> T:
    """1 with the probabilities in `input`, else 0."""
    no_generator(generator)
    return torch.bernoulli(input)


@bridged
@drawing
def multinomial(input: T, num_samples: int, replacement: bool = False, *, generator: Any = None) -> T:
    """Indexes (int64) drawn with these weights along the last axis."""
    no_generator(generator)
    return torch.multinomial(input, num_samples, replacement)
