"""Forward values that the backward half computes again instead of keeping them, and what that costs."""
from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch.fx.node import Node

from torchspore.engine.core import node_metadata
from torchspore.engine.core.torch_private import is_operator
from torchspore.graph.fx.aliasing import owners, shown, writes
from torchspore.graph.passes.cleanup import acts
from torchspore.graph.passes.memory.lifetimes import Lifetimes, Storage

_BYTES, _STEPS = 1e10, 5e10
"""Bytes moved and arithmetic done in a second."""
_LEAST = 2e-6
_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "mv", "dot", "addmv"})


def seconds(node: Node) -> float:
    """An estimate for one operator; views are free."""
    if node.op != "call_function" or node.target is operator.getitem or shown(node) is not None:
        return 0.0
    moved = sum(t.numel() * t.element_size() for n in (node, *node.all_input_nodes) for t in _tensors(n.meta.get("val")))
    return _LEAST + moved / _BYTES + _arithmetic(node) / _STEPS


def _arithmetic(node: Node) -> float:
    """Multiplications and additions of products and convolutions; the others are bound by memory."""
    name = node.target._opname if is_operator(node.target) else ""
    values = [_tensors(n.meta.get("val")) for n in node.args if isinstance(n, Node)]
    shapes = [value[0].shape for value in values if value]
    if name in _PRODUCTS and len(shapes) > 1:
        a, b = shapes[-2], shapes[-1]
        return 2.0 * a.numel() * (b[-1] if len(b) > 1 else 1)
    if name == "convolution" and len(shapes) > 1:
        out = _tensors(node.meta.get("val"))
        return 2.0 * out[0].numel() * shapes[1][1:].numel() if out else 0.0
    if name == "convolution_backward" and len(shapes) > 2:
        return 4.0 * shapes[0].numel() * shapes[2][1:].numel()
    return 0.0


def _tensors(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for t in value if isinstance(t, torch.Tensor)] if isinstance(value, (list, tuple)) else []


PRICE = 0.25
"""The share of the graph's own cost that may be spent in all."""
_STRIDE = 0.05
"""The share of the peak that is freed before lifetimes are looked at again."""
_DEAREST = 1.0
"""A value must free this share of the peak for each share of the graph's cost that it takes: the last few bytes would be dear."""
_LONGEST = 24
"""The most operators that are run again for one value."""
_WORTH = 1e-3
"""The least share of the peak that a value must free."""
_aten = torch.ops.aten
_NORM = _aten.native_batch_norm.default


def recomputed(module: torch.fx.GraphModule) -> tuple[int, float]:
    """Puts the second computations in, in place. Gives how many operators they are, and their cost as a share of the graph's."""
    total_seconds = sum(seconds(node) for node in module.graph.nodes) or 1.0
    spent, count, stride = 0.0, 0, _STRIDE
    hopeless: set[Node] = set()
    lives = Lifetimes(module)
    line = lives.timeline()
    while line:
        top = max(line)
        budget_left = PRICE * total_seconds - spent
        candidates = [
            candidate
            for candidate in _candidates(lives, line.index(top), top, hopeless, budget_left)
            if candidate.frees / top >= _DEAREST * candidate.price / total_seconds
        ]
        batch = _batch(candidates, stride * top, budget_left)
        if not batch:
            break
        insertions = [_Insertion(module.graph, lives, candidate) for candidate in batch]
        after = Lifetimes(module)
        next_line = after.timeline()
        if max(next_line) > top:
            for insertion in reversed(insertions):
                insertion.undo()
            # Together they raise it: one by one it shows which one does.
            hopeless |= {batch[0].storage.node} if len(batch) == 1 else set()
            stride = 0.0
            continue
        spent, count = spent + sum(candidate.price for candidate in batch), count + sum(len(candidate.chain) for candidate in batch)
        lives, line, stride = after, next_line, _STRIDE
    return count, spent / total_seconds


@dataclass
class Candidate:
    """A value that could be computed again before the operator at `back`: by which operators, in order, which values these read,
    and what that frees and costs.
    """

    storage: Storage
    back: int
    targets: list[Node]
    chain: list[Node] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)
    frees: int = 0
    price: float = 0.0


def _candidates(lives: Lifetimes, at: int, top: int, hopeless: set[Node], budget: float) -> list[Candidate]:
    """Return the values that can be recomputed to free memory while the operator `at` runs, the most memory for its price first."""
    writes_at = writes_of(lives)
    candidates = []
    for storage in lives.storages:
        if storage.size < _WORTH * top or storage.node in hopeless or node_metadata.RECOMPUTED in storage.node.meta:
            continue
        back = _next_use(storage, at)
        if back is not None:
            candidate = _Closure(lives, writes_at, storage, back, at).candidate()
            if candidate is not None and candidate.price <= budget and candidate.frees >= _WORTH * top:
                candidates.append(candidate)
    return sorted(candidates, key=lambda candidate: candidate.price / candidate.frees)


def _batch(candidates: list[Candidate], goal: float, budget: float) -> list[Candidate]:
    """The first candidates that together free as many bytes as wanted, at least one; none reads what another one would not keep."""
    chosen: list[Candidate] = []
    gone: set[int] = set()
    read: set[int] = set()
    for candidate in candidates:
        if id(candidate.storage) in read or candidate.reads & gone or candidate.price > budget:
            continue
        chosen.append(candidate)
        gone.add(id(candidate.storage))
        read |= candidate.reads
        goal, budget = goal - candidate.frees, budget - candidate.price
        if goal <= 0:
            break
    return chosen


