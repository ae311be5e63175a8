"""Overlap of exchanges between processes with computation: exchanges begin early, and each wait comes before the first use.

The order of the exchanges does not change, because it must be equal in all processes. An all-reduce begins when its operand is computed.
Other exchanges move only if an option of `parallel_speed_up_json_path` requests it. They begin with the exchange before them, so that at
most three values are in transit: gathering all weights first would need memory for all of them.

The wait for a reduce-scatter or for the gather of a weight comes as late as memory allows: before the first use of its result, or before
the next such exchange begins if both together are larger than the largest exchange of the graph.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.autograd.recompute import SECOND_RUN
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.exchanges import is_exchange, is_wait
from torchspore.graph.fx.order import dependencies, topological_order

_KINDS = {
    "AllReduce": "all_reduce", "AllGather": "all_gather_into_tensor", "ReduceScatter": "reduce_scatter_tensor",
    "AlltoAll": "all_to_all_single", "AlltoAllV": "all_to_all_single",
}
FORWARD, BACKWARD, RECOMPUTED = "forward pass", "backward pass", "forward pass that is computed again"
_SWITCHES = {
    "enable_opt_shard_comm_opt": FORWARD, "matmul_grad_comm_overlap": BACKWARD, "recompute_comm_overlap": RECOMPUTED,
    "recompute_allgather_overlap_fagrad": RECOMPUTED,
}


def overlap_exchanges(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a graph in which exchanges overlap with independent operators."""
    nodes = list(module.graph.nodes)
    starts = [node for node in nodes if is_exchange(node) and not is_wait(node)]
    requested = _requested_exchanges(starts)
    pending = [node for node in starts if _can_overlap(node) and node not in requested]
    if not any(_is_all_reduce(node) for node in starts) and not requested and not pending:
        return module
    index_of = {node: at for at, node in enumerate(nodes)}
    before, _ = dependencies(nodes, SECOND_RUN)
    start_positions: dict[Node, float] = {}
    for last, start in zip([None, *starts], starts):
        if _is_all_reduce(start) or start in requested:
            at = -1.0 if _is_all_reduce(start) or last is None else index_of[last] + 0.5
            start_positions.update(dict.fromkeys((start, *packing_of(start)), at))
    first_use = {node: min((index_of[user] for user in node.users), default=index_of[node]) for node in nodes if is_wait(node)}
    wait_positions = _wait_positions(pending, lambda node: start_positions.get(node, index_of[node]), index_of)

    def key(node: Node) -> tuple[float, float]:
        if node.op == "placeholder":
            return -2.0, index_of[node]
        if node in start_positions:
            return start_positions[node], index_of[node]
        if node in wait_positions:
            return wait_positions[node], index_of[node]
        moves = node in first_use and all(_is_all_reduce(start) or start in requested for start in node.all_input_nodes)
        return (first_use[node] - 0.5 if moves else index_of[node]), index_of[node]

    graph, copies = torch.fx.Graph(), dict[Node, Node]()
    for node in topological_order({node: node for node in nodes}, before, key):
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    return torch.fx.GraphModule(module, graph)


def _is_all_reduce(node: Node) -> bool:
    return is_operator(node.target) and node.target._schema.name == "_c10d_functional::all_reduce"


def _can_overlap(start: Node) -> bool:
    """Return whether the wait can be delayed: a reduce-scatter, or the gather of a weight of a split graph."""
    target: Any = start.target
    is_scatter = is_operator(target) and target._schema.name == "_c10d_functional::reduce_scatter_tensor"
    return (is_scatter or bool(start.meta.get(node_metadata.SCHEDULED_EXCHANGE))) and len(start.users) == 1


def _wait_positions(pending: list[Node], position_of: Callable[[Node], float], index_of: dict[Node, int]) -> dict[Node, float]:
    """Return the positions of the waits for these exchanges, and of the operators that only unpack their results."""
    positions: dict[Node, float] = {}
    running: list[tuple[Node, int]] = []
    limit = max(map(_size_of, pending), default=0)
    for start in pending:
        while running and sum(size for _, size in running) + _size_of(start) > limit:
            wait, _ = running.pop(0)
            positions[wait] = min(positions[wait], position_of(start) - 0.25)
        wait = next(iter(start.users))
        unpacking = _unpacking_of(wait)
        uses = [position_of(user) for node in (wait, *unpacking) for user in node.users if user not in unpacking]
        first = min(uses, default=float(index_of[wait]))
        positions.update(dict.fromkeys((wait, *unpacking), first - 0.5))
        running.append((wait, _size_of(start)))
    return positions


def _size_of(start: Node) -> int:
    """Return the bytes of the operand or the result of an exchange, whichever is larger."""
    values = [node.meta.get("val") for node in (start, *start.all_input_nodes)]
    return max((t.numel() * t.element_size() for t in values if isinstance(t, torch.Tensor)), default=0)


def _unpacking_of(wait: Node) -> list[Node]:
    """Return the operators that only rearrange or scale the result of an exchange, in order."""
    nodes: list[Node] = []
    waiting = [wait]
    while waiting:
        for user in waiting.pop(0).users:
            is_unpacking = user.target is operator.getitem or (is_operator(user.target) and user.target._schema.name in _UNPACKING)
            if user not in nodes and is_unpacking and all(item is wait or item in nodes for item in user.all_input_nodes):
                nodes.append(user)
                waiting.append(user)
    return nodes


def _requested_exchanges(starts: list[Node]) -> set[Node]:
    """Return the exchanges that options select, and report their number for each option."""
    from torchspore.context.store import STORE

    nodes: set[Node] = set()
    for name, part in _SWITCHES.items():
        value = STORE.get(name)
        if not value:
            continue
        kinds = ("AllGather",) if name.startswith(("enable", "recompute_all")) else tuple(_KINDS) if value is True else value.split(",")
        operators = {f"_c10d_functional::{_KINDS[kind.strip()]}" for kind in kinds if kind.strip() in _KINDS}
        part_starts = {
            node for node in starts if _phase_of(node) == part and is_operator(node.target) and node.target._schema.name in operators
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


def _phase_of(node: Node) -> str:
    """Return the phase of an exchange. A gather that only gradients or the optimizer use belongs to the backward pass."""
    if node.meta.get(node_metadata.RECOMPUTED):
        return RECOMPUTED
    users = [user for wait in node.users for user in wait.users]
    return BACKWARD if _is_backward_or_update(node) or (users and all(map(_is_backward_or_update, users))) else FORWARD


def _is_backward_or_update(node: Node) -> bool:
    return node_metadata.is_backward(node.meta) or bool(node.meta.get(node_metadata.OPTIMIZER))


def packing_of(start: Node) -> list[Node]:
    """Return the operators that only pack the operand of an exchange."""
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
_UNPACKING = _PACKING | {"aten::split", "aten::slice", "aten::unsqueeze", "aten::squeeze", "aten::detach", "aten::alias", "aten::expand"}
