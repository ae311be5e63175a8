"""Attention over keys and values that are split along the sequence: ring attention.

Each device holds the queries, keys and values of its part of the sequence. In as many steps as there are parts it computes with one block
of keys and values, and passes the block on to the next device. No device ever holds the keys of the full sequence.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.lowerings.registry import arguments, lowers
from torchspore.engine.formulas import attention_blocks
from torchspore.engine.split_layouts.device_layout import Axes, Layout

_aten = torch.ops.aten


@dataclass(frozen=True)
class _Ring:
    """How the inputs of an attention are laid out: the axes of the device grid that split batch, heads, queries, and keys."""

    batch: Axes
    heads: Axes
    rows: Axes
    columns: Axes
    count: int
    """The number of blocks of keys."""

    @property
    def query(self) -> Layout:
        return Layout((self.batch, self.heads, self.rows, ()))

    @property
    def key(self) -> Layout:
        return Layout((self.batch, self.heads, self.columns, ()))

    def mask(self, shape: tuple[int, ...]) -> Layout:
        """Return the layout of a mask, which may have fewer axes, or axes of length 1. Every device has all columns."""
        cuts = (self.batch, self.heads, self.rows, ())[4 - len(shape):]
        return Layout(tuple(axes if size > 1 else () for axes, size in zip(cuts, shape)))


def _ring(partitioner: Any, query: Any, key: Any) -> _Ring:
    batch, heads, rows, _ = query.layout.dim_axes
    columns = rows if rows and key.layout.dim_axes[2] == rows else ()
    return _Ring(batch, heads, rows, columns, partitioner.mesh.product(columns))


def _places(partitioner: Any, ring: _Ring, query: Any) -> tuple[Any, Any]:
    """Return the position of the device's first query, and the number of the block of keys that the device holds."""
    first_row = (
        partitioner.call(nodes.position, (ring.rows, query.shape[2] // partitioner.mesh.product(ring.rows), partitioner.mesh), {})
        if ring.rows
        else 0
    )
    return first_row, partitioner.call(nodes.position, (ring.columns, 1, partitioner.mesh), {}) if ring.columns else 0


def _rotated(partitioner: Any, x: Node, ring: _Ring) -> Node:
    size = x.meta["val"].shape[2]
    partitioner.record_exchange("rotated", x, ring.columns, 2, size)
    rotated: Node = partitioner.call(nodes.rotated, (x, ring.columns, partitioner.mesh), {})
    return rotated


def _pair(partitioner: Any, ring: _Ring, key: Any, value: Any) -> Node:
    """Return the device's block of keys and values as one value, which is passed on by one exchange."""
    pair: Node = partitioner.call(_aten.cat.default, ([partitioner.move(t, ring.key).node for t in (key, value)], -1), {})
    return pair


def _mask(partitioner: Any, ring: _Ring, masks: list[Any]) -> Node | None:
    return partitioner.move(masks[0], ring.mask(masks[0].shape)).node if masks else None


def _halves(partitioner: Any, pair: Node, width: int) -> tuple[Node, Node]:
    """Return the keys and the values of a block."""
    return partitioner.call(_aten.slice.Tensor, (pair, 3, 0, width), {}), partitioner.call(_aten.slice.Tensor, (pair, 3, width, None), {})


def _call(partitioner: Any, target: Any, form: Any, tensors: tuple[Node | None, ...], *settings: Any) -> list[Node]:
    with partitioner.faking():
        val = form(*(tensor.meta["val"] if tensor is not None else None for tensor in tensors))
    result = partitioner.call(target, (*tensors, *settings), {}, val=val)
    return [partitioner.item(result, at) for at in range(3)]


@lowers("attention_block")
def attention(partitioner: Any, node: Node) -> Any:
    """Combine the results of all blocks of keys on each device."""
    query, key, value, *masks = partitioner.operands(node)
    ring = _ring(partitioner, query, key)
    q = partitioner.move(query, ring.query).node
    pair = _pair(partitioner, ring, key, value)
    mask = _mask(partitioner, ring, masks)
    settings, places = arguments(node)[4:7], _places(partitioner, ring, query)
    merged: list[Node] = []
    for step in range(ring.count):
        tensors = (q, *_halves(partitioner, pair, key.shape[3]), mask)
        block = _call(partitioner, attention_blocks.BLOCK, attention_blocks.block_form, tensors, *settings, *places, step, ring.count)
        merged = _merged(partitioner, merged, block) if merged else block
        if step + 1 < ring.count:
            pair = _rotated(partitioner, pair, ring)
    return [partitioner.value(result, ring.query, (*query.shape[:3], width)) for result, width in zip(merged, (value.shape[3], 1, 1))]


def _merged(partitioner: Any, first: list[Node], second: list[Node]) -> list[Node]:
    result = partitioner.call(attention_blocks.MERGE, (*first, *second), {})
    return [partitioner.item(result, at) for at in range(3)]


@lowers("attention_block_gradient")
def attention_gradient(partitioner: Any, node: Node) -> Any:
    """Send the gradients of keys and values along with their blocks; they arrive at their device after the last step."""
    grad, query, key, value, *rest = partitioner.operands(node)
    ring = _ring(partitioner, query, key)
    grad, query, *statistics = (partitioner.move(t, ring.query) for t in (grad, query, *rest[-3:]))
    pair = _pair(partitioner, ring, key, value)
    mask = _mask(partitioner, ring, rest[:-3])
    settings, places, of_query, of_pair = arguments(node)[8:11], _places(partitioner, ring, query), None, None
    for step in range(ring.count):
        tensors = (grad.node, query.node, *_halves(partitioner, pair, key.shape[3]), mask, *(t.node for t in statistics))
        of_block = _call(
            partitioner, attention_blocks.GRADIENT, attention_blocks.gradient_form, tensors, *settings, *places, step, ring.count
        )
        of_block_pair = partitioner.call(_aten.cat.default, (of_block[1:], -1), {})
        of_query = of_block[0] if of_query is None else partitioner.call(_aten.add.Tensor, (of_query, of_block[0]), {})
        of_pair = of_block_pair if of_pair is None else partitioner.call(_aten.add.Tensor, (of_pair, of_block_pair), {})
        if ring.columns:
            of_pair = _rotated(partitioner, of_pair, ring)
        if step + 1 < ring.count:
            pair = _rotated(partitioner, pair, ring)
    assert of_pair is not None
    of_key, of_value = _halves(partitioner, of_pair, key.shape[3])
    # If every device holds all keys, each has the terms of its queries.
    layout = ring.key if ring.columns else Layout(ring.key.dim_axes, tuple((axis, "sum") for axis in sorted(ring.rows)))
    return [
        partitioner.value(of_query, ring.query, query.shape),
        partitioner.value(of_key, layout, key.shape),
        partitioner.value(of_value, layout, value.shape),
    ]
