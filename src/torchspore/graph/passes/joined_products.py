"""Joins matrix products of equal shapes into one batched product: `enable_parallel_op_combine`.

Different operands are stacked, which copies them. A stack of weights that the graph does not write into is computed once
(`hoist_stacks`). The sums of a batched product may be rounded differently.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch.fx.node import Node, map_arg

from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.fx import open_sizes
from torchspore.graph.fx.aliasing import is_result, is_view, mutated_owners, owner_of
from torchspore.graph.fx.modules import transform_inner
from torchspore.graph.fx.order import dependencies, topological_order
from torchspore.graph.fx.unit_graph import UnitGraph
from torchspore.graph.passes.cleanup import drop_dead
from torchspore.graph.passes.folding import Hoisted, hoist

_aten = torch.ops.aten
_MM, _ADDMM = _aten.mm.default, _aten.addmm.default
_MARKS = (node_metadata.GRADIENT, node_metadata.OPTIMIZER, node_metadata.STAGE, node_metadata.RECOMPUTED)
_PACKED = "packed_operands"
MAX_OPEN_GROUPS = 4
"""The maximum number of groups that a product is compared with."""
Module = torch.fx.GraphModule


def join_products(module: Module, joins_all: bool) -> Module:
    """Join independent products of equal shapes that share an operand; with `joins_all`, all independent products of equal shapes.

    Products that are results of the graph, or that an operator writes into, are not joined.
    """
    transform_inner(module, lambda inner: _join_in_graph(inner, joins_all))
    return _join_in_graph(module, joins_all) or module


def hoist_stacks(module: Module, persistent: frozenset[int]) -> Hoisted | None:
    """Split off the stacks of the inputs at the indices `persistent` that the graph does not write into; None without such stacks."""
    packs = {node for node in module.graph.nodes if node.meta.get(_PACKED)}
    return hoist(module, persistent, packs) if packs else None


def _join_in_graph(module: Module, joins_all: bool) -> Module | None:
    mutated = mutated_owners(module)
    products = [node for node in module.graph.nodes if _is_product(node) and owner_of(node) not in mutated and not is_result(node)]
    if len(products) < 2:
        return None
    before, _ = dependencies(list(module.graph.nodes))
    units = UnitGraph(before)
    groups: list[list[Node]] = []
    keys: list[Callable[[Node], Hashable]] = [
        lambda node: ("first", _value_key(_first_operand(node))), lambda node: ("second", _value_key(_second_operand(node))),
    ]
    for key in [*keys, lambda node: "all"] if joins_all else keys:
        joined = {node for group in groups for node in group}
        groups += _groups([node for node in products if node not in joined], units, key)
    return _write_graph(module, before, groups) if groups else None


def _is_product(node: Node) -> bool:
    value = node.meta.get("val")
    if node.target not in (_MM, _ADDMM) or node.kwargs or not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return False
    if any(not isinstance(item, Node) or open_sizes.is_open(item.meta["val"]) for item in node.args) or not value.is_contiguous():
        return False
    return len(node.args) == 2 or node.args[0].meta["val"].dim() == 1      # type: ignore[union-attr]


def _first_operand(node: Node) -> Node:
    return node.args[-2]                       # type: ignore[return-value]


def _second_operand(node: Node) -> Node:
    return node.args[-1]                       # type: ignore[return-value]


def _value_key(node: Node) -> Hashable:
    """Return a key that is equal for equal views of one value."""
    if not is_view(node):
        return node
    return node.target, tuple(_value_key(item) if isinstance(item, Node) else repr(item) for item in node.args)


def _kind(node: Node) -> Hashable:
    values = [item.meta["val"] for item in node.args]          # type: ignore[union-attr]
    return (node.target, tuple((tuple(v.shape), v.dtype, v.device) for v in values), *(node.meta.get(mark) for mark in _MARKS))


def _groups(products: list[Node], units: UnitGraph, key: Callable[[Node], Hashable]) -> list[list[Node]]:
    """Return groups of two or more independent products with the same kind and key."""
    groups: dict[Hashable, list[list[Node]]] = {}
    for node in products:
        alike = groups.setdefault((_kind(node), key(node)), [])
        for group in alike[-MAX_OPEN_GROUPS:]:
            if units.are_independent(group[0], node):
                units.join(group[0], node)
                group.append(node)
                break
        else:
            alike.append([node])
    return [group for alike in groups.values() for group in alike if len(group) > 1]


def _write_graph(module: Module, before: dict[Node, list[Node]], groups: list[list[Node]]) -> Module:
    nodes = list(module.graph.nodes)
    units: dict[Node, int] = {node: index for index, node in enumerate(nodes)}
    group_at: dict[int, list[Node]] = {}
    for group in groups:
        index = max(units[node] for node in group)
        group_at[index] = group
        units.update(dict.fromkeys(group, index))
    graph = torch.fx.Graph()
    copies: dict[Node, Node] = {}
    for index in topological_order(units, before, lambda index: index):
        if index in group_at:
            _write_batch(graph, copies, group_at[index])
        else:
            copies[nodes[index]] = graph.node_copy(nodes[index], lambda n: copies[n])
    return drop_dead(torch.fx.GraphModule(module, graph))


def _write_batch(graph: torch.fx.Graph, copies: dict[Node, Node], group: list[Node]) -> None:
    """Write one batched product for a group."""
    marks = {name: value for name, value in group[0].meta.items() if name != "val"}

    def call(target: Any, *arguments: Any) -> Node:
        node = graph.call_function(target, arguments)
        values = map_arg(arguments, lambda item: item.meta["val"])
        node.meta = {**marks, "val": target(*values)}
        return node

    first = _batch(call, [_first_operand(node) for node in group], copies)
    second = _batch(call, [_second_operand(node) for node in group], copies)
    if len(group[0].args) == 3:
        biases = _batch(call, [node.args[0] for node in group], copies)       # type: ignore[misc]
        batch = call(_aten.baddbmm.default, call(_aten.unsqueeze.default, biases, 1), first, second)
    else:
        batch = call(_aten.bmm.default, first, second)
    for index, node in enumerate(group):
        copies[node] = call(_aten.select.int, batch, 0, index)
        copies[node].meta = dict(node.meta)


def _batch(call: Callable[..., Node], operands: list[Node], copies: dict[Node, Node]) -> Node:
    """Return the operands with a new first axis: one operand repeated as a view, or a stack of several."""
    count = len(operands)
    if len({_value_key(node) for node in operands}) == 1:
        row = call(_aten.unsqueeze.default, copies[operands[0]], 0)
        return call(_aten.expand.default, row, [count, *operands[0].meta["val"].shape])
    is_transposed = all(node.target is _aten.t.default for node in operands)
    sources = [node.args[0] if is_transposed else node for node in operands]  # a stack of transposed views would copy column by column
    stack = call(_aten.stack.default, [copies[node] for node in sources])      # type: ignore[index]
    stack.meta[_PACKED] = True
    return call(_aten.transpose.int, stack, 1, 2) if is_transposed else stack
