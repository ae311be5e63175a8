"""Marks the operators of optimizers' steps: casts that a precision rule requests leave them out (`passes.precision.casts`)."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchspore.engine.tensors import tensor as engine
from torchspore.engine.torch_internals import node_metadata


@contextmanager
def mark_optimizer_nodes() -> Iterator[None]:
    """Mark the operators that this thread captures in the block as part of an optimizer's step."""
    frame: Any = engine.frame()
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
            node.meta[node_metadata.OPTIMIZER] = True
