"""`memory_offload`: a value that is not used during the peak moves out of memory before the peak and back after it.

The lifetimes of all values are known, so only values whose move lowers the peak are moved. The transfer back begins as late as it can
complete in time, unless it would raise the peak.
"""
from __future__ import annotations

import operator
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.engine.memory.optimizer_offload import put_away
from torchspore.engine.memory.saved_tensors import SMALL
from torchspore.engine.memory.transfer_operators import brought_back, fetched, moved_out
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.fx.aliasing import writes
from torchspore.graph.passes.memory.lifetimes import Lifetimes, Storage, size_of
from torchspore.graph.passes.memory.rematerialize import seconds, writers_of

_MIN_IDLE_OPERATORS = 4
"""The least number of operators between two uses of a value that moves."""
_BYTES_PER_SECOND = 1e9
"""The assumed rate of the transfer back."""


def put_away_states(module: torch.fx.GraphModule) -> None:
    """Move optimizer states out of memory after the last operator of the step that reads them, in place."""
    for node in list(module.graph.nodes):
        if node.op != "placeholder" or size_of(node) < SMALL or not node.users:
            continue
        users = list(node.users)
        if all(node_metadata.OPTIMIZER in user.meta for user in users) and any(_is_state_of(user, node) for user in users):
            last = max(users)
            with module.graph.inserting_after(last):
                module.graph.call_function(put_away, (node,))


def _is_state_of(user: Node, node: Node) -> bool:
    """Return whether the operator writes into its input `node` as a state, not as the weight of a fused update."""
    return node in writes(user) and not (user.target._opname.startswith("_fused_") and node in user.args[0])  # type: ignore


@dataclass
class Move:
    """The memory of a value that moves out after the operator at index `start` and back before the operator at index `back`."""

    storage: Storage
    targets: list[Node]
    start: int
    back: int


def is_requested(node: Node) -> bool:
    """Return whether a value belongs to the forward pass of a Cell on which the program called `Cell.offload`."""
    return node_metadata.OFFLOADED in node.meta and not node_metadata.is_backward(node.meta)


def insert_moves(module: torch.fx.GraphModule, goal: int = 0, only_requested: bool = False) -> tuple[int, int, int]:
    """Insert moves, in place, until the peak is at most `goal` bytes. Return the number of moves, their bytes, and the peak.

    With `only_requested`, only values of Cells on which the program called `Cell.offload` move.
    """
    lifetimes = Lifetimes(module)
    timeline = lifetimes.timeline()
    moves = _choose_moves(
        lifetimes, timeline, goal, [storage for storage in lifetimes.storages if not only_requested or is_requested(storage.node)]
    )
    peak = max(timeline, default=0)
    # `lifetimes` keeps the original nodes, so that indices stay valid while nodes are inserted.
    for move in moves:
        _insert(module.graph, lifetimes, timeline, move, peak)
    return len(moves), sum(move.storage.size for move in moves), peak


def _choose_moves(lifetimes: Lifetimes, timeline: list[int], goal: int, storages: list[Storage]) -> list[Move]:
    """Choose moves of these storages; update `timeline`, the bytes in use at each operator."""
    writers = writers_of(lifetimes.nodes[0].graph)
    done: set[int] = set()
    moves: list[Move] = []
    while timeline and max(timeline) > goal:
        at = timeline.index(max(timeline))
        candidates = [
            move for storage in storages if id(storage) not in done and (move := _possible_move(lifetimes, writers, storage, at))
        ]
        if not candidates:
            break
        candidates.sort(key=lambda move: move.start - move.back)
        # The values that are longest out of use move first, until this operator is not the peak any more.
        for move in candidates:
            if timeline[at] < max(timeline) or timeline[at] <= goal:
                break
            done.add(id(move.storage))
            moves.append(move)
            for index in range(move.start + 1, move.back):
                timeline[index] -= move.storage.size
    return moves


def _possible_move(lifetimes: Lifetimes, writers: dict[Node, list[Node]], storage: Storage, at: int) -> Move | None:
    """Return a move of a value that the operator `at` does not use; None if it is impossible or not worthwhile."""
    if storage.size < SMALL or storage.created_at >= at or storage.freed_at <= at:
        return None
    index = bisect_right(storage.uses, at)
    back = storage.uses[index]
    if lifetimes.nodes[back].op == "output":
        return None
    # Later views are views of the value after its transfer back.
    shows = [node for node in storage.views if lifetimes.index_of[node] < back]
    targets = [node for node in shows if any(lifetimes.index_of[user] >= back for user in node.users)]
    start = max([storage.created_at, *storage.uses[:index], *(lifetimes.index_of[node] for node in targets)])
    if start >= at or back - start < _MIN_IDLE_OPERATORS or not targets:
        return None
    if any(lifetimes.index_of[writer] > start for node in storage.views for writer in writers.get(node, ())):
        return None                                     # a later write must reach the original memory
    return Move(storage, targets, start, back)


def _insert(graph: torch.fx.Graph, lifetimes: Lifetimes, timeline: list[int], move: Move, peak: int) -> None:
    nodes, size = lifetimes.nodes, move.storage.size
    keys = (node_metadata.LINE, node_metadata.SCOPE, node_metadata.STACK, node_metadata.CALLED)
    meta = {key: value for key, value in move.storage.node.meta.items() if key in keys}
    with graph.inserting_before(nodes[move.start + 1]):
        out = graph.call_function(moved_out, tuple(move.targets))
    early = _fetch_index(nodes, timeline, move, peak)
    if early < move.back:
        with graph.inserting_before(nodes[early]):
            _add_meta(graph.call_function(fetched, (out,)), meta)
        for index in range(early, move.back):
            timeline[index] += size
    with graph.inserting_before(nodes[move.back]):
        back = graph.call_function(brought_back, (out,))
        values: list[Node] = []
        for index, target in enumerate(move.targets):
            value = graph.call_function(operator.getitem, (back, index))
            value.meta = dict(target.meta)
            values.append(value)
    _add_meta(out, meta)
    _add_meta(back, meta)["val"] = [target.meta.get("val") for target in move.targets]
    for target, value in zip(move.targets, values):
        for user in list(target.users):
            if user is not out and lifetimes.index_of.get(user, -1) >= move.back:
                user.replace_input_with(target, value)


def _add_meta(node: Node, meta: dict[str, Any]) -> dict[str, Any]:
    node.meta.update(meta)
    return node.meta


def _fetch_index(nodes: list[Node], timeline: list[int], move: Move, peak: int) -> int:
    """Return the index of the operator before which the transfer back begins."""
    index, remaining = move.back, 2 * move.storage.size / _BYTES_PER_SECOND
    while remaining > 0 and index - 1 > move.start + 1 and timeline[index - 1] + move.storage.size <= peak:
        index -= 1
        remaining -= seconds(nodes[index])
    return index
