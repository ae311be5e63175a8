"""Dropout: set random elements or channels to 0."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base.arguments import is_int
from torchspore.base.text import message, with_type
from torchspore.context import effects
from torchspore.engine.devices import device
from torchspore.engine.random.generators import drawing
from torchspore.engine.random.operator_streams import OperatorStream, dropped, of_function
from torchspore.engine.split_layouts.sharded_value import check_is_complete
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


def _note_seed(call: str) -> None:
    effects.note("random numbers", f"{call}: draws from the stream that set_seed starts, not from a separate one")


@op()
def dropout(input: T, p: float = 0.5, training: bool = True, seed: int | None = None) -> T:
    """Set each element to 0 with probability `p` and divide the others by 1 - p, while `training`.

    On the CPU, after `set_seed` or with a `seed`, each call has the mask of MindSpore 2.10. Elsewhere a `seed` does not start a separate
    stream, and `explain` reports that.
    """
    if seed is not None:
        if not is_int(seed):
            raise TypeError(message(f"seed={seed!r:.40}", with_type("an int", seed)))
        if seed < 0:
            raise ValueError(message(f"seed={seed}", "an int from 0 on"))
        if not _has_kernel(input):
            _note_seed(f"dropout(seed={seed})")
    if not training or not _has_kernel(input) or not 0 <= p < 1:
        return _torch_dropout(input, p, training)
    check_is_complete("dropout", input)
    return dropped(input, 1 - p, of_function("dropout", seed or 0))[0]


@drawing
def _torch_dropout(input: T, p: float, training: bool) -> T:
    return F.dropout(input, p, training)


def _has_kernel(x: T) -> bool:
    """Return whether MindSpore's CPU kernel, whose random numbers are reproduced, would compute a dropout of `x`."""
    return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float16, torch.float64, torch.bfloat16)


@op()
def _layer_dropout(x: T, keep_prob: float, stream: OperatorStream) -> T:
    """Keep each element of x with probability `keep_prob` and divide it by that, by the generator of a layer."""
    if not stream.is_seeded or not _has_kernel(x):
        return _torch_dropout(x, 1 - keep_prob, True)
    check_is_complete("dropout", x)
    return dropped(x, keep_prob, stream)[0]


@op(primitive="Dropout", init=("keep_prob", "Seed0", "Seed1"))
def _dropout(x: T, keep_prob: float = 0.5, Seed0: Any = 0, Seed1: int = 0) -> Any:
    """Keep each element with probability `keep_prob` and divide it by that; also return the mask.

    On the CPU, the seeds start a separate stream of the primitive, as in MindSpore 2.10. Elsewhere they do not, and `explain` reports that.
    """
    if isinstance(Seed0, OperatorStream):
        if _has_kernel(x):
            check_is_complete("dropout", x)
            out, mask = dropped(x, keep_prob, Seed0)
            return out, mask.to(x.dtype)
        _note_seed(f"Dropout(Seed0={Seed0.seeds[0]}, Seed1={Seed1})")  # type: ignore[index]
    return _torch_dropout_and_mask(x, keep_prob)


@op(primitive="DropoutExt")
def _dropout_ext(input: T, p: float, seed: Any, offset: Any) -> tuple[T, T]:
    """Set each element to 0 with probability `p` and divide the others by 1 - p; also return which elements stay (bool).

    `seed` and `offset` start no separate stream, and `explain` reports that. MindSpore has this operator on Ascend, with a packed mask.
    """
    del seed, offset
    _note_seed("DropoutExt(seed, offset)")
    return _torch_dropout_ext(input, p)


@drawing
def _torch_dropout_ext(input: T, p: float) -> tuple[T, T]:
    mask = torch.rand_like(input, dtype=torch.float32) >= p
    return input * mask * (1 / (1 - p) if p < 1 else 0.0), mask


@drawing
def _torch_dropout_and_mask(x: T, keep_prob: float) -> tuple[T, T]:
    mask = torch.rand_like(x) < keep_prob
    return x * mask / keep_prob, mask.to(x.dtype)


