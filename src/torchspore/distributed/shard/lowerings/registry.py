"""Where lowerings enter themselves, and what they share.

A lowering is given the run of the pass (`partitioner.Partitioner`) and the node; it gives the result's Value or Values, or None where the
operator's rule is enough.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.fx.node import Node

from torchspore.engine.layouts.device_layout import Axes, Layout

Lowering = Callable[[Any, Node], Any]
LOWERINGS: dict[str, Lowering] = {}


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Enters the function below for torch's operators of these names."""
    def enter(lowering: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, lowering))
        return lowering

    return enter


def reduced(partitioner: Any, x: Node, axes: Axes, kind: str = "sum") -> Node:
    """The terms along some axes made one; nothing where there are none."""
    val = x.meta["val"]
    terms = Layout(((),) * val.ndim, tuple((axis, kind) for axis in sorted(axes)))
    settled: Node = partitioner.move(partitioner.value(x, terms, val.shape), terms.settled()).node
    return settled


def arguments(node: Node) -> Any:
    """The arguments of a call as they stand."""
    return node.args
