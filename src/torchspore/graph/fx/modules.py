"""Copies of graphs, and inner graphs: branches and loop bodies, which are arguments of nodes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.torch_internals.torch_private import graph_module


def copy_module(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a copy of the graph with new nodes; constants and inner graphs are shared."""
    graph = torch.fx.Graph()
    values: dict[torch.fx.Node, torch.fx.Node] = {}
    result = graph.graph_copy(module.graph, values, return_output_node=True)
    assert isinstance(result, tuple)
    output = graph.output(result[0])
    output.meta = dict(result[1].meta)
    return graph_module(module, graph)


Module = torch.fx.GraphModule


def has_inner(module: Module) -> bool:
    """Return whether the graph has inner graphs."""
    return any(isinstance(item, Module) for node in module.graph.nodes for item in _flatten(node.args))


def inner_of(module: Module) -> list[Module]:
    """Return the inner graphs: the graphs among the arguments of its nodes."""
    return [item for node in module.graph.nodes for item in _flatten(node.args) if isinstance(item, Module)]


def nested_nodes(module: Module) -> dict[torch.fx.Node, list[torch.fx.Node]]:
    """Return for each node of the graph, and of inner graphs at any depth, the nodes of the graphs in its arguments."""
    inner_nodes: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for node in module.graph.nodes:
        graphs = graphs_in(node)
        inner_nodes[node] = [inner for graph in graphs for inner in graph.graph.nodes]
        for graph in graphs:
            inner_nodes.update(nested_nodes(graph))
    return inner_nodes


def graphs_in(node: torch.fx.Node) -> list[Module]:
    """Return the graphs among the arguments of a node: the sides of a branch, or the body of a loop."""
    return [item for item in _flatten([node.args, list(node.kwargs.values())]) if isinstance(item, Module)]


def transform_inner(module: Module, change: Callable[[Module], Module | None]) -> bool:
    """Replace each inner graph by the result of `change`, unless that is None. Return whether a graph was replaced."""
    replaced = False

    def change_leaf(value: Any) -> Any:
        nonlocal replaced
        if isinstance(value, Module):
            replacement = change(value)
            replaced = replaced or replacement is not None
            return value if replacement is None else replacement
        return type(value)(change_leaf(item) for item in value) if type(value) in (list, tuple) else value

    for node in module.graph.nodes:
        if any(isinstance(item, Module) for item in _flatten(node.args)):
            node.args = tuple(change_leaf(item) for item in node.args)
    return replaced


def _flatten(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flatten(item)] if isinstance(value, (list, tuple)) else [value]
