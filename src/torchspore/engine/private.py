"""The one file that touches torch's private modules and functions; a new torch is looked at here first."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental import proxy_tensor as _proxy_tensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx, track_tensor_tree
from torch.utils._python_dispatch import _disable_current_modes as without_modes

fused_sgd, fused_adam, fused_adamw = torch._fused_sgd_, torch._fused_adam_, torch._fused_adamw_
add_all, multiply_all, zero_all = torch._foreach_add, torch._foreach_mul, torch._foreach_zero_
onednn_linear = torch.ops.mkldnn._linear_pointwise.default._op
softmax, log_softmax, gelu = torch._softmax, torch._log_softmax, torch._C._nn.gelu


def current_trace() -> tuple[Any, Any]:
    """The tracer of the `make_fx` that runs now, and its fake mode."""
    tracing: Any = _proxy_tensor._CURRENT_MAKE_FX_TRACER
    return tracing.fx_tracer, tracing.fake_tensor_mode


def is_operator(target: Any) -> TypeGuard[OpOverload]:
    """Whether the target of a graph's node is an ATen operator (not `getitem`, say)."""
    return isinstance(target, OpOverload)


def kernel_of(target: Any) -> Callable[..., Any]:
    """What the operator object itself calls."""
    return target._op if isinstance(target, OpOverload) else target


__all__ = [
    "FakeTensor", "add_all", "current_trace", "disable_proxy_modes_tracing", "fused_adam", "fused_adamw", "fused_sgd", "gelu",
    "is_operator",
    "kernel_of", "log_softmax", "make_fx", "multiply_all", "onednn_linear", "softmax", "track_tensor_tree", "without_modes", "zero_all",
]
