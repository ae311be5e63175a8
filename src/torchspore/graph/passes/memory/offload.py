"""`memory_offload`: values of a graph that lie idle over its peak move out after their last use before it, and come back after it.

The lifetimes of all values are known, so that nothing moves that would not lower the peak. A value begins to come back as early as it does
not raise the peak, and as late as it is there in time.
"""
from __future__ import annotations

import operator
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.core import node_metadata
from torchspore.engine.memory.optimizer_states import put_away
from torchspore.engine.memory.saved_tensors import SMALL
from torchspore.engine.memory.transfer_operators import brought_back, fetched, moved_out
from torchspore.graph.fx.aliasing import writes
from torchspore.graph.passes.memory.lifetimes import Lifetimes, Storage, size_of
from torchspore.graph.passes.memory.rematerialize import seconds, writes_of

_LEAST = 4
"""Operators for which a value must lie idle."""
_SPEED = 1e9
"""Bytes that come back in a second."""


def put_away_states(module: torch.fx.GraphModule) -> None:
    """Lets the state of optimizers leave memory after the last operator of the step that reads it, in place."""
    for node in list(module.graph.nodes):
        if node.op != "placeholder" or size_of(node) < SMALL or not node.users:
            continue
        users = list(node.users)
        if all(node_metadata.OPTIMIZER in user.meta for user in users) and any(_is_state_of(user, node) for user in users):
            last = max(users)
            with module.graph.inserting_after(last):
                module.graph.call_function(put_away, (node,))


def _is_state_of(user: Node, node: Node) -> bool:
    """Return whether the operator writes its input, and not as the weight of a fused step, which comes first."""
    return node in writes(user) and not (user.target._opname.startswith("_fused_") and node in user.args[0])  # type: ignore


@dataclass
class Move:
    """The memory of one value that is out from after the operator at `start` to before the one at `back`."""

    storage: Storage
    targets: list[Node]
    start: int
    back: int


def asks(node: Node) -> bool:
    """Return whether a value is a forward one of a Cell that is offloaded."""
    return node_metadata.OFFLOADED in node.meta and not node_metadata.is_backward(node.meta)


def moved(module: torch.fx.GraphModule, goal: int = 0, only_requested: bool = False) -> tuple[int, int, int]:
    """Puts the moves in, in place, until the peak is at most `goal`. Gives how many they are, their bytes, and the peak.

    With `only_requested`, nothing moves but what Cells are offloaded for.
    """
    lives = Lifetimes(module)
    line = lives.timeline()
    moves = _moves(lives, line, goal, [storage for storage in lives.storages if not only_requested or asks(storage.node)])
    top = max(line, default=0)
    # The later a value is needed, the later in the graph its nodes are put in: places before stay what they are.
    for move in moves:
        _insert(module.graph, lives, line, move, top)
    return len(moves), sum(move.storage.size for move in moves), top


def _moves(lives: Lifetimes, line: list[int], goal: int, among: list[Storage]) -> list[Move]:
    """Return the moves `among` these; update `line`, the bytes in use at each operator."""
    writes_by_root = writes_of(lives)
    done: set[int] = set()
    moves: list[Move] = []
    while line and max(line) > goal:
        at = line.index(max(line))
        candidates = [move for storage in among if id(storage) not in done and (move := _move(lives, writes_by_root, storage, at))]
        if not candidates:
            break
        candidates.sort(key=lambda move: move.start - move.back)
        # All that lie idle here, as long as this is the peak: the longest out of use first.
        for move in candidates:
            if line[at] < max(line) or line[at] <= goal:
                break
            done.add(id(move.storage))
            moves.append(move)
            for index in range(move.start + 1, move.back):
                line[index] -= move.storage.size
    return moves


def _move(lives: Lifetimes, writes_by_root: dict[Node, list[int]], storage: Storage, at: int) -> Move | None:
    """How a value could move that lies idle at the operator `at`; None where it can't, or should not."""
    if storage.size < SMALL or storage.born >= at or storage.dies <= at:
        return None
    index = bisect_right(storage.uses, at)
    back = storage.uses[index]
    if lives.nodes[back].op == "output":
        return None
    # A view that is made later is one of what came back.
    shows = [node for node in storage.shows if lives.index_of[node] < back]
    targets = [node for node in shows if any(lives.index_of[user] >= back for user in node.users)]
    start = max([storage.born, *storage.uses[:index], *(lives.index_of[node] for node in targets)])
    if start >= at or back - start < _LEAST or not targets:
        return None
    if any(write > start for node in storage.shows for write in writes_by_root.get(node, ())):
        return None                                     # who writes into it must write into the one memory that there is
    return Move(storage, targets, start, back)


def _insert(graph: torch.fx.Graph, lives: Lifetimes, line: list[int], move: Move, top: int) -> None:
    nodes, size = lives.nodes, move.storage.size
    keys = (node_metadata.LINE, node_metadata.SCOPE, node_metadata.STACK, node_metadata.CALLED)
    meta = {key: value for key, value in move.storage.node.meta.items() if key in keys}
    with graph.inserting_before(nodes[move.start + 1]):
        out = graph.call_function(moved_out, tuple(move.targets))
    early = _early(nodes, line, move, top)
    if early < move.back:
        with graph.inserting_before(nodes[early]):
            _noted(graph.call_function(fetched, (out,)), meta)
        for index in range(early, move.back):
            line[index] += size
    with graph.inserting_before(nodes[move.back]):
        back = graph.call_function(brought_back, (out,))
        values: list[Node] = []
        for index, target in enumerate(move.targets):
            value = graph.call_function(operator.getitem, (back, index))
            value.meta = dict(target.meta)
            values.append(value)
    _noted(out, meta)
    _noted(back, meta)["val"] = [target.meta.get("val") for target in move.targets]
    for target, value in zip(move.targets, values):
        for user in list(target.users):
            if user is not out and lives.index_of.get(user, -1) >= move.back:
                user.replace_input_with(target, value)


def _noted(node: Node, meta: dict[str, Any]) -> dict[str, Any]:
    node.meta.update(meta)
    return node.meta


def _early(nodes: list[Node], line: list[int], move: Move, top: int) -> int:
    """Before which operator the value begins to come back."""
    index, remaining = move.back, 2 * move.storage.size / _SPEED
    while remaining > 0 and index - 1 > move.start + 1 and line[index - 1] + move.storage.size <= top:
        index -= 1
        remaining -= seconds(nodes[index])
    return index
