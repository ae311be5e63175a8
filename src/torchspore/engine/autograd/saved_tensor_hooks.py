"""The program's hooks on values that are saved for the backward pass: packed when they are saved, unpacked when they are needed."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import graph

from torchspore.base.text import message
from torchspore.engine.tensors.tensor import TensorBase, is_recording, raw, wrap

Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]


def hooks(pack: Pack, unpack: Unpack) -> Any:
    """A context whose kept values go through `pack`, and come back through `unpack`.

    `unpack` has to give a Tensor of the value's shape and dtype; TypeError and ValueError in the backward pass otherwise.
    """
    return graph.saved_tensors_hooks(lambda t: (pack(wrap(t.detach())), t.shape, t.dtype), lambda packed: _unpacked(unpack, *packed))


def hooked(call: Callable[..., Any], pack: Pack, unpack: Unpack) -> Callable[..., Any]:
    """`call`, whose values kept for a gradient go through the hooks."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if not is_recording():
            return call(*args, **kwargs)
        with hooks(pack, unpack):
            return call(*args, **kwargs)

    return run


def _unpacked(unpack: Unpack, packed: Any, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    value = unpack(packed)
    if not isinstance(value, TensorBase):
        raise TypeError(message(f"unpack_hook gave a {type(value).__name__}", "a Tensor", hint="return what pack_hook was given"))
    unpacked = raw(value)
    if unpacked.shape != shape or unpacked.dtype is not dtype:
        got = f"unpack_hook gave a Tensor of shape {tuple(unpacked.shape)} and {str(unpacked.dtype)[6:]}"
        raise ValueError(message(got, f"shape {tuple(shape)} and {str(dtype)[6:]}, as pack_hook was given"))
    return unpacked.detach()
