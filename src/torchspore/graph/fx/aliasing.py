"""Aliasing: which values of a graph share memory, and which operators write into it.

Most facts come from the operators' schemas; the others are listed here. The *owner* of memory is the node that allocates it, or the
input or constant that it belongs to.
"""
from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.autograd.recompute import later
from torchspore.engine.tensors import tree
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.modules import graphs_in

_BATCH_NORM = torch.ops.aten.native_batch_norm.default


def writes(node: Node) -> list[Node]:
    """Return the values that an operator writes into. Batch norm in training writes its running statistics, contrary to its schema."""
    if node.op != "call_function" or not is_operator(node.target):
        return []
    if node.target is _BATCH_NORM:
        return [item for item in node.args[3:5] if isinstance(item, Node)] if node.args[5] else []
    nodes: list[Node] = []
    for index, name in _written_arguments(node.target):
        if not _only_reads(node, name):
            value = node.args[index] if index < len(node.args) else node.kwargs.get(name)
            nodes += [item for item in tree.listed(value) if isinstance(item, Node)]
    return nodes


@functools.cache
def _written_arguments(target: Any) -> tuple[tuple[int, str], ...]:
    """Return the positions and names of the arguments that an operator writes into, as its schema declares."""
    return tuple(
        (index, argument.name) for index, argument in enumerate(target._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    ) if target._schema.is_mutable else ()


def inputs_written(module: torch.fx.GraphModule) -> dict[int, list[Node]]:
    """Return by index of the input the operators that write into it, directly or through a view."""
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    base: dict[Node, Node] = {node: node for node in inputs}
    index_of = {node: index for index, node in enumerate(inputs)}
    writers: dict[int, list[Node]] = {}
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        if is_operator(node.target):
            for target in writes(node):
                if target in base:
                    writers.setdefault(index_of[base[target]], []).append(node)
            first = node.args[0] if node.args else None
            if isinstance(first, Node) and first in base and any(r.alias_info is not None for r in node.target._schema.returns):
                base[node] = base[first]
        elif graphs_in(node):
            for operand in node.all_input_nodes:                     # a branch or loop may write into its operands
                if operand in base and any(writes(inner) for graph in graphs_in(node) for inner in graph.graph.nodes):
                    writers.setdefault(index_of[base[operand]], []).append(node)
        elif node.target is operator.getitem and node.args[0] in base:
            base[node] = base[node.args[0]]
    return writers


def _only_reads(node: Node, name: str) -> bool:
    """Return whether a fused optimizer only reads the gradients. Its schema declares a write, which happens only with `grad_scale`."""
    return name == "grads" and node.target._opname.startswith("_fused_") and node.kwargs.get("grad_scale") is None  # type: ignore[union-attr]


_aten = torch.ops.aten
_VIEWS = {_aten.view.default, _aten._unsafe_view.default, _aten.permute.default, _aten.transpose.int, _aten.t.default, _aten.expand.default,
          _aten.unsqueeze.default, _aten.squeeze.dim, _aten.slice.Tensor, _aten.select.int, _aten.split.Tensor, _aten.reshape.default}


_UNDECLARED_VIEWS = frozenset({"_unsafe_view", "_reshape_alias", "wait_tensor", "unsafe_split", "unsafe_split_with_sizes"})
"""Operators whose result is a view of their input, although their schema does not declare it."""


def is_view(node: Node) -> bool:
    """Return whether the node calls a common view operator; `view_source` recognizes all of them."""
    return node.target in _VIEWS


def owner_of(node: Node) -> Node:
    """Return the owner of a value's memory: the node itself, or the first node of its chain of views and in-place operators."""
    source = view_source(node)
    while source is not None:
        node, source = source, view_source(source)
    return node


def owners(graph: torch.fx.Graph) -> dict[Node, Node]:
    """Return the owner of each value of a graph."""
    roots: dict[Node, Node] = {}
    for node in graph.nodes:
        source = view_source(node)
        roots[node] = node if source is None else roots[source]
    return roots


def view_source(node: Node) -> Node | None:
    """Return the value whose memory the result of a node shares; None if the result has separate memory."""
    if node.op != "call_function":
        return None
    if node.target is operator.getitem:
        return _item(node)
    if not is_operator(node.target):
        return None
    aliased = _aliased_argument(node.target)
    if aliased is None:
        return None
    index, name = aliased
    value = node.args[index] if index < len(node.args) else node.kwargs.get(name)
    return value if isinstance(value, Node) else None


@functools.cache
def _aliased_argument(target: Any) -> tuple[int, str] | None:
    """Return the position and name of the argument whose memory the result of an operator shares; None for separate memory."""
    if target._opname in _UNDECLARED_VIEWS:
        return 0, target._schema.arguments[0].name
    sets = [set(info.before_set) for returned in target._schema.returns if (info := returned.alias_info) is not None]
    for index, argument in enumerate(target._schema.arguments):
        info = argument.alias_info
        # `Tensor(a -> *)` in a schema means that the items of the returned list are views of the argument.
        if info is not None and ("*" in info.after_set or any(info.before_set & alias_set for alias_set in sets)):
            return index, argument.name
    return None


def _item(node: Node) -> Node | None:
    """Return the value that one of several results aliases."""
    source, index = node.args
    assert isinstance(source, Node)
    if source.target is later:
        value = source.args[index]  # type: ignore[index]
        return value if isinstance(value, Node) else None
    return view_source(source)


def mutated_owners(module: torch.fx.GraphModule) -> set[Node]:
    """Return the owners of memory that an operator writes into, or that a function other than an operator receives and may write into."""
    nodes: set[Node] = set()
    for node in module.graph.nodes:
        nodes.update(owner_of(item) for item in writes(node))
        if node.op == "call_function" and not is_operator(node.target) and node.target is not operator.getitem:
            nodes.update(owner_of(item) for item in node.all_input_nodes)
    return nodes


def is_result(node: Node) -> bool:
    """Return whether the value or a view of it is a result of the graph. The program may write into results later."""
    waiting, seen = [node], {node}
    while waiting:
        for user in waiting.pop().users:
            if user.op == "output":
                return True
            if user not in seen and owner_of(user) is not user:
                seen.add(user)
                waiting.append(user)
    return False
