"""Rematerialization: forward values that the backward pass recomputes instead of keeping them, and their cost."""
from __future__ import annotations

import functools
import operator
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch.fx.node import Node

from torchspore.engine.torch_internals import node_metadata
from torchspore.engine.torch_internals.torch_private import is_operator
from torchspore.graph.fx.aliasing import owners, view_source, writes
from torchspore.graph.passes.cleanup import has_effect
from torchspore.graph.passes.memory.lifetimes import Lifetimes, Storage

_BYTES_PER_SECOND, _FLOPS_PER_SECOND = 1e10, 5e10
"""The assumed memory bandwidth and arithmetic rate."""
_MIN_SECONDS = 2e-6
_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "mv", "dot", "addmv"})


def seconds(node: Node) -> float:
    """Estimate the run time of an operator in seconds; views take none."""
    if node.op != "call_function" or node.target is operator.getitem or view_source(node) is not None:
        return 0.0
    moved = sum(t.numel() * t.element_size() for n in (node, *node.all_input_nodes) for t in _tensors(n.meta.get("val")))
    return _MIN_SECONDS + moved / _BYTES_PER_SECOND + _arithmetic(node) / _FLOPS_PER_SECOND


def _arithmetic(node: Node) -> float:
    """Return the multiplications and additions of products and convolutions; other operators are bound by memory."""
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


COST_SHARE = 0.25
"""The maximum total cost of recomputation under `memory_optimize_level` O1, as a share of the graph's cost."""
_BATCH_SHARE = 0.05
"""The share of the peak that is freed before the lifetimes are computed again."""
_MIN_GAIN = 1.0
"""The least ratio of the freed share of the peak to the added share of the graph's cost."""
_MAX_OPERATORS = 24
"""The maximum number of operators that are recomputed for a value."""
_MIN_SHARE = 1e-3
"""The least share of the peak that recomputing a value must free."""
_aten = torch.ops.aten
_NORM = _aten.native_batch_norm.default


def recompute_values(module: torch.fx.GraphModule, cost_share: float = COST_SHARE) -> tuple[int, float]:
    """Insert recomputations, in place. Return the number of added operators, and their cost as a share of the graph's cost, which is at
    most `cost_share`.
    """
    facts = _Facts(writers_of(module.graph))
    total_seconds = sum(map(facts.seconds, module.graph.nodes)) or 1.0
    spent, count, share = 0.0, 0, _BATCH_SHARE
    rejected: set[Node] = set()
    lifetimes = Lifetimes(module)
    timeline = lifetimes.timeline()
    while timeline:
        peak = max(timeline)
        budget_left = cost_share * total_seconds - spent
        candidates = [
            candidate
            for candidate in _candidates(lifetimes, facts, timeline.index(peak), peak, rejected, budget_left)
            if candidate.freed_bytes / peak >= _MIN_GAIN * candidate.seconds / total_seconds
        ]
        batch = _batch(candidates, share * peak, budget_left)
        if not batch:
            break
        insertions = [_Insertion(module.graph, lifetimes, candidate) for candidate in batch]
        after = Lifetimes(module)
        next_timeline = after.timeline()
        if max(next_timeline) > peak:
            for insertion in reversed(insertions):
                insertion.undo()
            # The batch raises the peak. Smaller batches show which candidate raises it.
            rejected |= {batch[0].storage.node} if len(batch) == 1 else set()
            share = 0.0
            continue
        spent, count = spent + sum(candidate.seconds for candidate in batch), count + sum(len(candidate.chain) for candidate in batch)
        lifetimes, timeline, share = after, next_timeline, _BATCH_SHARE
    return count, spent / total_seconds


@dataclass
class Candidate:
    """A value that can be recomputed before the operator at index `back`: the operators in order, the storages that they read (by id),
    the freed bytes and the cost in seconds.
    """

    storage: Storage
    back: int
    targets: list[Node]
    chain: list[Node] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)
    freed_bytes: int = 0
    seconds: float = 0.0


class _Facts:
    """What insertions of recomputations do not change: the operators that write into the memory of a value, the cost of an operator, and
    whether it may run twice. A recomputation writes nothing, and its results have the shapes of the values that they replace.
    """

    def __init__(self, writers: dict[Node, list[Node]]) -> None:
        self.writers = writers
        self.seconds, self.can_rerun = functools.cache(seconds), functools.cache(_can_rerun)


def _candidates(lifetimes: Lifetimes, facts: _Facts, at: int, peak: int, rejected: set[Node], budget: float) -> list[Candidate]:
    """Return the values whose recomputation frees memory at the operator `at`, sorted by the cost for each freed byte."""
    candidates = []
    for storage in lifetimes.storages:
        if storage.size < _MIN_SHARE * peak or storage.node in rejected or node_metadata.RECOMPUTED in storage.node.meta:
            continue
        back = _next_use(storage, at)
        if back is not None:
            candidate = _Recomputation(lifetimes, facts, storage, back, at).candidate()
            if candidate is not None and candidate.seconds <= budget and candidate.freed_bytes >= _MIN_SHARE * peak:
                candidates.append(candidate)
    return sorted(candidates, key=lambda candidate: candidate.seconds / candidate.freed_bytes)


def _batch(candidates: list[Candidate], goal: float, budget: float) -> list[Candidate]:
    """Return the first candidates that together free `goal` bytes, at least one. No candidate reads a value that another frees."""
    chosen: list[Candidate] = []
    freed: set[int] = set()
    read: set[int] = set()
    for candidate in candidates:
        if id(candidate.storage) in read or candidate.reads & freed or candidate.seconds > budget:
            continue
        chosen.append(candidate)
        freed.add(id(candidate.storage))
        read |= candidate.reads
        goal, budget = goal - candidate.freed_bytes, budget - candidate.seconds
        if goal <= 0:
            break
    return chosen


