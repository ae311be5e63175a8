"""Detects the capture of a graph that will be split among devices: some operators then keep axes that can be split."""
from __future__ import annotations

from torchspore.engine.tensors import tensor as engine
from torchspore.graph.capture.running_trace import split_now


def is_split() -> bool:
    """Return whether this thread captures a graph that will be split among devices."""
    return bool(engine.active) and split_now() is not None
