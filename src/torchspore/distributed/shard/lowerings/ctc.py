"""The loss of connectionist temporal classification: the batch may be cut, times and classes are whole."""
from __future__ import annotations

from typing import Any

from torch.fx.node import Node

from torchspore.distributed.shard.lowerings.registry import lowers
from torchspore.engine.core.device_layout import Axes, Layout


def _by_rows(to: Any, node: Node, layouts: list[Layout]) -> Node:
    """The call on the rows of each device."""
    moved = iter([to.move(value, layout) for value, layout in zip(to.operands(node), layouts, strict=True)])
    args, kwargs = to.replaced(node, lambda _: next(moved).node)
    result: Node = to.call(node.target, args, kwargs, node)
    return result


def _inputs(rows: Axes) -> list[Layout]:
    """How scores (time, N, classes), labels (N, S) and the lengths of both lie."""
    return [Layout(((), rows, ())), Layout((rows, ())), Layout((rows,)), Layout((rows,))]


@lowers("ctc_losses")
def losses(to: Any, node: Node) -> Any:
    """(log probabilities, labels, lengths of both) -> (losses, log alpha)."""
    scores, labels = to.operands(node)[:2]
    rows = () if scores.layout.partial else scores.layout.cuts[1] or labels.layout.cuts[0]
    return to.wrapped(_by_rows(to, node, _inputs(rows)), node, [Layout((rows,)), Layout((rows, (), ()))])


@lowers("ctc_gradient")
def gradient(to: Any, node: Node) -> Any:
    """(gradient of the losses, what the losses were given, losses, log alpha) -> the gradient of the log probabilities."""
    alphas = to.operands(node)[6].layout
    rows = alphas.cuts[0]
    result = _by_rows(to, node, [Layout((rows,)), *_inputs(rows), Layout((rows,)), alphas])
    return to.wrapped(result, node, [Layout(((), rows, ()))])
