"""The waiting time of the first run of a graph: its operators, and results of dtypes that are slow on this CPU."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import torch
from torch.fx.node import Node

from torchspore.base import progress
from torchspore.base.frames import line_prefix
from torchspore.engine.formulas.half_precision import HALVES, is_fast
from torchspore.engine.tensors import tree
from torchspore.translations import translate


def waiting(nodes: Callable[[], Iterable[Node]], operators: int) -> AbstractContextManager[None]:
    """Print that a graph of `operators` operators runs for the first time, if the block takes long. `nodes` returns all nodes."""
    subject = line_prefix() + translate("a graph of {count:,} operators").format(count=operators)
    return progress.waiting(subject, lambda: translate("runs for the first time{slowness}.").format(slowness=_slowness(nodes())))


def _slowness(nodes: Iterable[Node]) -> str:
    """Why the graph is slow, if it computes on the CPU in a dtype for which the CPU has no instructions; else an empty text."""
    counts: dict[torch.dtype, int] = {}
    for node in nodes:
        for t in tree.listed(node.meta.get("val")):
            if node.op == "call_function" and isinstance(t, torch.Tensor) and t.dtype in HALVES and t.device.type == "cpu":
                counts[t.dtype] = counts.get(t.dtype, 0) + 1
    slow = {dtype: count for dtype, count in counts.items() if not is_fast(dtype)}
    if not slow:
        return ""
    text = translate("{count:,} results are {dtype}")
    each = translate(" and ").join(text.format(count=count, dtype=str(dtype).removeprefix("torch.")) for dtype, count in slow.items())
    return translate("; {results}, which is slow on this CPU").format(results=each)
