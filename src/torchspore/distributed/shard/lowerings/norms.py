"""Normalization over a batch that is cut: with the statistics of all of it."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.lowerings.registry import arguments, lowers, reduced
from torchspore.engine.core.device_layout import Axes, Layout

_aten = torch.ops.aten


def _cut_batch(x: Any) -> Axes:
    """The axes that cut what statistics are taken over: all dimensions but the second, along which channels may be cut."""
    if x.layout.partial or len(x.layout.cuts) < 2:
        return ()
    return tuple(axis for at, own in enumerate(x.layout.cuts) if at != 1 for axis in own)


def _channels(x: Any) -> Layout:
    """How a value of each channel lies."""
    return Layout((x.layout.cuts[1],))


def _seen(rank: int) -> list[int]:
    return [at for at in range(rank) if at != 1]


def _along(to: Any, one: Node, rank: int) -> Node:
    """A value of each channel in a shape that is broadcast over the others."""
    count = one.meta["val"].shape[0]
    made: Node = to.call(_aten.view.default, (one, [1, count, *([1] * (rank - 2))]), {})
    return made


def _beside(to: Any, x: Any, one: Any) -> Any:
    """A value of each channel, lying as these do; None where there is none."""
    return to.move(to.values[one], _channels(x)).node if isinstance(one, Node) else None


@lowers("native_batch_norm")
def batch_norm(to: Any, node: Node) -> Any:
    """Training: the mean of the devices' means, the mean of their variances around it."""
    x = to.operands(node)[0]
    axes = _cut_batch(x)
    _, weight, bias, mean_kept, var_kept, training, momentum, eps = arguments(node)
    lies = _channels(x)
    if not axes or not training or any(to.values[one].layout != lies for one in (mean_kept, var_kept) if isinstance(one, Node)):
        return None
    rank, count = len(x.shape), math.prod(x.shape) // x.shape[1]
    own = to.call(_aten.var_mean.correction, (x.node, _seen(rank)), {"correction": 0})
    own_mean = to.item(own, 1)
    mean = reduced(to, own_mean, axes, "avg")
    away = to.call(_aten.square.default, (to.call(_aten.sub.Tensor, (own_mean, mean), {}),), {})
    var = reduced(to, to.call(_aten.add.Tensor, (to.item(own, 0), away), {}), axes, "avg")
    scale = to.call(_aten.rsqrt.default, (to.call(_aten.add.Scalar, (var, eps), {}),), {})
    out = to.call(_aten.mul.Tensor, (to.call(_aten.sub.Tensor, (x.node, _along(to, mean, rank)), {}), _along(to, scale, rank)), {})
    for target, one in ((_aten.mul.Tensor, weight), (_aten.add.Tensor, bias)):
        if isinstance(one, Node):
            out = to.call(target, (out, _along(to, _beside(to, x, one), rank)), {})
    unbiased = to.call(_aten.mul.Scalar, (var, count / max(count - 1, 1)), {})
    for kept, now in ((mean_kept, mean), (var_kept, unbiased)):
        if isinstance(kept, Node):
            to.call(_aten.lerp_.Scalar, (to.values[kept].node, now, momentum), {})
    return [to.value(out, x.layout, x.shape), to.value(mean, lies, x.shape[1:2]), to.value(scale, lies, x.shape[1:2])]


@lowers("native_batch_norm_backward")
def batch_norm_gradient(to: Any, node: Node) -> Any:
    """The gradients of weight and bias are sums over all of the batch, and that of the input needs both."""
    x = to.values[arguments(node)[1]]
    axes = _cut_batch(x)
    if not axes or not arguments(node)[7]:
        return None
    rank, count = len(x.shape), math.prod(x.shape) // x.shape[1]
    grad = to.move(to.values[arguments(node)[0]], x.layout)
    weight, mean, scale = (_beside(to, x, one) for one in (arguments(node)[2], *arguments(node)[5:7]))
    normal = to.call(_aten.mul.Tensor, (to.call(_aten.sub.Tensor, (x.node, _along(to, mean, rank)), {}), _along(to, scale, rank)), {})
    bias_grad = reduced(to, to.call(_aten.sum.dim_IntList, (grad.node, _seen(rank)), {}), axes)
    product = to.call(_aten.mul.Tensor, (grad.node, normal), {})
    weight_grad = reduced(to, to.call(_aten.sum.dim_IntList, (product, _seen(rank)), {}), axes)
    inner = to.call(_aten.sub.Tensor, (grad.node, _along(to, to.call(_aten.div.Scalar, (bias_grad, count), {}), rank)), {})
    share = to.call(_aten.mul.Tensor, (normal, _along(to, to.call(_aten.div.Scalar, (weight_grad, count), {}), rank)), {})
    inner = to.call(_aten.sub.Tensor, (inner, share), {})
    factor = scale if weight is None else to.call(_aten.mul.Tensor, (scale, weight), {})
    found = to.call(_aten.mul.Tensor, (inner, _along(to, factor, rank)), {})
    channels = x.shape[1:2]
    sums = [to.value(one, _channels(x), channels) for one in (weight_grad, bias_grad)]
    every = [to.value(found, Layout(x.layout.cuts), x.shape), *sums]
    return [value if wanted else None for value, wanted in zip(every, arguments(node)[9])]
