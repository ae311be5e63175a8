"""Lookups by indexes with several axes: the captured graph joins these axes before the lookup and separates them after it.

Split axes of the indexes, other than the first, cannot be joined into equal parts. The operators here keep the axes separate. They are in
the graph between this pass and the partitioner, whose lowerings (`lowerings.lookups`) write them as kernels for the parts of each device.
"""
from __future__ import annotations

import math

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import node_builder
from torchspore.distributed.shard.node_builder import faking
from torchspore.engine.torch_internals.custom_operators import define
from torchspore.graph.fx.modules import copy_module
from torchspore.graph.passes import drop_dead

_aten = torch.ops.aten
_VIEWS = frozenset({_aten.view.default, _aten._unsafe_view.default, _aten.reshape.default})


def _look_up(x: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    rows = torch.index_select(x, dim, index.reshape(-1))
    return rows.reshape(*x.shape[:dim], *index.shape, *x.shape[dim + 1:])


def _add_rows(source: torch.Tensor, dim: int, index: torch.Tensor, length: int) -> torch.Tensor:
    before, behind = source.shape[:dim], source.shape[dim + index.ndim:]
    zeros = source.new_zeros(*before, length, *behind)
    return zeros.index_add(dim, index.reshape(-1), source.reshape(*before, index.numel(), *behind))


look_up = define("look_up(Tensor x, int dim, Tensor index) -> Tensor", _look_up, _look_up)
"""x[..., index, ...] along `dim`: shape x.shape[:dim] + index.shape + x.shape[dim + 1:]."""
add_rows = define("add_rows(Tensor source, int dim, Tensor index, int length) -> Tensor", _add_rows, _add_rows)
"""The gradient of `look_up` by x: zeros of `length` along `dim`, to which the slices of `source` are added at `index`."""


def separated(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a copy of a graph in which lookups and their gradients keep indexes with several axes."""
    if not any(_joined_index(node) is not None for node in module.graph.nodes):
        return module
    module = copy_module(module)
    with faking(module):
        for node in list(module.graph.nodes):
            index = _joined_index(node)
            if index is not None:
                (_separate_lookup if node.target is _aten.index_select.default else _separate_sum)(module, node, index)
    return drop_dead(module)


def _joined_index(node: Node) -> Node | None:
    """Return the indexes with several axes whose joined form a lookup, or the sum of its gradient, reads; None for other nodes."""
    if node.target not in (_aten.index_select.default, _aten.index_add.default) or len(node.args) > 4 or node.kwargs:
        return None
    flat = node.args[2]
    if not isinstance(flat, Node) or flat.target not in _VIEWS:
        return None
    index = flat.args[0]
    return index if isinstance(index, Node) and len(_shape(index)) > 1 else None


def _separate_lookup(module: torch.fx.GraphModule, node: Node, index: Node) -> None:
    """Replace the views that separate the axes of the indexes after a lookup."""
    x, dim = node.args[0], node.args[1]
    if not isinstance(x, Node) or not isinstance(dim, int):
        return
    dim %= len(_shape(x))
    shape = (*_shape(x)[:dim], *_shape(index), *_shape(x)[dim + 1:])
    views = [user for user in node.users if user.target in _VIEWS and _shape(user) == shape]
    if not views:
        return
    with module.graph.inserting_before(node):
        lookup = node_builder.call(module.graph, look_up, (x, dim, index), node)
    for view in views:
        view.replace_all_uses_with(lookup)


def _separate_sum(module: torch.fx.GraphModule, node: Node, index: Node) -> None:
    """Replace a sum over the joined axes of a gradient by a sum over the separate axes."""
    zeros, dim, _, joined = node.args
    if not isinstance(joined, Node) or not isinstance(zeros, Node) or not isinstance(dim, int) or not _is_zero(zeros):
        return
    dim %= len(_shape(zeros))
    shape = (*_shape(zeros)[:dim], *_shape(index), *_shape(zeros)[dim + 1:])
    source = joined.args[0] if joined.target in _VIEWS else None
    if not isinstance(source, Node) or _shape(source) != shape or _shape(joined)[dim] != math.prod(_shape(index)):
        return
    with module.graph.inserting_before(node):
        total = node_builder.call(module.graph, add_rows, (source, dim, index, _shape(zeros)[dim]), node)
    node.replace_all_uses_with(total)


def _is_zero(node: Node) -> bool:
    return getattr(node.target, "_opname", "") in ("new_zeros", "zeros", "zeros_like")


def _shape(node: Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)
