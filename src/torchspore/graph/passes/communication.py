"""Exchanges between processes that begin early and are waited for where their values are needed.

The order of the exchanges stays: it must be the same in all processes. Sums always move: they begin as soon as what is summed is there.
The others do where a switch of `parallel_speed_up_json_path` says so, and begin beside the exchange before them, so that no more than two
values wait at a time: to gather all weights first would take the memory of all.
"""
from __future__ import annotations

import torch
from torch.fx.node import Node

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.core import node_metadata
from torchspore.engine.core.torch_private import is_operator
from torchspore.graph.fx.exchanges import is_exchange, is_wait
from torchspore.graph.fx.order import dependencies, in_order

_KINDS = {
    "AllReduce": "all_reduce", "AllGather": "all_gather_into_tensor", "ReduceScatter": "reduce_scatter_tensor",
    "AlltoAll": "all_to_all_single", "AlltoAllV": "all_to_all_single",
}
FORWARD, BACKWARD, RECOMPUTED = "forward pass", "backward pass", "forward pass that is computed again"
_SWITCHES = {
    "enable_opt_shard_comm_opt": FORWARD, "matmul_grad_comm_overlap": BACKWARD, "recompute_comm_overlap": RECOMPUTED,
    "recompute_allgather_overlap_fagrad": RECOMPUTED,
}


def overlapped(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """With exchanges beside what does not depend on them."""
    nodes = list(module.graph.nodes)
    starts = [node for node in nodes if is_exchange(node) and not is_wait(node)]
    awaited = _awaited(starts)
    if not any(_moves(node) for node in starts) and not awaited:
        return module
    index_of = {node: at for at, node in enumerate(nodes)}
    before, _ = dependencies(nodes)
    early: dict[Node, float] = {}
    for last, start in zip([None, *starts], starts):
        if _moves(start) or start in awaited:
            at = -1.0 if _moves(start) or last is None else index_of[last] + 0.5
            early.update(dict.fromkeys((start, *_only_for(start)), at))
    first_use = {node: min((index_of[user] for user in node.users), default=index_of[node]) for node in nodes if is_wait(node)}

    def key(node: Node) -> tuple[float, float]:
        if node.op == "placeholder":
            return -2.0, index_of[node]
        if node in early:
            return early[node], index_of[node]
        moves = node in first_use and all(_moves(start) or start in awaited for start in node.all_input_nodes)
        return (first_use[node] - 0.5 if moves else index_of[node]), index_of[node]

    graph, names = torch.fx.Graph(), dict[Node, Node]()
    for node in in_order({node: node for node in nodes}, before, key):
        names[node] = graph.node_copy(node, lambda n: names[n])
    return torch.fx.GraphModule(module, graph)


def _moves(node: Node) -> bool:
    return is_operator(node.target) and node.target._schema.name == "_c10d_functional::all_reduce"


def _awaited(starts: list[Node]) -> set[Node]:
    """The exchanges that switches name; says of each switch how many it has found."""
    from torchspore.context.store import STORE

    nodes: set[Node] = set()
    for name, part in _SWITCHES.items():
        value = STORE.get(name)
        if not value:
            continue
        kinds = ("AllGather",) if name.startswith(("enable", "recompute_all")) else tuple(_KINDS) if value is True else value.split(",")
        operators = {f"_c10d_functional::{_KINDS[kind.strip()]}" for kind in kinds if kind.strip() in _KINDS}
        part_starts = {
            node for node in starts if _part(node) == part and is_operator(node.target) and node.target._schema.name in operators
        }
        nodes |= part_starts
        what = " and ".join(kind.strip() for kind in kinds) if len(kinds) < 3 else "exchange"
        effects.report(
            name,
            Outcome.applied(f"{len(part_starts)} exchanges of the {part} begin early")
            if part_starts
            else Outcome.no_effect(f"the last graph has no {what} in the {part}"),
        )
    return nodes


def _part(node: Node) -> str:
    """Return the phase of an exchange: a gather for gradients alone, or for the optimizer, belongs to the backward pass."""
    if node.meta.get(node_metadata.RECOMPUTED):
        return RECOMPUTED
    users = [user for wait in node.users for user in wait.users]
    return BACKWARD if _is_late(node) or (users and all(map(_is_late, users))) else FORWARD


def _is_late(node: Node) -> bool:
    return node_metadata.is_backward(node.meta) or bool(node.meta.get(node_metadata.OPTIMIZER))


def _only_for(start: Node) -> list[Node]:
    """The operators that only put together what is sent."""
    ordered: list[Node] = []
    waiting = list(start.all_input_nodes)
    chain = {start}
    while waiting:
        node = waiting.pop()
        if node in chain or node.op != "call_function" or not is_operator(node.target) or not set(node.users) <= chain:
            continue
        name = node.target._schema.name
        if name not in _PACKING:
            continue
        chain.add(node)
        ordered.append(node)
        waiting += node.all_input_nodes
    return ordered


_PACKING = frozenset({
    "aten::cat", "aten::view", "aten::_unsafe_view", "aten::reshape", "aten::_to_copy", "aten::clone", "aten::div", "aten::mul", "aten::t",
    "aten::permute", "aten::transpose",
})
