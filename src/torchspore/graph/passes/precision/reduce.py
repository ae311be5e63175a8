"""`enable_reduce_precision` in graphs: operators whose dtype the device does not support."""
from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx.node import Node

from torchspore.base.frames import user_line
from torchspore.base.text import with_hint
from torchspore.engine.execution.unsupported_dtypes import HINT, NARROW, kind, report_operators, sentence
from torchspore.engine.torch_internals import node_metadata
from torchspore.errors import LacksKernel
from torchspore.graph.fx.modules import transform_inner
from torchspore.graph.passes.precision import policy
from torchspore.graph.passes.precision.casts import Module, insert_casts
from torchspore.translations import translate


class MissingKernelRule:
    """The rule for operators without a kernel in their dtype: they compute in float32, and their results are cast back."""

    sources = NARROW
    casts_back = True

    def __init__(self) -> None:
        self.names: list[str] = []

    def dtype_of(self, node: Node, operands: Sequence[torch.Tensor], now: Sequence[torch.dtype]) -> torch.dtype | None:
        """Return float32 for an operator whose kernel is missing, else None."""
        if policy.has_kernel(node) or not policy.has_kernel(node, NARROW, torch.float32):
            return None
        self.names.append(f"{node.target._opname} in {kind(operands[0].dtype)}")  # type: ignore[union-attr]
        return torch.float32


def cast_unsupported(module: Module, reduces: bool) -> Module:
    """Insert casts so that each operator has a kernel, in place. Raises LacksKernel for an operator without one unless `reduces`."""
    unsupported = _first_unsupported(module)
    if unsupported is None:
        return module
    if not reduces:
        value = next(n.meta["val"] for n in unsupported.all_input_nodes if n.meta["val"].dtype in NARROW)
        line = unsupported.meta.get(node_metadata.LINE) or user_line()
        name = unsupported.target._opname  # type: ignore[union-attr]
        raise LacksKernel(with_hint(f"{line}: {name}: {sentence(value.dtype)}", translate(HINT)))
    rule = MissingKernelRule()
    insert_casts(module, rule)
    report_operators(rule.names)
    return module


def _first_unsupported(module: Module) -> Node | None:
    """Return the first operator that has a kernel in float32 but not in its dtype; None if there is none."""
    names: list[Node] = []

    def look(graph: Module) -> None:
        for node in graph.graph.nodes:
            if node.op == "call_function" and any(
                isinstance(t := n.meta.get("val"), torch.Tensor) and t.dtype in NARROW for n in node.all_input_nodes
            ) and not policy.has_kernel(node) and policy.has_kernel(node, NARROW, torch.float32):
                names.append(node)
        transform_inner(graph, look)

    look(module)
    return names[0] if names else None
