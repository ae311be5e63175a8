"""The operators of an optimizer are marked while a graph is captured: they keep their dtypes, as Parameters and their state do."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch.fx.node import Node

from torchspore.engine import tensor as engine

_MARK = "optimizer"


@contextmanager
def marked() -> Iterator[None]:
    """Marks the operators that this thread captures in the block."""
    frame = engine.frame()
    while frame is not None and not hasattr(frame, "tracer"):
        frame = frame.outer
    if frame is None:
        yield
        return
    graph = frame.tracer.graph
    before = next(iter(reversed(graph.nodes)), None)
    try:
        yield
    finally:
        for node in reversed(graph.nodes):
            if node is before:
                break
            node.meta[_MARK] = True


def is_of_optimizer(node: Node) -> bool:
    """Whether the operator is part of an optimizer's formula."""
    return _MARK in node.meta
