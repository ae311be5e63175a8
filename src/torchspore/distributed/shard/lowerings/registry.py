"""Where lowerings are registered, and the functions that they share.

A lowering receives the running pass (`partitioner.Partitioner`) and the node. It returns the result's Value or Values, or None if the
operator's rule suffices.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx.node import Node

from torchspore.engine.split_layouts.device_layout import Axes, Layout

Lowering = Callable[[Any, Node], Any]
LOWERINGS: dict[str, Lowering] = {}


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Register the decorated function for torch's operators of these names."""
    def enter(lowering: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, lowering))
        return lowering

    return enter


def reduced(partitioner: Any, x: Node, axes: Axes, kind: str = "sum") -> Node:
    """Sum the partial sums along some axes; nothing happens without axes."""
    val = x.meta["val"]
    terms = Layout(((),) * val.ndim, tuple((axis, kind) for axis in sorted(axes)))
    settled: Node = partitioner.move(partitioner.value(x, terms, val.shape), terms.settled()).node
    return settled


def arguments(node: Node) -> Any:
    """Return the arguments of a call unchanged."""
    return node.args
