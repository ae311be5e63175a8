"""Normalization over a split batch, with the statistics of the full batch."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.lowerings.registry import arguments, lowers, reduced
from torchspore.engine.split_layouts.device_layout import Axes, Layout

_aten = torch.ops.aten


def _cut_batch(x: Any) -> Axes:
    """Return the axes that split the dimensions of the statistics: all but the second, along which channels may be split."""
    if x.layout.partial or len(x.layout.dim_axes) < 2:
        return ()
    return tuple(axis for at, axes in enumerate(x.layout.dim_axes) if at != 1 for axis in axes)


def _channels(x: Any) -> Layout:
    """Return the layout of a value of each channel."""
    return Layout((x.layout.dim_axes[1],))


def _seen(rank: int) -> list[int]:
    return [at for at in range(rank) if at != 1]


def _along(partitioner: Any, channel_node: Node, rank: int) -> Node:
    """Return a value of each channel in a shape that broadcasts over the other dimensions."""
    count = channel_node.meta["val"].shape[0]
    viewed: Node = partitioner.call(_aten.view.default, (channel_node, [1, count, *([1] * (rank - 2))]), {})
    return viewed


def _expand_channels(partitioner: Any, x: Any, channel_value: Any) -> Any:
    """Return a value of each channel in this layout; None if it does not exist."""
    return partitioner.move(partitioner.values[channel_value], _channels(x)).node if isinstance(channel_value, Node) else None


@lowers("native_batch_norm")
def batch_norm(partitioner: Any, node: Node) -> Any:
    """Training: the mean of the devices' means, and the mean of their variances around it."""
    x = partitioner.operands(node)[0]
    axes = _cut_batch(x)
    _, weight, bias, running_mean, running_var, training, momentum, eps = arguments(node)
    channel_layout = _channels(x)
    if (
        not axes
        or not training
        or any(
            partitioner.values[statistic].layout != channel_layout
            for statistic in (running_mean, running_var)
            if isinstance(statistic, Node)
        )
    ):
        return None
    rank, count = len(x.shape), math.prod(x.shape) // x.shape[1]
    local_statistics = partitioner.call(_aten.var_mean.correction, (x.node, _seen(rank)), {"correction": 0})
    local_mean = partitioner.item(local_statistics, 1)
    mean = reduced(partitioner, local_mean, axes, "avg")
    away = partitioner.call(_aten.square.default, (partitioner.call(_aten.sub.Tensor, (local_mean, mean), {}),), {})
    var = reduced(partitioner, partitioner.call(_aten.add.Tensor, (partitioner.item(local_statistics, 0), away), {}), axes, "avg")
    scale = partitioner.call(_aten.rsqrt.default, (partitioner.call(_aten.add.Scalar, (var, eps), {}),), {})
    out = partitioner.call(
        _aten.mul.Tensor,
        (partitioner.call(_aten.sub.Tensor, (x.node, _along(partitioner, mean, rank)), {}), _along(partitioner, scale, rank)),
        {},
    )
    for target, factor_node in ((_aten.mul.Tensor, weight), (_aten.add.Tensor, bias)):
        if isinstance(factor_node, Node):
            out = partitioner.call(target, (out, _along(partitioner, _expand_channels(partitioner, x, factor_node), rank)), {})
    unbiased = partitioner.call(_aten.mul.Scalar, (var, count / max(count - 1, 1)), {})
    for running, now in ((running_mean, mean), (running_var, unbiased)):
        if isinstance(running, Node):
            partitioner.call(_aten.lerp_.Scalar, (partitioner.values[running].node, now, momentum), {})
    return [
        partitioner.value(out, x.layout, x.shape),
        partitioner.value(mean, channel_layout, x.shape[1:2]),
        partitioner.value(scale, channel_layout, x.shape[1:2]),
    ]


@lowers("native_batch_norm_backward")
def batch_norm_gradient(partitioner: Any, node: Node) -> Any:
    """The gradients of weight and bias are sums over the full batch, and that of the input needs both."""
    x = partitioner.values[arguments(node)[1]]
    axes = _cut_batch(x)
    if not axes or not arguments(node)[7]:
        return None
    rank, count = len(x.shape), math.prod(x.shape) // x.shape[1]
    grad = partitioner.move(partitioner.values[arguments(node)[0]], x.layout)
    weight, mean, scale = (_expand_channels(partitioner, x, channel_value) for channel_value in (arguments(node)[2], *arguments(node)[5:7]))
    normal = partitioner.call(
        _aten.mul.Tensor,
        (partitioner.call(_aten.sub.Tensor, (x.node, _along(partitioner, mean, rank)), {}), _along(partitioner, scale, rank)),
        {},
    )
    bias_grad = reduced(partitioner, partitioner.call(_aten.sum.dim_IntList, (grad.node, _seen(rank)), {}), axes)
    product = partitioner.call(_aten.mul.Tensor, (grad.node, normal), {})
    weight_grad = reduced(partitioner, partitioner.call(_aten.sum.dim_IntList, (product, _seen(rank)), {}), axes)
    inner = partitioner.call(
        _aten.sub.Tensor, (grad.node, _along(partitioner, partitioner.call(_aten.div.Scalar, (bias_grad, count), {}), rank)), {}
    )
    share = partitioner.call(
        _aten.mul.Tensor, (normal, _along(partitioner, partitioner.call(_aten.div.Scalar, (weight_grad, count), {}), rank)), {}
    )
    inner = partitioner.call(_aten.sub.Tensor, (inner, share), {})
    factor = scale if weight is None else partitioner.call(_aten.mul.Tensor, (scale, weight), {})
    found = partitioner.call(_aten.mul.Tensor, (inner, _along(partitioner, factor, rank)), {})
    channels = x.shape[1:2]
    sums = [partitioner.value(channel_sum, _channels(x), channels) for channel_sum in (weight_grad, bias_grad)]
    every = [partitioner.value(found, Layout(x.layout.dim_axes), x.shape), *sums]
    return [value if is_required else None for value, is_required in zip(every, arguments(node)[9])]
