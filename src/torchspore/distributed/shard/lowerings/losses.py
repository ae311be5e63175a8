"""Losses that pick classes, and the softmax before them along a split axis."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.lowerings.registry import arguments, lowers, reduced
from torchspore.distributed.shard.lowerings.row_tables import local_positions, looked_up
from torchspore.engine.split_layouts.device_layout import Layout, unsplit

_aten = torch.ops.aten



@lowers("nll_loss_forward")
def nll_loss(partitioner: Any, node: Node) -> Any:
    """The mean over all weighted rows: sums over each device's rows, divided once."""
    operands = partitioner.operands(node)
    scores = operands[0]
    rows = scores.layout.dim_axes[0] if len(scores.layout.dim_axes) == 2 else ()
    reduction = arguments(node)[3]
    if len(scores.shape) == 2 and scores.layout.dim_axes[1] and not scores.layout.partial and arguments(node)[2] is None:
        return _classes_cut(partitioner, node)
    if not rows or reduction == 0 or scores.layout.partial or scores.layout.dim_axes[1]:
        return _rows_alone(partitioner, node) if reduction == 0 else None
    target = partitioner.move(operands[1], Layout((rows,)))
    weight = None if arguments(node)[2] is None else partitioner.move(operands[2], unsplit(1)).node
    result = partitioner.call(_aten.nll_loss_forward.default, (scores.node, target.node, weight, 2, arguments(node)[4]), {})
    total, count = partitioner.item(result, 0), partitioner.item(result, 1)
    if reduction == 1:
        # The operator gives how much the rows weigh for a mean only.
        mean = partitioner.call(_aten.nll_loss_forward.default, (scores.node, target.node, weight, 1, arguments(node)[4]), {})
        count = reduced(partitioner, partitioner.item(mean, 1), rows)
        total = partitioner.call(_aten.div.Tensor, (reduced(partitioner, total, rows), count), {})
    else:
        total = reduced(partitioner, total, rows)
    return [partitioner.value(total, unsplit(0), ()), partitioner.value(count, unsplit(0), ())]


def _rows_alone(partitioner: Any, node: Node) -> Any:
    """Without a reduction each row has a loss, with the layout of its scores."""
    scores, target = partitioner.operands(node)[:2]
    rows = scores.layout.dim_axes[0]
    if len(scores.shape) != 2 or not rows or scores.layout.partial or scores.layout.dim_axes[1]:
        return None
    target = partitioner.move(target, Layout((rows,)))
    result = partitioner.call(_aten.nll_loss_forward.default, (scores.node, target.node, *_others(partitioner, node)), {})
    return [
        partitioner.value(partitioner.item(result, 0), Layout((rows,)), scores.shape[:1]),
        partitioner.value(partitioner.item(result, 1), unsplit(0), ()),
    ]


@dataclass(frozen=True)
class _Targets:
    """Return the targets of rows whose classes are split."""

    target: Node
    ignored: Node
    """Which rows do not count."""
    index: Node
    """The index of each class among this device's classes, 0 for classes of other devices."""
    outside: Node
    """The rows whose target another device stores or that does not count."""


def _targets(partitioner: Any, node: Node, scores: Any, target: Any) -> _Targets:
    target = partitioner.move(target, Layout(scores.layout.dim_axes[:1]))
    ignored = partitioner.call(_aten.eq.Scalar, (target.node, arguments(node)[_IGNORED[node.target._opname]]), {})  # type: ignore[union-attr]
    index, outside = local_positions(partitioner, target.node, scores.layout.dim_axes[1], scores.node.meta["val"].shape[1])
    return _Targets(target.node, ignored, index, partitioner.call(_aten.logical_or.default, (outside, ignored), {}))


_IGNORED = {"nll_loss_forward": 4, "nll_loss_backward": 5}


