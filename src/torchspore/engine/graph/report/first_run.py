"""What a program waits for in the first run of a graph: its operators, and results of dtypes that are slow on this CPU."""
from __future__ import annotations

from contextlib import AbstractContextManager

import torch

from torchspore.base.frames import user_line
from torchspore.engine import tree
from torchspore.engine.graph.fx.modules import nested_nodes
from torchspore.engine.graph.report import progress
from torchspore.engine.half_precision import HALVES, is_fast


def waiting(module: torch.fx.GraphModule, operators: int) -> AbstractContextManager[None]:
    """Print what runs for the first time, a graph of so many operators, if the block takes long."""
    return progress.waiting(f"{user_line()}: a graph of {operators:,} operators", lambda: f"runs for the first time{_slowness(module)}.")


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
