"""The loss of connectionist temporal classification: the batch may be cut, times and classes are whole.

What the kernel keeps for its gradient is as long as the labels of its own rows say, which nobody knows before: it stays where it was made.
"""
from __future__ import annotations

from typing import Any

from torch.fx.node import Node

from torchspore.engine.shard.layout import Axes, Layout
from torchspore.engine.shard.lowerings.table import lowers

OF_OWN_LENGTHS = frozenset({"_ctc_loss"})
"""Operators that keep what is as long as values say, for their gradient alone."""


def _by_rows(to: Any, node: Node, layouts: list[Layout]) -> Node:
    """The call on the rows of each device."""
    moved = iter([to.move(value, lies) for value, lies in zip(to.operands(node), layouts, strict=True)])
    args, kwargs = to.replaced(node, lambda _: next(moved).node)
    made: Node = to.call(node.target, args, kwargs, node)
    return made


def _inputs(rows: Axes) -> list[Layout]:
    """How scores (time, N, classes), labels (N, S) and the lengths of both lie."""
    return [Layout(((), rows, ())), Layout((rows, ())), Layout((rows,)), Layout((rows,))]


@lowers("_ctc_loss")
def loss(to: Any, node: Node) -> Any:
    """(log probabilities, labels, lengths of both) -> (losses, log alpha)."""
    operands = to.operands(node)
    if len(operands) != 4 or [len(value.shape) for value in operands] != [3, 2, 1, 1]:
        return None
    scores = operands[0].layout
    rows = () if scores.partial else scores.cuts[1] or operands[1].layout.cuts[0]
    made = _by_rows(to, node, _inputs(rows))
    losses, alphas = node.meta["val"]
    return [to.value(to.item(made, 0), Layout((rows,)), losses.shape), to.value(to.item(made, 1), Layout((rows, (), ())), alphas.shape)]


@lowers("_ctc_loss_backward")
def gradient(to: Any, node: Node) -> Any:
    """(gradient of the losses, what the loss was given, losses, log alpha) -> the gradient of the log probabilities."""
    operands = to.operands(node)
    if len(operands) != 7:
        return None
    alphas = operands[6].layout
    rows = alphas.cuts[0]
    made = _by_rows(to, node, [Layout((rows,)), *_inputs(rows), Layout((rows,)), alphas])
    return to.value(made, Layout(((), rows, ())), node.meta["val"].shape)