def _classes_cut(partitioner: Any, node: Node) -> Any:
    """Pick the scores of targets among this device's classes; the loss of a row is the sum over devices."""
    scores, target = partitioner.operands(node)[:2]
    rows, classes = scores.layout.dim_axes
    reduction = arguments(node)[3]
    targets = _targets(partitioner, node, scores, target)
    picked = partitioner.call(_aten.gather.default, (scores.node, 1, partitioner.call(_aten.unsqueeze.default, (targets.index, 1), {})), {})
    picked = partitioner.call(_aten.masked_fill.Scalar, (partitioner.call(_aten.squeeze.dim, (picked, 1), {}), targets.outside, 0), {})
    each = partitioner.call(_aten.neg.default, (reduced(partitioner, picked, classes),), {})
    count = reduced(partitioner, partitioner.call(_aten.sum.default, (_counted(partitioner, targets, scores),), {}), rows)
    if reduction == 0:
        return [partitioner.value(each, Layout((rows,)), scores.shape[:1]), partitioner.value(count, unsplit(0), ())]
    total = reduced(partitioner, partitioner.call(_aten.sum.default, (each,), {}), rows)
    total = total if reduction == 2 else partitioner.call(_aten.div.Tensor, (total, count), {})
    return [partitioner.value(total, unsplit(0), ()), partitioner.value(count, unsplit(0), ())]


def _counted(partitioner: Any, targets: _Targets, scores: Any) -> Node:
    """Return a one for each row that counts. The lookup covers all classes, so that a target beyond them is refused as on one device."""
    index = partitioner.call(_aten.masked_fill.Scalar, (targets.target, targets.ignored, 0), {})
    return partitioner.call(_aten.masked_fill.Scalar, (looked_up(partitioner, index, scores.shape[1], scores.node), targets.ignored, 0), {})


@lowers("nll_loss_backward")
def nll_loss_gradient(partitioner: Any, node: Node) -> Any:
    """Write the gradient at targets among this device's classes, if classes are split."""
    located = _at_targets(partitioner, node)
    if located is None:
        return None
    targets, each, scores = located
    zeros = partitioner.call(_aten.zeros_like.default, (scores.node,), {})
    return partitioner.wrapped(_scatter_at_targets(partitioner, zeros, targets, each), node, [scores.layout])


def _at_targets(partitioner: Any, node: Node) -> tuple[_Targets, Node, Any] | None:
    """Return the targets, each row's gradient at its target, and the scores; None if classes are not split."""
    grad, scores, target = partitioner.operands(node)[:3]
    _, _, _, weight, reduction, _, total = arguments(node)
    if len(scores.shape) != 2 or not scores.layout.dim_axes[1] or scores.layout.partial or weight is not None:
        return None
    targets = _targets(partitioner, node, scores, target)
    each = partitioner.move(grad, Layout(scores.layout.dim_axes[:1]) if reduction == 0 else unsplit(0)).node
    if reduction == 1:
        each = partitioner.call(_aten.div.Tensor, (each, partitioner.move(partitioner.values[total], unsplit(0)).node), {})
    each = partitioner.call(_aten.neg.default, (each,), {})
    return targets, partitioner.call(_aten.expand.default, (each, list(targets.index.meta["val"].shape)), {}), scores


def _scatter_at_targets(partitioner: Any, source: Node, targets: _Targets, each: Node) -> Node:
    """Return the source with each row's number added at its target, if the target is among this device's classes."""
    at = partitioner.call(_aten.masked_fill.Scalar, (each, targets.outside, 0), {})
    index, at = (partitioner.call(_aten.unsqueeze.default, (node, 1), {}) for node in (targets.index, at))
    return partitioner.call(_aten.scatter_add.default, (source, 1, index, at), {})


def _others(partitioner: Any, node: Node) -> tuple[Any, ...]:
    weight = arguments(node)[2]
    local_weight = partitioner.move(partitioner.values[weight], unsplit(1)).node if isinstance(weight, Node) else None
    return local_weight, arguments(node)[3], arguments(node)[4]



