"""Splits the graph of a part in two: the forward part, which also returns the values that the gradient needs, and the gradient."""
from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.execution import printing
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph import passes
from torchspore.graph.control_flow.assemble import SubGraph
from torchspore.graph.fx.inputs import copied_input, new_input
from torchspore.graph.passes.cleanup import drop_dead, has_effect
from torchspore.graph.refusal import Refusal


def copied(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A copy, lowered."""
    from torchspore.graph.control_flow.lowering import lower

    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    return lower(SubGraph(module, graph))


def _results(module: torch.fx.GraphModule) -> list[Node]:
    return list(next(node for node in reversed(module.graph.nodes) if node.op == "output").args[0])


def only(module: torch.fx.GraphModule, outputs: list[int], recomputes: bool = False, prints: bool = True) -> torch.fx.GraphModule:
    """The graph with just these outputs, of the forward part.

    With `recomputes` they are gradients, and it recomputes earlier values, which random numbers forbid. Without `prints` it
    prints nothing, as all that it does was done before.
    """
    reduced = without_prints(copied(module), recomputes)
    if not prints:
        without_prints(reduced, not recomputes)
    results = _results(reduced)
    end = next(node for node in reversed(reduced.graph.nodes) if node.op == "output")
    end.args = ([results[i] for i in outputs],)
    if not recomputes:
        for node in reversed(list(reduced.graph.nodes)):
            if node_metadata.BACKWARD in node.meta and node.op != "output":
                reduced.graph.erase_node(node)        # also in-place writes that nothing reads here
    drop_dead(reduced)
    if recomputes and any(_draws(node) for node in reduced.graph.nodes):
        raise Refusal("draws random numbers where a gradient of second order computes them again")
    return _finished(reduced)


def without_prints(module: torch.fx.GraphModule, forward: bool) -> torch.fx.GraphModule:
    """Return the graph without the prints of the forward part, if that has run before, or of the gradient, if that does not run."""
    for node in list(module.graph.nodes):
        if node.target in printing.OPERATORS and (node_metadata.BACKWARD not in node.meta) is forward:
            module.graph.erase_node(node)
    return module


def split(
    module: torch.fx.GraphModule, outputs: list[int], gradients: list[int], ran: bool = False,
) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
    """Return (inputs -> outputs and saved values, saved values and incoming gradients -> gradients); the first has `ran` before and prints
    nothing."""
    forward = copied(module)
    return halves(without_prints(forward, True) if ran else forward, outputs, gradients)


def halves(module: torch.fx.GraphModule, outputs: list[int], gradients: list[int]) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
    """The same of a graph that is lowered already."""
    results = _results(module)
    nodes = [node for node in module.graph.nodes if node.op != "output"]
    forward = [node for node in nodes if node_metadata.BACKWARD not in node.meta]
    back, saved = _backward(module, nodes, [results[i] for i in gradients])
    graph = torch.fx.Graph()
    env: dict[Node, Node] = {}
    for node in forward:
        env[node] = graph.node_copy(node, lambda n: env[n])
    graph.output([env[n] for n in [*(results[i] for i in outputs), *saved]])
    return _finished(drop_dead(SubGraph(module, graph))), back


def _backward(module: torch.fx.GraphModule, nodes: list[Node], gradients: list[Node]) -> tuple[torch.fx.GraphModule, list[Node]]:
    """The graph of the gradients, and the values of the forward part that it takes first."""
    needed = _needed(nodes, gradients)
    saved_nodes = [
        node for node in nodes
        if node_metadata.BACKWARD not in node.meta and node.op != "get_attr"
        and (node in gradients or any(user in needed for user in node.users))
    ]
    graph = torch.fx.Graph()
    env: dict[Node, Node] = {}
    for i, node in enumerate(saved_nodes):
        env[node] = new_input(graph, f"kept{i}")
        env[node].meta.update(node.meta)
    for node in nodes:
        if node_metadata.BACKWARD in node.meta and node.op == "placeholder":
            env[node] = copied_input(graph, node)
    for node in nodes:
        if node.op == "get_attr" or (node in needed and node.op != "placeholder"):
            env[node] = graph.node_copy(node, lambda n: env[n])
    graph.output([env[n] for n in gradients])
    return _finished(drop_dead(SubGraph(module, graph))), saved_nodes


def _needed(nodes: list[Node], gradients: list[Node]) -> set[Node]:
    """The nodes of the gradient's part that it takes to compute `gradients`."""
    needed: set[Node] = set()
    for node in reversed(nodes):
        if node_metadata.BACKWARD not in node.meta:
            continue
        if node in gradients or any(user in needed for user in node.users) or (node.op == "call_function" and has_effect(node)):
            needed.add(node)
    return needed


def _finished(module: Any) -> torch.fx.GraphModule:
    return passes.run(passes.CLEAN, module, keep=None)


def _draws(node: Node) -> bool:
    return is_operator(node.target) and torch.Tag.nondeterministic_seeded in node.target.tags

