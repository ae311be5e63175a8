"""Padding at the ends of axes."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base.arguments import is_int
from torchspore.base.text import message
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.declare import op

T = torch.Tensor


@op(primitive="Pad", init=("paddings",))
def _pad(input_x: T, paddings: Any) -> T:
    """Pad each axis with zeros before and after it, by the rows of `paddings`."""
    if len(paddings) != input_x.ndim:
        raise ValueError(f"expected {input_x.ndim} pairs of paddings, one for each axis, got {len(paddings)}.")
    return F.pad(input_x, [p for row in reversed(paddings) for p in row])


@op(older={"paddings": "padding"})
def pad(input_x: T, padding: Any, mode: str = "constant", value: Any = None) -> T:
    """Pad the ends of the last axes first; `mode` is 'constant', 'reflect', 'replicate' or 'circular'.

    Programs for 1.x pass a pair of counts for each axis, in order.
    """
    pads_to_apply = padding.tolist() if isinstance(padding, T) else padding
    if pads_to_apply and all(isinstance(pair, (tuple, list)) for pair in pads_to_apply):      # 1.x: a pair for each axis, in order
        pads_to_apply = [count for pair in reversed(pads_to_apply) for count in pair]
    pads = [int(p) for p in pads_to_apply]
    return F.pad(input_x, pads, mode, (0 if value is None else value) if mode == "constant" else None)


@op(primitive="Padding", init=("pad_dim_size",))
def padding(x: T, pad_dim_size: int = 8) -> T:
    """Pad the last axis, of length 1, with zeros to `pad_dim_size`. Raises ValueError for another length, and for a single axis."""
    if not is_int(pad_dim_size):
        raise TypeError(message(f"pad_dim_size={pad_dim_size!r}", "an int"))
    if pad_dim_size < 1:
        raise ValueError(message(f"pad_dim_size={pad_dim_size}", "an int from 1 on"))
    if x.ndim < 2 or x.shape[-1] != 1:
        raise ValueError(f"x of shape {tuple(x.shape)}: expected two axes or more, the last of length 1.")
    return F.pad(x, (0, pad_dim_size - 1))


@op(primitive="MirrorPad", init=("mode",))
def mirror_pad(input_x: T, paddings: Any, mode: str = "REFLECT") -> T:
    """Mirror the ends: without the border in mode 'REFLECT', with it in 'SYMMETRIC'."""
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"mode={mode!r:.40}: expected 'REFLECT' or 'SYMMETRIC'.")
    rows = paddings.tolist() if isinstance(paddings, T) else list(paddings)
    if len(rows) != input_x.ndim:
        raise ValueError(f"expected {input_x.ndim} pairs of paddings, one for each axis, got {len(rows)}.")
    if any(count < 0 for row in rows for count in row):
        raise ValueError(f"paddings={rows}: expected ints from 0 on.")
    is_changed = False
    for axis, (before, after) in enumerate(rows):
        if not before and not after:
            continue
        length, skip = input_x.shape[axis], mode == "REFLECT"
        index = [*range(before - 1 + skip, skip - 1, -1), *range(length), *range(length - 1 - skip, length - 1 - skip - after, -1)]
        is_changed, input_x = True, input_x.index_select(axis, constant(index, input_x.device))
    return input_x if is_changed else input_x.clone()


@op(primitive="PadV3", init=("mode", "paddings_contiguous"), numbers=("paddings",))
def _pad_v3(x: T, paddings: Any, constant_value: Any = 0, mode: str = "constant", paddings_contiguous: bool = True) -> T:
    """Pad the ends of the last axes first, as `pad`; if not `paddings_contiguous`, `paddings` lists all beginnings, then all ends.

    `mode` is 'constant', 'reflect', 'edge' or 'circular'; 'constant' fills with `constant_value`.
    """
    modes = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "circular": "circular"}
    if mode not in modes:
        raise ValueError(f"mode={mode!r}: expected one of {', '.join(modes)}.")
    pads = [int(p) for p in (paddings.flatten().tolist() if isinstance(paddings, T) else paddings)]
    if not paddings_contiguous:
        half = len(pads) // 2
        pads = [p for pair in zip(pads[:half], pads[half:]) for p in pair]
    if mode != "constant":
        return F.pad(x, pads, modes[mode])
    return F.pad(x, pads, value=constant_value.item() if isinstance(constant_value, T) else constant_value)


@op()
def _pad_by_layer(x: T, pads: Any, mode: str, value: Any) -> T:
    """Pad the ends of the last axes first, for the layers; negative counts crop. `value` may be a bool."""
    if mode == "constant":
        return F.pad(x, list(pads), value=value)
    inner = len(pads) // 2
    if x.ndim not in (inner, inner + 1, inner + 2):
        raise ValueError(f"expected an input of {inner} to {inner + 2} axes, got shape {tuple(x.shape)}.")
    return F.pad(x, list(pads), mode) if x.ndim > inner else F.pad(x.unsqueeze(0), list(pads), mode).squeeze(0)
