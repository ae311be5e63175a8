"""Takes out of a graph what depends on held inputs alone (weights), so that it is computed once and not at each call."""
from __future__ import annotations

import operator
from dataclasses import dataclass

import torch
from torch.fx.node import Node

from torchspore.engine.graph.passes.dead import acts
from torchspore.engine.graph.passes.inputs import copied_input, new_input
from torchspore.engine.graph.passes.views import is_view, root
from torchspore.engine.graph.passes.writes import writes


@dataclass
class Hoisted:
    """Two graphs: `first` takes the inputs at `taken` and gives new values, `rest` takes all inputs and then these."""

    first: torch.fx.GraphModule
    rest: torch.fx.GraphModule
    taken: list[int]


def steady(module: torch.fx.GraphModule, held: frozenset[int]) -> set[Node]:
    """The values that depend on nothing but the inputs at these places, none of which the graph writes into."""
    written = {root(item) for node in module.graph.nodes for item in writes(node)}
    found: set[Node] = set()
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node in module.graph.nodes:
        if node.op == "placeholder":
            if inputs.index(node) in held and node not in written:
                found.add(node)
        elif node.op == "get_attr":
            if node not in written:
                found.add(node)
        elif node.op == "call_function" and all(item in found for item in node.all_input_nodes):
            if node.target is operator.getitem or not acts(node):
                found.add(node)
    return found


def hoist(module: torch.fx.GraphModule, held: frozenset[int]) -> Hoisted | None:
    """The two graphs; None where nothing but views could be taken out."""
    fixed = steady(module, held)
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    work = {node for node in fixed if node.op == "call_function" and node.all_input_nodes and not _is_cheap(node)}
    given = [node for node in module.graph.nodes if node in fixed and node.op == "call_function"
             and any(user not in fixed for user in node.users) and _needs(node, work)]
    if not given:
        return None
    first, names = torch.fx.Graph(), dict[Node, Node]()
    wanted = _ancestors(given)
    taken = [place for place, node in enumerate(inputs) if node in wanted]
    for node in module.graph.nodes:
        if node in wanted:
            names[node] = first.node_copy(node, lambda n: names[n])
    first.output([names[node] for node in given])
    return Hoisted(torch.fx.GraphModule(module, first), _rest(module, given, wanted), taken)


def _rest(module: torch.fx.GraphModule, given: list[Node], gone: set[Node]) -> torch.fx.GraphModule:
    graph, names = torch.fx.Graph(), dict[Node, Node]()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            names[node] = copied_input(graph, node)
    for place, node in enumerate(given):
        names[node] = new_input(graph, f"held{place}")
        names[node].meta = dict(node.meta)
    for node in module.graph.nodes:
        if node not in names:
            names[node] = graph.node_copy(node, lambda n: names[n])
    for node in reversed(list(graph.nodes)):      # what was taken out and is read nowhere else
        if node.op in ("call_function", "get_attr") and not node.users and not acts(node):
            graph.erase_node(node)
    return torch.fx.GraphModule(module, graph)


def _is_cheap(node: Node) -> bool:
    return is_view(node) or node.target is operator.getitem


def _needs(node: Node, work: set[Node]) -> bool:
    return bool(_ancestors([node]) & work)


def _ancestors(nodes: list[Node]) -> set[Node]:
    found: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return found