@lowers("_log_softmax", "_softmax")
def softmax(partitioner: Any, node: Node) -> Any:
    """Softmax along a split axis: the maximum over all devices, then the sum over all devices."""
    x = partitioner.operands(node)[0]
    axis = int(arguments(node)[1]) % max(len(x.shape), 1)
    axes = x.layout.dim_axes[axis] if x.shape else ()
    if not axes or x.layout.partial or arguments(node)[2]:
        return None
    highest = reduced(partitioner, partitioner.call(_aten.amax.default, (x.node, [axis], True), {}), axes, "max")
    shifted = partitioner.call(_aten.sub.Tensor, (x.node, highest), {})
    powers = partitioner.call(_aten.exp.default, (shifted,), {})
    total = reduced(partitioner, partitioner.call(_aten.sum.dim_IntList, (powers, [axis], True), {}), axes)
    if node.target._opname == "_softmax":  # type: ignore[union-attr]
        return partitioner.wrapped(partitioner.call(_aten.div.Tensor, (powers, total), {}), node, [x.layout])
    return partitioner.wrapped(
        partitioner.call(_aten.sub.Tensor, (shifted, partitioner.call(_aten.log.default, (total,), {})), {}), node, [x.layout]
    )


@lowers("_log_softmax_backward_data", "_softmax_backward_data")
def softmax_gradient(partitioner: Any, node: Node) -> Any:
    """The gradient of softmax needs one sum along the split axis."""
    grad, out = partitioner.operands(node)[:2]
    axis = int(arguments(node)[2]) % max(len(out.shape), 1)
    axes = out.layout.dim_axes[axis] if out.shape else ()
    if not axes or out.layout.partial:
        return None
    source: Any = node.args[0]
    if (
        axis == 1
        and getattr(source.target, "_opname", "") == "nll_loss_backward"
        and (located := _at_targets(partitioner, source)) is not None
    ):
        if len(source.users) == 1:
            _drop_unread_scatter(partitioner, grad.node)
        return partitioner.wrapped(_of_picked(partitioner, out, *located[:2]), node, [out.layout])
    grad = partitioner.move(grad, out.layout)
    if node.target._opname == "_softmax_backward_data":  # type: ignore[union-attr]
        product = partitioner.call(_aten.mul.Tensor, (grad.node, out.node), {})
        total = reduced(partitioner, partitioner.call(_aten.sum.dim_IntList, (product, [axis], True), {}), axes)
        rest = partitioner.call(_aten.mul.Tensor, (out.node, total), {})
        return partitioner.wrapped(partitioner.call(_aten.sub.Tensor, (product, rest), {}), node, [out.layout])
    total = reduced(partitioner, partitioner.call(_aten.sum.dim_IntList, (grad.node, [axis], True), {}), axes)
    share = partitioner.call(_aten.mul.Tensor, (partitioner.call(_aten.exp.default, (out.node,), {}), total), {})
    return partitioner.wrapped(partitioner.call(_aten.sub.Tensor, (grad.node, share), {}), node, [out.layout])


def _drop_unread_scatter(partitioner: Any, result: Node) -> None:
    """Remove nodes of a gradient that is no longer read: a full value of the scores' size, and the zeros below it."""
    for unread in (result, result.args[0] if result.target is _aten.scatter_add.default else None):
        if isinstance(unread, Node) and unread.target in (_aten.scatter_add.default, _aten.zeros_like.default) and not unread.users:
            for placed in partitioner.split_operators:
                placed.nodes = [placed_node for placed_node in placed.nodes if placed_node is not unread]
            partitioner.graph.erase_node(unread)


def _of_picked(partitioner: Any, out: Any, targets: _Targets, each: Node) -> Node:
    """The gradient of scores of which each row picked one: its sum along the classes is the value at the target."""
    total = partitioner.call(_aten.masked_fill.Scalar, (each, targets.ignored, 0), {})
    share = partitioner.call(_aten.unsqueeze.default, (partitioner.call(_aten.neg.default, (total,), {}), 1), {})
    rest = partitioner.call(_aten.mul.Tensor, (partitioner.call(_aten.exp.default, (out.node,), {}), share), {})
    return _scatter_at_targets(partitioner, rest, targets, each)
