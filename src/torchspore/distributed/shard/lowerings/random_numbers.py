"""Random numbers: each device draws those of the full value from the same state and takes its part, so that they equal one device's."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.engine.split_layouts.device_layout import Layout, unsplit

_aten = torch.ops.aten


@lowers("native_dropout")
def dropout(partitioner: Any, node: Node) -> Any:
    """Draw the mask of the full value, of which each device takes its part; the input keeps its layout."""
    x = partitioner.operands(node)[0]
    _, share, training = arguments(node)
    if x.layout.is_unsplit or x.layout.partial or not training:
        return None
    ones = partitioner.call(_aten.full.default, (list(x.shape), 1), {"dtype": x.dtype, "device": x.node.meta["val"].device})
    result = partitioner.call(_aten.native_dropout.default, (ones, share, training), {})
    cut = Layout(x.layout.dim_axes)
    scaled, mask = (
        partitioner.move(partitioner.value(partitioner.item(result, at), unsplit(len(x.shape)), x.shape), cut) for at in range(2)
    )
    out = partitioner.call(_aten.mul.Tensor, (x.node, scaled.node), {})
    return [partitioner.value(out, cut, x.shape), mask]


@lowers("rand_like", "randn_like", "bernoulli", "randint_like")
def like(partitioner: Any, node: Node) -> Any:
    """Draw in the shape of another value, whose elements are not read, except for probabilities."""
    x = partitioner.operands(node)[0]
    if x.layout.is_unsplit or x.layout.partial or (node.target._opname == "bernoulli" and len(arguments(node)) < 2):  # type: ignore[union-attr]
        return None
    shaped = partitioner.call(_aten.full.default, (list(x.shape), 0), {"dtype": x.dtype, "device": x.node.meta["val"].device})
    kwargs = {key: partitioner.random_sources.get(value, value) for key, value in node.kwargs.items()}
    if any(isinstance(argument, Node) for argument in arguments(node)[1:]):
        return None
    result = partitioner.call(node.target, (shaped, *arguments(node)[1:]), kwargs, node, node.meta["val"])
    return partitioner.move(partitioner.value(result, unsplit(len(x.shape)), x.shape), Layout(x.layout.dim_axes))


@lowers("bernoulli_", "uniform_", "normal_", "exponential_", "random_", "geometric_", "cauchy_", "log_normal_")
def filled(partitioner: Any, node: Node) -> Any:
    """Fill memory; its earlier contents are not read."""
    x = partitioner.operands(node)[0]
    node_arguments = [*arguments(node)[1:], *node.kwargs.values()]
    if x.layout.is_unsplit or x.layout.partial or any(isinstance(argument, Node) for argument in node_arguments):
        return None
    fresh = partitioner.call(_aten.full.default, (list(x.shape), 0), {"dtype": x.dtype, "device": x.node.meta["val"].device})
    result = partitioner.call(node.target, (fresh, *arguments(node)[1:]), dict(node.kwargs), node)
    part = partitioner.move(partitioner.value(result, unsplit(len(x.shape)), x.shape), x.layout, fresh=True)
    partitioner.call(_aten.copy_.default, (x.node, part.node), {})
    return x