def _next_use(storage: Storage, at: int) -> int | None:
    """Where a value that lies idle at a place is read next; None for one that is in use there, or gone."""
    if storage.born >= at or storage.dies <= at:
        return None
    index = bisect_right(storage.uses, at)
    return None if index and storage.uses[index - 1] == at else storage.uses[index]


def writes_of(lives: Lifetimes) -> dict[Node, list[int]]:
    """Where each value's memory is written into."""
    owner = owners(lives.nodes[0].graph)
    writes_by_node: dict[Node, list[int]] = {}
    for index, node in enumerate(lives.nodes):
        for item in writes(node):
            writes_by_node.setdefault(owner[item], []).append(index)
    return {node: writes_by_node[owner[node]] for node in lives.nodes if owner[node] in writes_by_node}


class _Impossible(Exception):
    """The value can't be computed again there."""


class _Closure:
    """The operators that must run again for one value: its own, and before it those of inputs that are freed by then."""

    def __init__(self, lives: Lifetimes, writes_at: dict[Node, list[int]], storage: Storage, back: int, at: int) -> None:
        self._lives, self._writes_at, self._storage, self._back, self._at = lives, writes_at, storage, back, at
        self._chain: dict[Node, None] = {}
        self._longer: dict[int, Storage] = {}
        self._reads: set[int] = set()

    def candidate(self) -> Candidate | None:
        """Return the cost of recomputing; None if it is impossible."""
        if any(n in self._writes_at for n in self._storage.shows):
            return None                    # what was written into it would be lost
        targets = [n for n in self._storage.shows if any(self._lives.index_of[user] >= self._back for user in n.users)]
        try:
            for target in targets:
                self._need(target)
        except _Impossible:
            return None
        longer = sum(s.size for s in self._longer.values() if s.dies < self._at)
        price = sum(seconds(node) for node in self._chain)
        frees = self._storage.size - longer
        return Candidate(self._storage, self._back, targets, list(self._chain), self._reads, frees, max(price, 1e-9))

    def _need(self, node: Node) -> None:
        """Has the value of a node at hand at `back`."""
        if node in self._chain or self._is_there(node):
            return
        if not _can_rerun(node):
            self._keep_longer(node)
            return
        if len(self._chain) >= _LONGEST:
            raise _Impossible
        for item in _reads(node):
            self._need(item)
            if any(self._lives.index_of[node] < index < self._back for index in self._writes_at.get(item, ())):
                raise _Impossible
        self._chain[node] = None

    def _is_there(self, node: Node) -> bool:
        if node.op in ("placeholder", "get_attr"):
            return True
        storage = self._lives.of.get(node)
        if storage is None or storage is self._storage or storage.dies < self._back:
            return False
        self._reads.add(id(storage))
        return True

    def _keep_longer(self, node: Node) -> None:
        storage = self._lives.of.get(node)
        if storage is None or storage is self._storage:
            raise _Impossible
        self._longer[id(storage)] = storage
        self._reads.add(id(storage))


def _can_rerun(node: Node) -> bool:
    """Return whether a second run of the operator changes nothing and gives the same: no write, no random numbers, and known to us."""
    if node.target is operator.getitem:
        return _can_rerun(node.args[0])  # type: ignore[arg-type]
    if node.op != "call_function" or not is_operator(node.target) or node.target.namespace != "aten":
        return False
    return not acts(node) or _is_training_norm(node)


def _is_training_norm(node: Node) -> bool:
    return node.target is _NORM and bool(node.args[5])


def _reads(node: Node) -> Iterator[Node]:
    """Yield the inputs that a second run of the operator reads: a batch norm does without its running statistics."""
    yield from (n for n in node.args[:3] if isinstance(n, Node)) if _is_training_norm(node) else node.all_input_nodes


class _Insertion:
    """The second computation of one value, put into the graph."""

    def __init__(self, graph: torch.fx.Graph, lives: Lifetimes, candidate: Candidate) -> None:
        self._copies: dict[Node, Node] = {}
        self._replaced: list[tuple[Node, Node, Node]] = []
        with graph.inserting_before(lives.nodes[candidate.back]):
            for node in candidate.chain:
                self._copies[node] = _copied(graph, node, self._copies)
        for target in candidate.targets:
            for user in list(target.users):
                if user not in self._copies.values() and lives.index_of[user] >= candidate.back:
                    user.replace_input_with(target, self._copies[target])
                    self._replaced.append((user, target, self._copies[target]))

    def undo(self) -> None:
        """Takes it out again."""
        for user, target, copy in self._replaced:
            user.replace_input_with(copy, target)
        for copy in reversed(self._copies.values()):
            copy.graph.erase_node(copy)


def _copied(graph: torch.fx.Graph, node: Node, copies: dict[Node, Node]) -> Node:
    if _is_training_norm(node):
        operands = [copies.get(n, n) if isinstance(n, Node) else n for n in node.args[:3]]
        copy = graph.call_function(_aten._native_batch_norm_legit.no_stats, (*operands, *node.args[5:]))
        copy.meta = dict(node.meta)
    else:
        copy = graph.node_copy(node, lambda n: copies.get(n, n))
    copy.meta[node_metadata.RECOMPUTED] = True
    return copy
