"""Helpers of mint's functions: dtypes, sizes, axes, the generator, in-place writes."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.mindspore.ops.declaration.arguments import as_dtype as as_dtype
from torchspore.mindspore.ops.declaration.arguments import sizes as sizes
from torchspore.mindspore.ops.declaration.write_back import write_back as write_back

T = torch.Tensor


def axes(dim: Any) -> Any:
    """Return the axes of `dim` in torch's form: None and () mean all axes."""
    if isinstance(dim, (list, tuple)):
        return tuple(dim) or None
    return dim


def no_generator(generator: Any) -> None:
    """Refuse a `generator`: random numbers come from the stream that `mindspore.set_seed` starts."""
    if generator is not None:
        raise TypeError(message(
            f"generator={short(generator)}", "None", hint="mindspore.set_seed starts the stream that random numbers come from.",
        ))


def at_home(device: Any) -> None:
    """Refuse a `device` other than the context's: `set_device` determines where Tensors are created."""
    if device is not None:
        raise TypeError(message(f"device={short(device)}", "None", hint="mindspore.set_device sets where Tensors are created."))


def total_dtype(input: T, dtype: Any) -> torch.dtype | None:
    """Return the dtype of a sum: `dtype`, int64 for integers and bools, else the input's dtype."""
    sum_dtype = as_dtype(dtype)
    return torch.int64 if sum_dtype is None and not (input.is_floating_point() or input.is_complex()) else sum_dtype


def in_floats(input: T) -> T:
    """Return the Tensor, with integers and bools as float32, because norms require floats."""
    return input if input.is_floating_point() or input.is_complex() else input.to(torch.float32)
