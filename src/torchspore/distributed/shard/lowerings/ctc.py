"""The loss of connectionist temporal classification (CTC): only the batch axis is split."""
from __future__ import annotations

from typing import Any

from torch.fx.node import Node

from torchspore.distributed.shard.lowerings.registry import lowers
from torchspore.engine.split_layouts.device_layout import Axes, Layout


def _by_rows(partitioner: Any, node: Node, layouts: list[Layout]) -> Node:
    """Write the call on each device's rows of the batch, with the operands moved to `layouts`."""
    moved = iter([partitioner.move(value, layout) for value, layout in zip(partitioner.operands(node), layouts, strict=True)])
    args, kwargs = partitioner.replaced(node, lambda _: next(moved).node)
    result: Node = partitioner.call(node.target, args, kwargs, node)
    return result


def _inputs(rows: Axes) -> list[Layout]:
    """Return the layouts of scores (time, N, classes), labels (N, S) and both lengths (N,), with N split along the axes `rows`."""
    return [Layout(((), rows, ())), Layout((rows, ())), Layout((rows,)), Layout((rows,))]


@lowers("ctc_losses")
def losses(partitioner: Any, node: Node) -> Any:
    """Split (log probabilities, labels, both lengths) -> (losses, log alpha)."""
    scores, labels = partitioner.operands(node)[:2]
    rows = () if scores.layout.partial else scores.layout.dim_axes[1] or labels.layout.dim_axes[0]
    return partitioner.wrapped(_by_rows(partitioner, node, _inputs(rows)), node, [Layout((rows,)), Layout((rows, (), ()))])


@lowers("ctc_gradient")
def gradient(partitioner: Any, node: Node) -> Any:
    """Split (gradient of the losses, the four inputs, losses, log alpha) -> gradient of the log probabilities."""
    alphas = partitioner.operands(node)[6].layout
    rows = alphas.dim_axes[0]
    result = _by_rows(partitioner, node, [Layout((rows,)), *_inputs(rows), Layout((rows,)), alphas])
    return partitioner.wrapped(result, node, [Layout(((), rows, ()))])
