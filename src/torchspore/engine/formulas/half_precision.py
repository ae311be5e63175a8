"""Products and convolutions of float16 and bfloat16 on a CPU without instructions for them: in float32, and rounded once.

torch's kernels for such CPUs take 4 to 60 times as long as those of float32. The sums are more exact in float32; the results, and the
gradients, have the dtype of the operands.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from torchspore.context import effects
from torchspore.context.store import STORE
from torchspore.engine.torch_internals import torch_private

T = torch.Tensor
HALVES = frozenset({torch.float16, torch.bfloat16})
_WITHOUT_POLICY = (None, "", "must_keep_origin_dtype")
"""The values of `precision_mode` that leave all dtypes as the program has them."""


@functools.cache
def is_fast(dtype: torch.dtype) -> bool:
    """Return whether this CPU has instructions for products of `dtype`, one of 16 bits."""
    return torch_private.has_products_of(dtype)


def is_slow(t: T) -> bool:
    """Return whether products of `t` are faster in float32."""
    if t.dtype not in HALVES or t.device.type != "cpu" or is_fast(t.dtype):
        return False
    return STORE.get("precision_mode") in _WITHOUT_POLICY          # a policy looks for products in the program's own dtypes


def in_float32(compute: Callable[..., T], *operands: Any) -> T:
    """`compute(*operands)`, in float32 where the first operand is of 16 bits and on a CPU that is slow there; then rounded to its dtype.

    Operands of another dtype stay as they are, so that torch refuses a mixture as it does elsewhere.
    """
    return compute(*operands) if operands[0].dtype is torch.float32 or not is_slow(operands[0]) else _in_float32(compute, operands)


def run_convolution(compute: Callable[..., T], *operands: Any) -> T:
    """`compute(*operands)`, a convolution, as `in_float32` computes it; also in float32 if it records a gradient in float16 on a CPU.

    torch's float16 kernels for the gradients of convolutions take 20 times as long as those of float32, on any CPU.
    """
    t = operands[0]
    if t.dtype is torch.float32:
        return compute(*operands)
    if t.dtype is not torch.float16 or t.device.type != "cpu" or not _records_gradient(operands):
        return in_float32(compute, *operands)
    if STORE.get("precision_mode") not in _WITHOUT_POLICY:
        return compute(*operands)
    effects.note("precision", "convolutions of Float16 with gradients compute in Float32 on the CPU; their results are rounded to Float16")
    return _in_float32(compute, operands)


def _records_gradient(operands: tuple[Any, ...]) -> bool:
    return torch.is_grad_enabled() and any(isinstance(value, T) and value.requires_grad for value in operands)


def _in_float32(compute: Callable[..., T], operands: tuple[Any, ...]) -> T:
    dtype = operands[0].dtype
    wide = [value.float() if isinstance(value, T) and value.dtype is dtype else value for value in operands]
    return compute(*wide).to(dtype)
