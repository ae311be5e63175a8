"""Which dtypes the kernels of a device take: asked of the kernel itself, with zeros, once for each operator and dtypes."""
from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.fx.node import Node, map_arg

from torchspore.engine.graph.precision import lists
from torchspore.engine.lacking import is_said_by
from torchspore.engine.private import is_operator, without_modes

_known: dict[Any, bool] = {}
_FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32})


def has(node: Node, sources: frozenset[torch.dtype] = frozenset(), dtype: torch.dtype | None = None) -> bool:
    """Whether the device has a kernel for the node's operator, with inputs in one of the `sources` in `dtype` instead.

    What can't be asked (open lengths, random numbers, no operator of torch's) counts as there: its kernel will tell.
    """
    if not is_operator(node.target) or torch.Tag.nondeterministic_seeded in node.target.tags:
        return True
    inputs = [t for n in node.all_input_nodes if isinstance(t := n.meta.get("val"), torch.Tensor)]
    if len(inputs) < len(node.all_input_nodes) or not all(type(length) is int for t in inputs for length in t.shape):
        return True
    if _misreads(node, dtype):
        return False
    kinds = tuple(dtype if t.dtype in sources and dtype is not None else t.dtype for t in inputs)
    if node.target._opname in lists.ALLOWED and set(kinds) <= _FLOATS:
        return True                    # every device has these; to ask a convolution would take as long as to run it
    key = (node.target, kinds, inputs[0].device.type if inputs else "", len(node.args))
    found = _known.get(key)
    if found is None:
        found = _known[key] = _asked(node, sources, dtype)
    return found


def _misreads(node: Node, dtype: torch.dtype | None) -> bool:
    """Whether it is the gradient of a convolution in bfloat16 whose stride is longer than its input.

    oneDNN, as torch 2.13 has it for the CPU, leaves parts of the weight's gradient unwritten there, so that they hold what lay in memory.
    """
    if node.target is not torch.ops.aten.convolution_backward.default or dtype is not torch.bfloat16:
        return False
    value, stride = node.args[1].meta["val"], node.args[4]  # type: ignore[union-attr]
    return value.device.type == "cpu" and any(length < step for length, step in zip(value.shape[2:], stride))  # type: ignore[arg-type]


def _asked(node: Node, sources: frozenset[torch.dtype], dtype: torch.dtype | None) -> bool:
    def zeros(n: Node) -> Any:
        t = n.meta["val"]
        kind = dtype if t.dtype in sources and dtype is not None else t.dtype
        return torch.empty_strided(t.shape, t.stride(), dtype=kind, device=t.device).zero_()

    target: Any = node.target
    with without_modes(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            target(*with_dtype(node, map_arg(node.args, zeros), sources, dtype), **map_arg(node.kwargs, zeros))
        except (RuntimeError, TypeError, NotImplementedError, IndexError, ValueError) as error:
            return not is_said_by(error)
    return True


def with_dtype(node: Node, args: Any, sources: frozenset[torch.dtype], dtype: torch.dtype | None) -> Any:
    """The arguments of a softmax's gradient with the dtype among them replaced: it names the dtype of the softmax's input."""
    if dtype is None or getattr(node.target, "_opname", "") not in ("_softmax_backward_data", "_log_softmax_backward_data"):
        return args
    return tuple(dtype if isinstance(a, torch.dtype) and a in sources else a for a in args)
