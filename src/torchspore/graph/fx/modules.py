"""Copies of graphs, and the graphs that a graph holds as arguments: branches and loop bodies."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.core.torch_private import graph_module


def copied(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same graph in new nodes; constants and sub-graphs are shared."""
    graph = torch.fx.Graph()
    values: dict[torch.fx.Node, torch.fx.Node] = {}
    result = graph.graph_copy(module.graph, values, return_output_node=True)
    assert isinstance(result, tuple)
    output = graph.output(result[0])
    output.meta = dict(result[1].meta)
    return graph_module(module, graph)


Module = torch.fx.GraphModule


def has_inner(module: Module) -> bool:
    """Return whether the graph holds others."""
    return any(isinstance(item, Module) for node in module.graph.nodes for item in _flat(node.args))


def inner_of(module: Module) -> list[Module]:
    """The graphs among the arguments of its nodes."""
    return [item for node in module.graph.nodes for item in _flat(node.args) if isinstance(item, Module)]


def nested_nodes(module: Module) -> dict[torch.fx.Node, list[torch.fx.Node]]:
    """For each node of the graph, and of the graphs in it, the nodes of the graphs that it holds itself."""
    inner_nodes: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for node in module.graph.nodes:
        graphs = graphs_in(node)
        inner_nodes[node] = [inner for graph in graphs for inner in graph.graph.nodes]
        for graph in graphs:
            inner_nodes.update(nested_nodes(graph))
    return inner_nodes


def graphs_in(node: torch.fx.Node) -> list[Module]:
    """The graphs among the arguments of one node: the sides of a branch, the body of a loop."""
    return [item for item in _flat([node.args, list(node.kwargs.values())]) if isinstance(item, Module)]


def change_inner(module: Module, change: Callable[[Module], Module | None]) -> bool:
    """Gives each graph inside to `change` and puts what comes back in its place, None leaves it; says whether one was replaced."""
    replaced = False

    def change_leaf(value: Any) -> Any:
        nonlocal replaced
        if isinstance(value, Module):
            replacement = change(value)
            replaced = replaced or replacement is not None
            return value if replacement is None else replacement
        return type(value)(change_leaf(item) for item in value) if type(value) in (list, tuple) else value

    for node in module.graph.nodes:
        if any(isinstance(item, Module) for item in _flat(node.args)):
            node.args = tuple(change_leaf(item) for item in node.args)
    return replaced


def _flat(value: Any) -> list[Any]:
    return [inner for item in value for inner in _flat(item)] if isinstance(value, (list, tuple)) else [value]
