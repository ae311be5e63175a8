"""Precision policies: the dtype in which each operator computes, and the dtypes that a device's kernels support."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node, map_arg

from torchspore.engine.execution.unsupported_dtypes import is_cause_of
from torchspore.engine.torch_internals.torch_private import is_operator, without_modes
from torchspore.graph.fx.exchanges import is_exchange
from torchspore.graph.fx.sample_inputs import filled

CUBE = frozenset({
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "linear", "convolution", "convolution_backward",
})
"""Matrix products, convolutions and their gradients: the operators of a matrix unit (Ascend's cube unit)."""

ALLOWED = CUBE | {"relu", "threshold_backward", "prelu", "_prelu_kernel", "_prelu_kernel_backward"}
"""The operators that the mixed policies compute in 16 bits: products are fastest there, and relu does not round."""

DENIED = frozenset({
    "acos", "asin", "cosh", "sinh", "tan", "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "pow", "reciprocal", "rsqrt", "erfinv",
    "sum", "prod", "mean", "cumsum", "cumprod", "logcumsumexp", "logsumexp", "var", "std", "var_mean", "norm", "linalg_vector_norm",
    "cdist", "_cdist_forward", "_cdist_backward", "renorm",
    "_softmax", "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data",
    "native_layer_norm", "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward", "native_batch_norm",
    "native_batch_norm_backward", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
    "nll_loss_forward", "nll_loss_backward", "nll_loss2d_forward", "nll_loss2d_backward", "mse_loss", "mse_loss_backward",
    "smooth_l1_loss", "smooth_l1_loss_backward", "huber_loss", "huber_loss_backward", "binary_cross_entropy",
    "binary_cross_entropy_backward", "binary_cross_entropy_with_logits", "soft_margin_loss", "soft_margin_loss_backward",
    "multilabel_margin_loss_forward", "multilabel_margin_loss_backward",
    "embedding_dense_backward", "index_add", "index_put", "scatter_add",
})
"""Operators that the mixed policies compute in float32: long sums, functions that leave float16's range, losses, normalization."""

STATEFUL = frozenset({
    "native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
    "_native_batch_norm_legit_functional", "as_strided",
})
"""Operators that no policy changes: batch norms, which write their statistics, and `as_strided`, whose strides count elements."""


_supports: dict[Any, bool] = {}
_FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32})


def has_kernel(node: Node, sources: frozenset[torch.dtype] = frozenset(), dtype: torch.dtype | None = None) -> bool:
    """Return whether the device has a kernel for the node's operator if inputs whose dtypes are in `sources` are cast to `dtype`.

    Unknown cases (unknown lengths, random operators, operators outside torch) count as supported; their kernels report errors.
    """
    if not is_operator(node.target) or node.target.namespace == "torchspore" or torch.Tag.nondeterministic_seeded in node.target.tags:
        return True
    if is_exchange(node):
        return True                    # the ranks must not decide differently
    inputs = [t for n in node.all_input_nodes if isinstance(t := n.meta.get("val"), torch.Tensor)]
    if len(inputs) < len(node.all_input_nodes) or not all(type(length) is int for t in inputs for length in t.shape):
        return True
    if _has_wrong_kernel(node, dtype):
        return False
    kinds = tuple(dtype if t.dtype in sources and dtype is not None else t.dtype for t in inputs)
    if node.target._opname in ALLOWED and set(kinds) <= _FLOATS:
        return True                    # every device has these kernels, and a test run of a convolution is slow
    key = (node.target, kinds, inputs[0].device.type if inputs else "", len(node.args))
    is_supported = _supports.get(key)
    if is_supported is None:
        is_supported = _supports[key] = _is_supported(node, sources, dtype)
    return is_supported


def _has_wrong_kernel(node: Node, dtype: torch.dtype | None) -> bool:
    """Return whether the kernel gives wrong numbers: the gradient of a bfloat16 convolution whose stride is longer than its input.

    On the CPU, oneDNN in torch 2.13 leaves parts of the weight's gradient uninitialized there.
    """
    if node.target is not torch.ops.aten.convolution_backward.default or dtype is not torch.bfloat16:
        return False
    value, stride = node.args[1].meta["val"], node.args[4]  # type: ignore[union-attr]
    return value.device.type == "cpu" and any(length < step for length, step in zip(value.shape[2:], stride))  # type: ignore[arg-type]


