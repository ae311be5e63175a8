"""Orders the graph of a step with stages: its micro batches run as the schedule says.

The pass computes one order of all nodes, and each stage runs its nodes in that order, so no two stages can wait for each other.
Dependencies, through values or through memory that is written, are never reversed. Where a program connects its micro batches (running
statistics), they run later than the schedule prefers, and the results stay correct.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.pipeline_parallel import schedule as scheduling
from torchspore.distributed.shard.pipeline_parallel.schedule import BACKWARD, FORWARD, WEIGHTS, Block, Schedule
from torchspore.distributed.shard.pipeline_parallel.stage_assignment import ALL, stage_of
from torchspore.engine.autograd.recompute import later
from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import graph_module
from torchspore.graph.fx.order import dependencies

COMMUNICATION = nodes.SENDING | nodes.LOCAL | frozenset({nodes.passed, later})
"""Functions that only read their arguments."""


@dataclass(frozen=True)
class Rule:
    """The context's settings for the order."""

    name: str
    is_interleaved: bool
    stages: int


def ordered(module: torch.fx.GraphModule, rule: Rule) -> tuple[torch.fx.GraphModule, Schedule | None]:
    """Return the graph in the order of the schedule; None for a step without micro batches, which is unchanged."""
    ordered_nodes = list(module.graph.nodes)
    before, _ = dependencies(ordered_nodes, COMMUNICATION, lambda node: (stage_of(node), node.meta.get(node_metadata.PART)))
    blocks = _blocks(ordered_nodes, before, rule.name == "zero_bubble_v")
    if not blocks:
        return module, None
    schedule = scheduling.scheduled(_waits(ordered_nodes, before, blocks), rule.stages, rule.name, rule.is_interleaved)
    times = _times(ordered_nodes, before, blocks, schedule.starts)
    return sorted_by_time(module, times), schedule


def sorted_by_time(module: torch.fx.GraphModule, times: Mapping[Node, float]) -> torch.fx.GraphModule:
    """Return the graph in the order of the nodes' times; nodes with one time keep their order."""
    graph, copies = torch.fx.Graph(), dict[Node, Node]()
    for node in sorted(module.graph.nodes, key=lambda node: (node.op == "output", node.op != "placeholder", times[node])):
        copies[node] = graph.node_copy(node, lambda item: copies[item])
    return graph_module(module, graph)


def _blocks(ordered_nodes: Sequence[Node], before: Mapping[Node, Sequence[Node]], splits: bool) -> dict[Node, Block]:
    """Return the block of each node that computes a micro batch."""
    hops: dict[Node, tuple[int, int]] = {}                      # forward, backward
    blocks: dict[Node, Block] = {}
    for node in ordered_nodes:
        part, is_backward = node.meta.get(node_metadata.PART), bool(node.meta.get(node_metadata.GRADIENT))
        ahead = max((hops[item][0] for item in node.all_input_nodes), default=0)
        back = max((hops[item][1] for item in node.all_input_nodes), default=0)
        if node.target is nodes.passed and part is not None:
            ahead, back = (ahead, back + 1) if is_backward else (ahead + 1, back)
        hops[node] = ahead, back
        if part is not None and stage_of(node) != ALL and node.op == "call_function" and node.target is not nodes.passed:
            blocks[node] = Block(stage_of(node), back if is_backward else ahead, part, BACKWARD if is_backward else FORWARD)
    _delay(ordered_nodes, blocks)
    if splits:
        needed = _awaited(ordered_nodes, before)
        for node, block in blocks.items():
            if block.kind == BACKWARD and node not in needed:
                blocks[node] = Block(block.stage, block.hop, block.part, WEIGHTS)
    return blocks


def _delay(ordered_nodes: Sequence[Node], blocks: dict[Node, Block]) -> None:
    """Move nodes that need nothing from other stages (a transposed weight) to the block that reads them first."""
    for node in reversed(ordered_nodes):
        block = blocks.get(node)
        if block is None or block.kind != FORWARD or any(user.target is nodes.passed for user in node.users):
            continue
        readers = [blocks[user] for user in node.users if user in blocks and blocks[user].kind == FORWARD]
        hop = min((reader.hop for reader in readers if reader.stage == block.stage and reader.part == block.part), default=0)
        if hop > block.hop and len(readers) == sum(reader.part == block.part for reader in readers):
            blocks[node] = Block(block.stage, hop, block.part, FORWARD)


def _awaited(ordered_nodes: Sequence[Node], before: Mapping[Node, Sequence[Node]]) -> set[Node]:
    """Return the nodes that another stage waits for, directly or indirectly."""
    needed: set[Node] = set()
    for node in reversed(ordered_nodes):
        if node.target is nodes.passed or node in needed:
            needed.update(before[node])
    return needed


def _waits(ordered_nodes: Sequence[Node], before: Mapping[Node, Sequence[Node]], blocks: Mapping[Node, Block]) -> dict[Block, set[Block]]:
    """Return for each block the blocks that must finish before it, also through nodes that belong to no block."""
    waits: dict[Block, set[Block]] = {block: set() for block in blocks.values()}
    behind: dict[Node, frozenset[Block]] = {}
    for node in ordered_nodes:
        reached = frozenset[Block]().union(*(behind[item] for item in before[node]))
        block = blocks.get(node)
        if block is None:
            behind[node] = reached
        else:
            waits[block] |= reached - {block}
            behind[node] = frozenset({block})
    return _without_circles(waits)


def _without_circles(waits: dict[Block, set[Block]]) -> dict[Block, set[Block]]:
    """Drop mutual dependencies: such blocks interleave, and their nodes keep their order."""
    order: dict[Block, int] = {}
    state: dict[Block, int] = {}
    for root in waits:
        stack = [(root, iter(sorted(waits[root], key=_key)))] if root not in state else []
        state.setdefault(root, 1)
        while stack:
            block, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[block] = 2
                order[block] = len(order)
                stack.pop()
            elif state.get(following) == 1:
                waits[block] = waits[block] - {following}
            elif following not in state:
                state[following] = 1
                stack.append((following, iter(sorted(waits[following], key=_key))))
    return waits


def _key(block: Block) -> tuple[Any, ...]:
    return block.part, block.kind, block.hop, block.stage


def _times(
    ordered_nodes: Sequence[Node], before: Mapping[Node, Sequence[Node]], blocks: Mapping[Node, Block], starts: Mapping[Block, float],
) -> dict[Node, float]:
    """Return the position of each node: with its block, and no earlier than its operands."""
    times: dict[Node, float] = {}
    for node in ordered_nodes:
        block_start = starts[blocks[node]] if node in blocks else 0.0
        times[node] = max((block_start, *(times[item] for item in before[node])))
    return times
