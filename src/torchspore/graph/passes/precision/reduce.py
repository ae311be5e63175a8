"""`enable_reduce_precision` in graphs: operators that the device lacks in the dtype that they are asked in."""
from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx.node import Node

from torchspore.base.frames import user_line
from torchspore.engine.core import node_metadata
from torchspore.engine.core.unsupported_dtypes import HINT, NARROW, kind, sentence, tell
from torchspore.errors import LacksKernel
from torchspore.graph.fx.modules import change_inner
from torchspore.graph.passes.precision import policy
from torchspore.graph.passes.precision.casts import Module, rewritten


class Lacking:
    """The rule: what has no kernel in its dtype computes in float32, and its result is cast back at once."""

    sources = NARROW
    rounds = True

    def __init__(self) -> None:
        self.names: list[str] = []

    def dtype_of(self, node: Node, operands: Sequence[torch.Tensor], now: Sequence[torch.dtype]) -> torch.dtype | None:
        """float32 for an operator whose kernel is missing."""
        if policy.has(node) or not policy.has(node, NARROW, torch.float32):
            return None
        self.names.append(f"{node.target._opname} in {kind(operands[0].dtype)}")  # type: ignore[union-attr]
        return torch.float32


def supported(module: Module, reduces: bool) -> Module:
    """The graph in which each operator has a kernel. Raises LacksKernel for one that has none unless `reduces`."""
    lacking = _lacking(module)
    if lacking is None:
        return module
    if not reduces:
        value = next(n.meta["val"] for n in lacking.all_input_nodes if n.meta["val"].dtype in NARROW)
        line = lacking.meta.get(node_metadata.LINE) or user_line()
        raise LacksKernel(f"{line}: {lacking.target._opname}: {sentence(value.dtype)}\n\nhint: {HINT}")  # type: ignore[union-attr]
    rule = Lacking()
    rewritten(module, rule)
    tell(rule.names)
    return module


def _lacking(module: Module) -> Node | None:
    """The first operator that has no kernel in its dtype and would have one in float32."""
    names: list[Node] = []

    def look(graph: Module) -> None:
        for node in graph.graph.nodes:
            if node.op == "call_function" and any(
                isinstance(t := n.meta.get("val"), torch.Tensor) and t.dtype in NARROW for n in node.all_input_nodes
            ) and not policy.has(node) and policy.has(node, NARROW, torch.float32):
                names.append(node)
        change_inner(graph, look)

    look(module)
    return names[0] if names else None
