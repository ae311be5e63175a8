"""Detects the capture of a graph that will be split among devices: some operators then keep axes that can be split."""
from __future__ import annotations

from torchspore.engine.tensors import tensor as engine


def is_split() -> bool:
    """Return whether this thread captures a graph that will be split among devices."""
    if not engine.active:
        return False
    from torchspore.distributed.shard import strategy_calls

    return strategy_calls.split_now() is not None
