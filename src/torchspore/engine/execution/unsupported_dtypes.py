"""`enable_reduce_precision`: operators that the device has no kernel for in the dtype that they are asked in.

PyNative meets them when a kernel refuses; in graphs they are looked for before anything runs
(graph/passes/precision/reduce.py). With the switch
on they compute in float32 and their results are cast back; with it off they are an error.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase, raw, tensors, transform, wrap
from torchspore.translations import translatable, translate

NARROW = frozenset({torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float64})
"""Dtypes that a device may lack kernels for while it has them for float32."""

_LACKS = re.compile(r"not implemented for '|not supported|unsupported dtype|does not support|must be either float or double", re.I)


def is_cause_of(error: BaseException) -> bool:
    """Return whether an error of torch's says that there is not a kernel for a dtype."""
    return isinstance(error, (RuntimeError, TypeError)) and _LACKS.search(str(error)) is not None


def dtype_of(arguments: Any) -> torch.dtype | None:
    """Return the dtype that all floating-point Tensors among the arguments share, if a device may lack it."""
    try:
        kinds = {tensor._t.dtype for tensor in tensors(arguments) if isinstance(tensor, TensorBase) and tensor._t.is_floating_point()}
    except RecursionError:                 # lists in lists without end
        return None
    return kinds.pop() if len(kinds) == 1 and kinds <= NARROW else None


def may_cast() -> bool:
    """Return the value of the switch."""
    return bool(STORE.get("enable_reduce_precision"))


def widened(arguments: Any) -> Any:
    """The arguments with their floating-point Tensors in float32."""
    def wide(tensor: TensorBase) -> Any:
        t = raw(tensor)
        return wrap(t.to(torch.float32)) if t.is_floating_point() else tensor

    return transform(arguments, wide)


def narrowed(result: Any, dtype: torch.dtype) -> Any:
    """The result with its float32 Tensors in `dtype`."""
    def narrow(tensor: TensorBase) -> Any:
        t = raw(tensor)
        return wrap(t.to(dtype)) if t.dtype is torch.float32 else tensor

    return transform(result, narrow)


def report_operators(names: Sequence[str]) -> None:
    """Report in `explain` the operators that compute in float32 instead, with their dtypes."""
    for line in dict.fromkeys(names):
        effects.note("operators without a kernel in their dtype", line)
    shown = ", ".join(dict.fromkeys(names))
    effects.report("enable_reduce_precision", Outcome.applied(translate("computed in float32 and cast back: {names}").format(names=shown)))


def sentence(dtype: torch.dtype) -> str:
    """Return the reason of the error, to follow the operator's call, if no cast may be inserted."""
    text = translate("this device has no kernel for {dtype}, and enable_reduce_precision=False forbids a cast.")
    return text.format(dtype=kind(dtype))


HINT = translatable("write x.astype(mindspore.float32) for its input, or set_context(enable_reduce_precision=True)")


def kind(dtype: torch.dtype) -> str:
    """The dtype as messages name it."""
    return str(FROM_TORCH.get(dtype, dtype))