@drawing
def _channels(x: T, p: float, axes: tuple[int, ...]) -> tuple[T, T]:
    """Set channels of x to 0 with probability `p` and divide the others by 1 - p; also return which elements stay (bool).

    A channel is everything at one index of (N, C); `axes` are the numbers of axes that the input may have.
    """
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise TypeError(message(f"p={p!r:.40}", with_type("a number", p)))
    if not 0 <= p <= 1:
        raise ValueError(f"p={p}: expected a number from 0 to 1.")
    if x.ndim not in axes:
        raise ValueError(f"expected an input of {' or '.join(map(str, axes))} axes, got shape {tuple(x.shape)}.")
    check_is_complete("dropout of channels", x)
    shape = [*x.shape[: 1 if x.ndim < max(axes) else 2], *[1] * (max(axes) - 2)]
    keep_mask = (torch.rand(shape, device=x.device) >= p).expand(x.shape)
    # If all are dropped, the result is zeros instead of 0 / 0.
    return torch.where(keep_mask, x / (1 - p) if p < 1 else x, torch.zeros_like(x)), keep_mask


@op()
def dropout1d(input: T, p: float = 0.5, training: bool = True) -> T:
    """Set channels of (N, C, L) or (C, L) to 0 with probability `p` and divide the others by 1 - p, while `training`."""
    out, _ = _channels(input, p, (2, 3))
    return out if training else input


@op()
def dropout2d(input: T, p: float = 0.5, training: bool = True) -> T:
    """Set channels of (N, C, H, W) to 0 with probability `p` and divide the others by 1 - p, while `training`."""
    out, _ = _channels(input, p, (4,))
    return out if training else input


@op()
def dropout3d(input: T, p: float = 0.5, training: bool = True) -> T:
    """Set channels of (N, C, D, H, W) to 0 with probability `p` and divide the others by 1 - p, while `training`."""
    out, _ = _channels(input, p, (5,))
    return out if training else input


@op(primitive="Dropout2D", init=("keep_prob",))
def _dropout2d(x: T, keep_prob: float = 0.5) -> Any:
    """Keep channels of (N, C, H, W) with probability `keep_prob` and divide them by it; also return which elements stay (bool)."""
    return _channels(x, 1.0 - keep_prob, (4,))


@op(primitive="Dropout3D", init=("keep_prob",))
def _dropout3d(x: T, keep_prob: float = 0.5) -> Any:
    """Keep channels of (N, C, D, H, W) with probability `keep_prob` and divide them by it; also return which elements stay (bool)."""
    return _channels(x, 1.0 - keep_prob, (5,))


@op(primitive="DropoutGenMask", init=("Seed0", "Seed1"))
@drawing
def _dropout_mask(shape: Any, keep_prob: Any, Seed0: int = 0, Seed1: int = 0) -> T:
    """A mask for DropoutDoMask: one bit for each element of `shape`, 1 with probability `keep_prob`, in bytes (uint8).

    The number of bytes is a multiple of 16. `Seed0` and `Seed1` do not start a separate stream, and `explain` reports that.
    """
    if Seed0 or Seed1:
        _note_seed(f"DropoutGenMask(Seed0={Seed0}, Seed1={Seed1})")
    count = 1
    for length in shape:
        count *= int(length)
    size = -(-count // 128) * 128
    target_device = keep_prob.device if isinstance(keep_prob, T) else device.current()
    bits = torch.rand(size, device=target_device) < keep_prob
    powers = constant([1, 2, 4, 8, 16, 32, 64, 128], target_device, torch.int32)
    return (bits.reshape(-1, 8).int() * powers).sum(1).to(torch.uint8)


@op(primitive="DropoutDoMask")
def _dropout_apply(input_x: T, mask: T, keep_prob: Any) -> T:
    """Divide the elements whose bit in `mask` (of DropoutGenMask) is 1 by `keep_prob`, and set the others to 0."""
    powers = constant([1, 2, 4, 8, 16, 32, 64, 128], mask.device, torch.int32)
    keep_mask = ((mask.int().unsqueeze(-1) & powers) != 0).flatten()[: input_x.numel()].reshape(input_x.shape)
    scaled = input_x / (keep_prob.to(input_x.dtype) if isinstance(keep_prob, T) else keep_prob)
    return torch.where(keep_mask, scaled, torch.zeros_like(input_x))
