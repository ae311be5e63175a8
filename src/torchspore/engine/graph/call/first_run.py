"""The first run of a graph, which a program may wait for: kernels are loaded, and some kinds of numbers are slow on a CPU."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.engine import tree
from torchspore.engine.graph.call.graph import Graph
from torchspore.engine.graph.fx.modules import nested_nodes
from torchspore.engine.graph.report import progress
from torchspore.engine.half_precision import HALVES, is_fast
from torchspore.engine.tensor import TensorBase


def run(graph: Graph, flat: list[TensorBase]) -> Any:
    """Run the graph for these arguments. Long runs say on stderr what runs."""
    with progress.waiting(f"{user_line()}: a graph of {graph.operators:,} operators", f"runs for the first time{_slowness(graph.module)}."):
        return graph.run(flat)


def _slowness(module: torch.fx.GraphModule) -> str:
    """Why the graph is slow, if it computes on the CPU in a dtype for which the CPU has no instructions; else an empty text."""
    counts: dict[torch.dtype, int] = {}
    for node in [*module.graph.nodes, *nested_nodes(module)]:
        for t in tree.listed(node.meta.get("val")):
            if node.op == "call_function" and isinstance(t, torch.Tensor) and t.dtype in HALVES and t.device.type == "cpu":
                counts[t.dtype] = counts.get(t.dtype, 0) + 1
    slow = {dtype: count for dtype, count in counts.items() if not is_fast(dtype)}
    if not slow:
        return ""
    each = " and ".join(f"{count:,} results are {str(dtype).removeprefix('torch.')}" for dtype, count in slow.items())
    return f"; {each}, which is slow on this CPU"
