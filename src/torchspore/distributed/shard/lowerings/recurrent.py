"""Recurrent layers as one kernel: the batch may be split.

The value that the kernel saves for its gradient has an unknown shape. Its fake tensor is empty, so it is never moved: its layout, with one
dimension, records the axes that split the batch.
"""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.engine.split_layouts.device_layout import Axes, Layout, unsplit

_aten = torch.ops.aten


def _rows(partitioner: Any, x: Any, dim: int) -> Axes:
    """Return the axes that split the batch, if the parts are equal."""
    return () if x.layout.partial else tuple(x.layout.dim_axes[dim])


def _by_batch(rank: int, dim: int, rows: Axes) -> Layout:
    return Layout(tuple(rows if at == dim else () for at in range(rank)))


class _Call:
    """Write a call with its operands moved: a sequence is split along `batch`, a state along its second last dimension, weights are
    unsplit."""

    def __init__(self, partitioner: Any, rows: Axes, batch: int) -> None:
        self.to, self.rows, self.batch = partitioner, rows, batch

    def sequence(self, item: Any) -> Any:
        """Return the layout of a value of each time step and row."""
        return self._moved(item, lambda rank: self.batch)

    def state(self, item: Any) -> Any:
        """Return the layout of a value of each row."""
        return self._moved(item, lambda rank: rank - 2)

    def weight(self, item: Any) -> Any:
        """Return the layout of a value that all rows share."""
        return self._moved(item, None)

    def _moved(self, item: Any, dim: Any) -> Any:
        if not isinstance(item, Node):
            return item
        value = self.to.values[item]
        rank = len(value.shape)
        layout = unsplit(rank) if dim is None or value.shape == (0,) else _by_batch(rank, dim(rank), self.rows)
        return self.to.move(value, layout).node

    def result(self, result: Node, at: int, like: Any, dim: int | None) -> Any:
        """Return a result in the shape of `like`: split along `dim`, or a partial sum over the rows if `dim` is None."""
        shape = tuple(like.shape)
        if shape == (0,):
            layout = unsplit(1)
        elif dim is None:
            layout = Layout(((),) * len(shape), tuple((axis, "sum") for axis in sorted(self.rows)))
        else:
            layout = _by_batch(len(shape), dim % len(shape), self.rows)
        return self.to.value(self.to.item(result, at), layout, shape)

    def reserve(self, result: Node, at: int) -> Any:
        """Return a value that the kernel saves for its gradient."""
        return self.to.value(self.to.item(result, at), Layout((self.rows,)), (0,))


@lowers("mkldnn_rnn_layer")
def layer(partitioner: Any, node: Node) -> Any:
    """oneDNN's layer: (input, four weights, two states, settings) -> (output, two states, saved value)."""
    x = partitioner.operands(node)[0]
    batch = 0 if arguments(node)[14] else 1
    call = _Call(partitioner, _rows(partitioner, x, batch), batch)
    node_arguments = arguments(node)
    result = partitioner.call(
        node.target,
        (
            call.sequence(node_arguments[0]),
            *map(call.weight, node_arguments[1:5]),
            *map(call.state, node_arguments[5:7]),
            *node_arguments[7:],
        ),
        {},
        node,
    )
    outs = node.meta["val"]
    values = [call.result(result, 0, outs[0], batch), *(call.result(result, at, outs[at], -2) for at in (1, 2)), call.reserve(result, 3)]
    return values


@lowers("mkldnn_rnn_layer_backward")
def layer_gradient(partitioner: Any, node: Node) -> Any:
    """The gradient of the layer, with the batch split as before; gradients of weights are sums over the batch."""
    node_arguments = arguments(node)
    batch = 0 if node_arguments[21] else 1
    call = _Call(partitioner, partitioner.values[node_arguments[22]].layout.dim_axes[0], batch)
    operands = [
        call.sequence(node_arguments[0]),
        *map(call.weight, node_arguments[1:5]),
        *map(call.state, node_arguments[5:7]),
        call.sequence(node_arguments[7]),
    ]
    operands += [*map(call.state, node_arguments[8:10]), call.sequence(node_arguments[10]), *map(call.state, node_arguments[11:13])]
    result = partitioner.call(node.target, (*operands, *node_arguments[13:22], partitioner.values[node_arguments[22]].node), {}, node)
    outs = node.meta["val"]
    ways = (batch, None, None, None, None, -2, -2)
    return [call.result(result, at, out, way) if isinstance(out, torch.Tensor) else None for at, (out, way) in enumerate(zip(outs, ways))]