def _is_supported(node: Node, sources: frozenset[torch.dtype], dtype: torch.dtype | None) -> bool:
    def zeros(n: Node) -> Any:
        t = n.meta["val"]
        kind = dtype if t.dtype in sources and dtype is not None else t.dtype
        return filled(t, torch.Tensor.zero_, kind)

    target: Any = node.target
    with without_modes(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            target(*with_dtype(node, map_arg(node.args, zeros), sources, dtype), **map_arg(node.kwargs, zeros))
        except (RuntimeError, TypeError, NotImplementedError, IndexError, ValueError) as error:
            return not is_cause_of(error)
    return True


def with_dtype(node: Node, args: Any, sources: frozenset[torch.dtype], dtype: torch.dtype | None) -> Any:
    """Replace the dtype argument of a softmax gradient, which is the dtype of the softmax's input."""
    if dtype is None or getattr(node.target, "_opname", "") not in ("_softmax_backward_data", "_log_softmax_backward_data"):
        return args
    return tuple(dtype if isinstance(a, torch.dtype) and a in sources else a for a in args)


FLOAT16, BFLOAT16, FLOAT32 = torch.float16, torch.bfloat16, torch.float32


@dataclass(frozen=True)
class Policy:
    """The operators that compute in another dtype.

    Only the dtypes in `sources` are replaced. The operators named in `operators` compute in `dtype`; None selects all operators that can.
    The operators in `excluded` compute in the program's dtypes. With `follows_inputs`, other operators compute in `dtype` if all their
    inputs have it (for float32: if any input has it); without it, in the program's dtypes.
    """

    dtype: torch.dtype
    sources: frozenset[torch.dtype]
    operators: frozenset[str] | None
    excluded: frozenset[str] = frozenset()
    follows_inputs: bool = False
    casts_back = False

    def dtype_of(self, node: Node, operands: Sequence[torch.Tensor], now: Sequence[torch.dtype]) -> torch.dtype | None:
        """Return the dtype in which `node` computes; None for the program's dtypes.

        `operands` are its inputs whose dtypes are in `sources`, `now` the current dtypes of these inputs.
        """
        name = node.target._opname if is_operator(node.target) else ""
        if name in self.excluded:
            return None
        dtype = self.dtype if self.operators is None or name in self.operators else self._dtype_of_inputs(operands, now)
        if dtype is None or dtype in self.sources or has_kernel(node, self.sources, dtype):
            return dtype
        return None

    def _dtype_of_inputs(self, operands: Sequence[torch.Tensor], now: Sequence[torch.dtype]) -> torch.dtype | None:
        if not self.follows_inputs:
            return None
        # A 0-d value does not count, as in torch's promotion.
        dtypes = [dtype for t, dtype in zip(operands, now) if t.ndim] or list(now)
        agreed = any if self.dtype is FLOAT32 else all
        return self.dtype if agreed(dtype is self.dtype for dtype in dtypes) else None


def _cube(dtype: torch.dtype) -> Policy:
    return Policy(dtype, frozenset({FLOAT32}), CUBE)


def _mixed(dtype: torch.dtype) -> Policy:
    return Policy(dtype, frozenset({FLOAT32}), ALLOWED, DENIED | STATEFUL, follows_inputs=True)


_POLICIES: dict[str, Policy | None] = {
    "must_keep_origin_dtype": None,
    "force_fp16": Policy(FLOAT16, frozenset({FLOAT32}), None, STATEFUL),
    "force_fp32": Policy(FLOAT32, frozenset({FLOAT16, BFLOAT16}), CUBE, STATEFUL, follows_inputs=True),
    "allow_fp32_to_fp16": _cube(FLOAT16),
    "allow_fp32_to_bf16": _cube(BFLOAT16),
    "allow_mix_precision": _mixed(FLOAT16),
    "allow_mix_precision_fp16": _mixed(FLOAT16),
    "allow_mix_precision_bf16": _mixed(BFLOAT16),
}


def policy_named(mode: str) -> Policy | None:
    """Return the policy of a `precision_mode`; None if it casts nothing."""
    return _POLICIES.get(mode)
