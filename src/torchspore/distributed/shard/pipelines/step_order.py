"""The order of a step that is cut by stages: its parts one after the other as the schedule has them.

One order of all nodes is made, of which each stage runs its own: so no two stages can wait for each other. What depends on what, through
values or through memory that is written, is never turned round, so that where a program ties its parts together (running statistics) they
come later than the schedule would like, and stay right.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.distributed.shard import collective_nodes as nodes
from torchspore.distributed.shard.pipelines import schedule as scheduling
from torchspore.distributed.shard.pipelines.schedule import BACKWARD, FORWARD, WEIGHTS, Block, Schedule
from torchspore.distributed.shard.pipelines.stage_assignment import ALL, stage_of
from torchspore.engine.autograd.recompute import later
from torchspore.engine.core import node_metadata
from torchspore.engine.core.torch_private import graph_module
from torchspore.graph.fx.order import dependencies

KNOWN = nodes.SENDING | nodes.LOCAL | frozenset({nodes.passed, later})
"""Functions that only read what they are given."""


@dataclass(frozen=True)
class Rule:
    """The context's settings for the order."""

    name: str
    is_interleaved: bool
    stages: int


def ordered(module: torch.fx.GraphModule, rule: Rule) -> tuple[torch.fx.GraphModule, Schedule | None]:
    """The graph in the order of the schedule; None for a step that has no parts, which stays as it is."""
    found = list(module.graph.nodes)
    before, _ = dependencies(found, KNOWN, lambda node: (stage_of(node), node.meta.get(node_metadata.PART)))
    blocks = _blocks(found, before, rule.name == "zero_bubble_v")
    if not blocks:
        return module, None
    schedule = scheduling.scheduled(_waits(found, before, blocks), rule.stages, rule.name, rule.is_interleaved)
    times = _times(found, before, blocks, schedule.starts)
    place = {node: at for at, node in enumerate(found)}
    graph, names = torch.fx.Graph(), dict[Node, Node]()
    for node in sorted(found, key=lambda node: (node.op == "output", node.op != "placeholder", times[node], place[node])):
        names[node] = graph.node_copy(node, lambda n: names[n])
    return graph_module(module, graph), schedule


def _blocks(found: Sequence[Node], before: Mapping[Node, Sequence[Node]], splits: bool) -> dict[Node, Block]:
    """The block of each node that computes a part."""
    hops: dict[Node, tuple[int, int]] = {}                      # forward, backward
    blocks: dict[Node, Block] = {}
    for node in found:
        part, is_backward = node.meta.get(node_metadata.PART), bool(node.meta.get(node_metadata.GRADIENT))
        ahead = max((hops[item][0] for item in node.all_input_nodes), default=0)
        back = max((hops[item][1] for item in node.all_input_nodes), default=0)
        if node.target is nodes.passed and part is not None:
            ahead, back = (ahead, back + 1) if is_backward else (ahead + 1, back)
        hops[node] = ahead, back
        if part is not None and stage_of(node) != ALL and node.op == "call_function" and node.target is not nodes.passed:
            blocks[node] = Block(stage_of(node), back if is_backward else ahead, part, BACKWARD if is_backward else FORWARD)
    _delay(found, blocks)
    if splits:
        needed = _awaited(found, before)
        for node, block in blocks.items():
            if block.kind == BACKWARD and node not in needed:
                blocks[node] = Block(block.stage, block.hop, block.part, WEIGHTS)
    return blocks


def _delay(found: Sequence[Node], blocks: dict[Node, Block]) -> None:
    """Moves what needs nothing from other stages (a weight that is turned round) to the block that reads it first."""
    for node in reversed(found):
        own = blocks.get(node)
        if own is None or own.kind != FORWARD or any(user.target is nodes.passed for user in node.users):
            continue
        readers = [blocks[user] for user in node.users if user in blocks and blocks[user].kind == FORWARD]
        hop = min((reader.hop for reader in readers if reader.stage == own.stage and reader.part == own.part), default=0)
        if hop > own.hop and len(readers) == sum(reader.part == own.part for reader in readers):
            blocks[node] = Block(own.stage, hop, own.part, FORWARD)


def _awaited(found: Sequence[Node], before: Mapping[Node, Sequence[Node]]) -> set[Node]:
    """Return the nodes that another stage waits for, directly or not."""
    needed: set[Node] = set()
    for node in reversed(found):
        if node.target is nodes.passed or node in needed:
            needed.update(before[node])
    return needed


def _waits(found: Sequence[Node], before: Mapping[Node, Sequence[Node]], blocks: Mapping[Node, Block]) -> dict[Block, set[Block]]:
    """For each block those that must be over, also where nodes of no block lie between."""
    waits: dict[Block, set[Block]] = {block: set() for block in blocks.values()}
    behind: dict[Node, frozenset[Block]] = {}
    for node in found:
        reached = frozenset[Block]().union(*(behind[item] for item in before[node]))
        own = blocks.get(node)
        if own is None:
            behind[node] = reached
        else:
            waits[own] |= reached - {own}
            behind[node] = frozenset({own})
    return _without_circles(waits)


def _without_circles(waits: dict[Block, set[Block]]) -> dict[Block, set[Block]]:
    """Drops what a block waits for that waits for it in turn: such blocks run into each other, and their nodes keep their order."""
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
    found: Sequence[Node], before: Mapping[Node, Sequence[Node]], blocks: Mapping[Node, Block], starts: Mapping[Block, float],
) -> dict[Node, float]:
    """When each node runs: with its block, and no earlier than what it needs."""
    times: dict[Node, float] = {}
    for node in found:
        own = starts[blocks[node]] if node in blocks else 0.0
        times[node] = max((own, *(times[item] for item in before[node])))
    return times
