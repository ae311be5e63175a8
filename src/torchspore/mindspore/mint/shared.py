"""What the bodies of mint share: dtypes, sizes, axes, the one generator, writing in place."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.engine.core.tensor import raw, write
from torchspore.mindspore.ops.activation import as_dtype as as_dtype
from torchspore.mindspore.ops.array import sizes as sizes

T = torch.Tensor


def axes(dim: Any) -> Any:
    """The axes that `dim` names, as torch takes them: None and () are all of them."""
    if isinstance(dim, (list, tuple)):
        return tuple(dim) or None
    return dim


def no_generator(generator: Any) -> None:
    """Refuses a `generator`: random numbers here come from the one stream that `mindspore.set_seed` starts."""
    if generator is not None:
        raise TypeError(message(
            f"generator={short(generator)}", "None", hint="mindspore.set_seed starts the stream that random numbers come from.",
        ))


def at_home(wanted: Any) -> None:
    """Refuses a `device` other than the context's own: Tensors are made where `set_device` says."""
    if wanted is not None:
        raise TypeError(message(f"device={short(wanted)}", "None", hint="mindspore.set_device says where Tensors are made."))


def total_dtype(input: T, dtype: Any) -> torch.dtype | None:
    """The dtype of a sum: `dtype`, int64 for integers and bools, else the input's own."""
    wanted = as_dtype(dtype)
    return torch.int64 if wanted is None and not (input.is_floating_point() or input.is_complex()) else wanted


def in_floats(input: T) -> T:
    """The Tensor, integers and bools as float32: what has a norm."""
    return input if input.is_floating_point() or input.is_complex() else input.to(torch.float32)


def written(input: Any, out: Any) -> Any:
    """`input`, which `out` is written into."""
    write(input, raw(out).to(input._t.dtype))
    return input