def _next_use(storage: Storage, at: int) -> int | None:
    """Return the index of the next use after the operator `at`; None if this operator uses the value, or if it does not exist there."""
    if storage.created_at >= at or storage.freed_at <= at:
        return None
    index = bisect_right(storage.uses, at)
    return None if index and storage.uses[index - 1] == at else storage.uses[index]


def writers_of(graph: torch.fx.Graph) -> dict[Node, list[Node]]:
    """Return for each value the operators that write into its memory, or that may, in graph order: branches, loops, unknown functions."""
    owner = owners(graph)
    writers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for item in _written_by(node):
            writers.setdefault(owner[item], []).append(node)
    return {node: writers[owner[node]] for node in graph.nodes if owner[node] in writers}


def _written_by(node: Node) -> list[Node]:
    if node.op != "call_function" or node.target is operator.getitem or node.meta.get(node_metadata.IS_KERNEL):
        return []
    return writes(node) if is_operator(node.target) else node.all_input_nodes


class _Impossible(Exception):
    """The value cannot be recomputed at this position."""


class _Recomputation:
    """The operators that recompute a value: its operator, preceded by those of its inputs that are freed earlier."""

    def __init__(self, lives: Lifetimes, facts: _Facts, storage: Storage, back: int, at: int) -> None:
        self._lives, self._facts, self._storage, self._back, self._at = lives, facts, storage, back, at
        self._chain: dict[Node, None] = {}
        self._kept_longer: dict[int, Storage] = {}
        self._reads: set[int] = set()

    def candidate(self) -> Candidate | None:
        """Return the candidate; None if recomputation is impossible."""
        if any(n in self._facts.writers for n in self._storage.views):
            return None                    # recomputation would lose the write
        targets = [n for n in self._storage.views if any(self._lives.index_of[user] >= self._back for user in n.users)]
        try:
            for target in targets:
                self._make_available(target)
        except _Impossible:
            return None
        longer = sum(s.size for s in self._kept_longer.values() if s.freed_at < self._at)
        price = sum(self._facts.seconds(node) for node in self._chain)
        frees = self._storage.size - longer
        return Candidate(self._storage, self._back, targets, list(self._chain), self._reads, frees, max(price, 1e-9))

    def _make_available(self, node: Node) -> None:
        """Make the value of a node available at `back`: it exists there, is recomputed, or is kept longer. Raises _Impossible."""
        if node in self._chain or self._is_available(node):
            return
        if node in self._facts.writers or not self._facts.can_rerun(node):       # a second run would lose the writes
            self._keep_longer(node)
            return
        if len(self._chain) >= _MAX_OPERATORS:
            raise _Impossible
        for item in _inputs_read(node):
            self._make_available(item)
            writers = self._facts.writers.get(item, ())
            if any(self._lives.index_of[node] < self._lives.index_of[writer] < self._back for writer in writers):
                raise _Impossible
        self._chain[node] = None

    def _is_available(self, node: Node) -> bool:
        if node.op in ("placeholder", "get_attr"):
            return True
        storage = self._lives.storage_of.get(node)
        if storage is None or storage is self._storage or storage.freed_at < self._back:
            return False
        self._reads.add(id(storage))
        return True

    def _keep_longer(self, node: Node) -> None:
        storage = self._lives.storage_of.get(node)
        if storage is None or storage is self._storage:
            raise _Impossible
        self._kept_longer[id(storage)] = storage
        self._reads.add(id(storage))


def _can_rerun(node: Node) -> bool:
    """Return whether the operator may run twice with equal results: a known operator without writes and random numbers."""
    if node.target is operator.getitem:
        return _can_rerun(node.args[0])  # type: ignore[arg-type]
    if node.op != "call_function" or not is_operator(node.target) or node.target.namespace != "aten":
        return False
    return not has_effect(node) or _is_training_norm(node)


def _is_training_norm(node: Node) -> bool:
    return node.target is _NORM and bool(node.args[5])


def _inputs_read(node: Node) -> Iterator[Node]:
    """Yield the inputs that a second run of the operator reads. A batch norm in training does not read its running statistics."""
    yield from (n for n in node.args[:3] if isinstance(n, Node)) if _is_training_norm(node) else node.all_input_nodes


class _Insertion:
    """An inserted recomputation of a value."""

    def __init__(self, graph: torch.fx.Graph, lives: Lifetimes, candidate: Candidate) -> None:
        self._copies: dict[Node, Node] = {}
        self._replaced: list[tuple[Node, Node, Node]] = []
        with graph.inserting_before(lives.nodes[candidate.back]):
            for node in candidate.chain:
                self._copies[node] = _copy_node(graph, node, self._copies)
        for target in candidate.targets:
            for user in list(target.users):
                if user not in self._copies.values() and lives.index_of[user] >= candidate.back:
                    user.replace_input_with(target, self._copies[target])
                    self._replaced.append((user, target, self._copies[target]))

    def undo(self) -> None:
        """Remove the inserted nodes."""
        for user, target, copy in self._replaced:
            user.replace_input_with(copy, target)
        for copy in reversed(self._copies.values()):
            copy.graph.erase_node(copy)


def _copy_node(graph: torch.fx.Graph, node: Node, copies: dict[Node, Node]) -> Node:
    if _is_training_norm(node):
        operands = [copies.get(n, n) if isinstance(n, Node) else n for n in node.args[:3]]
        copy = graph.call_function(_aten._native_batch_norm_legit.no_stats, (*operands, *node.args[5:]))
        copy.meta = dict(node.meta)
    else:
        copy = graph.node_copy(node, lambda n: copies.get(n, n))
    copy.meta[node_metadata.RECOMPUTED] = True
    return copy
