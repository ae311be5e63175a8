"""Which dtype each operator computes in under a policy, and which dtypes the kernels of a device have."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node, map_arg

from torchspore.engine.core.torch_private import is_operator, without_modes
from torchspore.engine.core.unsupported_dtypes import is_cause_of
from torchspore.graph.fx.exchanges import is_exchange
from torchspore.graph.fx.sample_inputs import filled

CUBE = frozenset({
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "linear", "convolution", "convolution_backward",
})
"""Products and convolutions, and their gradients: what a matrix unit computes."""

ALLOWED = CUBE | {"relu", "threshold_backward", "prelu", "_prelu_kernel", "_prelu_kernel_backward"}
"""The operators that the mixed policies compute in 16 bits: products gain most, and relu only picks."""

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
"""Operators that no policy changes: batch norms, whose statistics are state, and views that count in elements of the memory behind them."""


_supports: dict[Any, bool] = {}
_FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32})


def has(node: Node, sources: frozenset[torch.dtype] = frozenset(), dtype: torch.dtype | None = None) -> bool:
    """Return whether the device has a kernel for the node's operator, with inputs in one of the `sources` in `dtype` instead.

    Unknown cases (open lengths, random numbers, operators outside torch) count as supported: their kernel will report an error.
    """
    if not is_operator(node.target) or node.target.namespace == "torchspore" or torch.Tag.nondeterministic_seeded in node.target.tags:
        return True
    if is_exchange(node):
        return True                    # the other ranks do not ask
    inputs = [t for n in node.all_input_nodes if isinstance(t := n.meta.get("val"), torch.Tensor)]
    if len(inputs) < len(node.all_input_nodes) or not all(type(length) is int for t in inputs for length in t.shape):
        return True
    if _misreads(node, dtype):
        return False
    kinds = tuple(dtype if t.dtype in sources and dtype is not None else t.dtype for t in inputs)
    if node.target._opname in ALLOWED and set(kinds) <= _FLOATS:
        return True                    # every device has these; to ask a convolution would take as long as to run it
    key = (node.target, kinds, inputs[0].device.type if inputs else "", len(node.args))
    is_supported = _supports.get(key)
    if is_supported is None:
        is_supported = _supports[key] = _is_supported(node, sources, dtype)
    return is_supported


def _misreads(node: Node, dtype: torch.dtype | None) -> bool:
    """Return whether it is the gradient of a convolution in bfloat16 whose stride is longer than its input.

    oneDNN, as torch 2.13 has it for the CPU, leaves parts of the weight's gradient unwritten there, so that they hold what lay in memory.
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
    """The arguments of a softmax's gradient with the dtype among them replaced: it names the dtype of the softmax's input."""
    if dtype is None or getattr(node.target, "_opname", "") not in ("_softmax_backward_data", "_log_softmax_backward_data"):
        return args
    return tuple(dtype if isinstance(a, torch.dtype) and a in sources else a for a in args)


HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


@dataclass(frozen=True)
class Policy:
    """Which operators take another dtype.

    `sources` are the dtypes that may be replaced; everything else in a graph stays as it is. `inside` (by names of operators) compute in
    `dtype`; with `inside` None all do that can. `outside` compute in their own dtype. What is in neither follows its inputs where
    `spreads`: in `dtype` where all of them are, else in the wider one; otherwise it gets the dtypes that the program gave.
    """

    dtype: torch.dtype
    sources: frozenset[torch.dtype]
    inside: frozenset[str] | None
    outside: frozenset[str] = frozenset()
    spreads: bool = False
    rounds = False

    def dtype_of(self, node: Node, operands: Sequence[torch.Tensor], now: Sequence[torch.dtype]) -> torch.dtype | None:
        """The dtype in which `node` computes; None for the dtypes that the program gave.

        `operands` are its inputs in one of the `sources`, as the program has them; `now` their dtypes as the graph has them by now.
        """
        name = node.target._opname if is_operator(node.target) else ""
        if name in self.outside:
            return None
        dtype = self.dtype if self.inside is None or name in self.inside else self._followed(operands, now)
        if dtype is None or dtype in self.sources or has(node, self.sources, dtype):
            return dtype
        return None

    def _followed(self, operands: Sequence[torch.Tensor], now: Sequence[torch.dtype]) -> torch.dtype | None:
        if not self.spreads:
            return None
        # A 0-d value takes the dtype of the others, as it does in torch's promotion.
        voices = [dtype for t, dtype in zip(operands, now) if t.ndim] or list(now)
        agreed = any if self.dtype is SINGLE else all
        return self.dtype if agreed(dtype is self.dtype for dtype in voices) else None


def _cube(dtype: torch.dtype) -> Policy:
    return Policy(dtype, frozenset({SINGLE}), CUBE)


def _mixed(dtype: torch.dtype) -> Policy:
    return Policy(dtype, frozenset({SINGLE}), ALLOWED, DENIED | STATEFUL, spreads=True)


_POLICIES: dict[str, Policy | None] = {
    "must_keep_origin_dtype": None,
    "force_fp16": Policy(HALF, frozenset({SINGLE}), None, STATEFUL),
    "force_fp32": Policy(SINGLE, frozenset({HALF, BRAIN}), CUBE, STATEFUL, spreads=True),
    "allow_fp32_to_fp16": _cube(HALF),
    "allow_fp32_to_bf16": _cube(BRAIN),
    "allow_mix_precision": _mixed(HALF),
    "allow_mix_precision_fp16": _mixed(HALF),
    "allow_mix_precision_bf16": _mixed(BRAIN),
}


def named(mode: str) -> Policy | None:
    """The policy of this name; None where nothing is cast."""
    return _POLICIES.get(mode)
