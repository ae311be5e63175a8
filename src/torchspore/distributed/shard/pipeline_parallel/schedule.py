"""The order in which stages compute micro batches, found by simulating the schedule with a clock.

A *block* is the work of one stage on one micro batch in one direction: forward, backward, or the part of the backward work that only the
stage's Parameters need. When a stage is free, it takes one of the blocks that may run, as its schedule says.
"""
from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from torchspore.base.text import list_choices, message
from torchspore.distributed.shard.pipeline_parallel import cyclic_schedules

FORWARD, BACKWARD, WEIGHTS = 0, 1, 2
SCHEDULES = ("gpipe", "1f1b", "zero_bubble_v", *cyclic_schedules.NAMES)
_COST = {FORWARD: 1.0, BACKWARD: 2.0, WEIGHTS: 2.0}
"""The time of an undivided backward half; each part of a divided one takes half of it."""


@dataclass(frozen=True)
class Block:
    """The work of one stage on one micro batch: `hop` counts the transfers before it."""

    stage: int
    hop: int
    part: tuple[int, ...]
    kind: int


@dataclass
class Schedule:
    """When each block starts, in units of one forward block, and the cost of the order."""

    starts: dict[Block, float]
    idle: float
    """The share of the time in which stages wait, if all blocks of one kind take equally long and a backward one twice as long."""
    in_flight: list[int]
    """For each stage how many forward blocks it holds values of at most."""


class _Stage:
    """A stage: the blocks that it has not run, and the forward blocks whose values it stores."""

    def __init__(self, number: int, blocks: Iterable[Block]) -> None:
        self.number, self.free = number, 0.0
        self.ready: dict[Block, float] = {}
        self.begun: set[Block] = set()
        self.most = 0
        blocks = list(blocks)
        self.fillers = {block.part for block in blocks if block.kind == WEIGHTS}
        self.remaining = Counter((block.part, block.kind) for block in blocks)
        self.forward = sum(count for (_, kind), count in self.remaining.items() if kind == FORWARD)

    def take(self, block: Block, is_interleaved: bool) -> None:
        """Record that a block runs."""
        del self.ready[block]
        self.remaining[block.part, block.kind] -= 1
        if block.kind == FORWARD:
            self.forward -= 1
            self.begun.add(block)
            self.most = max(self.most, len(self.begun))
        elif block.kind != (WEIGHTS if block.part in self.fillers else BACKWARD):
            pass                                               # gradients of weights are still to be computed of the same values
        elif not self.remaining[block.part, block.kind]:
            self.begun = {other for other in self.begun if other.part != block.part}
        elif is_interleaved:
            last = max((other.hop for other in self.begun if other.part == block.part), default=-1)
            self.begun.discard(Block(self.number, last, block.part, FORWARD))


def scheduled(blocks: Mapping[Block, Iterable[Block]], stages: int, name: str, is_interleaved: bool) -> Schedule:
    """Return the start of each block, given the blocks that each waits for.

    'gpipe': all forward blocks first. '1f1b': a backward block as soon as one is ready, and no more forward blocks than the following
    stages can hold; if stages run several segments each, in the order of "Efficient Large-Scale Language Model Training on GPU Clusters"
    (Narayanan et al., 2021). 'zero_bubble_v': the same, with gaps filled by work that only gradients of the stage's Parameters need ("Zero
    Bubble Pipeline Parallelism", Qi et al., 2023). 'seqpipe' and its variants: see `cyclic_schedules`. Raises ValueError for another name,
    and for a pipeline that the schedule does not support.
    """
    if name not in SCHEDULES:
        raise ValueError(message(f"pipeline_scheduler={name!r}", list_choices(SCHEDULES)))
    return _Clock(blocks, stages, name, is_interleaved).run()


def _by_part(blocks: Iterable[Block], kind: int) -> dict[tuple[int, ...], list[Block]]:
    """Return the blocks of a kind by their micro batch, in the order of turns."""
    ready_blocks: dict[tuple[int, ...], list[Block]] = {}
    for block in sorted(blocks, key=lambda block: block.hop):
        if block.kind == kind:
            ready_blocks.setdefault(block.part, []).append(block)
    return ready_blocks


class _Clock:
    def __init__(self, blocks: Mapping[Block, Iterable[Block]], stages: int, name: str, is_interleaved: bool) -> None:
        self.needed = {block: set(needed) - {block} for block, needed in blocks.items()}
        self.waits = {block: len(needed) for block, needed in self.needed.items()}
        self.followers: dict[Block, list[Block]] = {block: [] for block in blocks}
        for block, needed in self.needed.items():
            for need in needed:
                self.followers[need].append(block)
        self.name, self.count, self.is_interleaved = name, stages, is_interleaved
        blocks_by_stage: list[list[Block]] = [[] for _ in range(stages)]
        for block in blocks:
            blocks_by_stage[block.stage].append(block)
        self.stages = [_Stage(number, mine) for number, mine in enumerate(blocks_by_stage)]
        self.offers: list[tuple[float, Block] | None] = [None] * stages
        self.changed = set(range(stages))
        self.turns = [len({block.hop for block in mine if block.kind == FORWARD}) for mine in blocks_by_stage]
        self.parts = {part: at for at, part in enumerate(sorted({block.part for block in blocks}))}
        kinds = {block.kind for block in blocks}
        self.trains = BACKWARD in kinds
        parted = {(block.stage, block.part) for block in blocks if block.kind == WEIGHTS}
        unsplit = parted - {(block.stage, block.part) for block in blocks if block.kind == BACKWARD}
        self.cost = {block: 1.0 if (block.stage, block.part) in parted - unsplit else _COST[block.kind] for block in blocks}
        self.turned = [self._turns(number, mine) for number, mine in enumerate(blocks_by_stage)]

    def _turns(self, stage: int, mine: list[Block]) -> deque[Block]:
        """Return the order of a stage that takes several turns at each micro batch; empty if the stage takes whatever is ready.

        Forward blocks until the first micro batch returns, then forward and backward blocks alternate.
        """
        if self.trains and self.name in cyclic_schedules.NAMES:
            cyclic_schedules.check(self.name, self.count, self.turns[stage], len(self.parts))
            return deque(cyclic_schedules.order(self.name, self.count, stage, _by_part(mine, FORWARD), _by_part(mine, BACKWARD)))
        if not self.is_interleaved or self.turns[stage] < 2 or self.name != "1f1b" or not self.trains:
            return deque()
        ahead, back = ([block for block in sorted(mine, key=self._rank) if block.kind == kind] for kind in (FORWARD, BACKWARD))
        first = min(len(ahead), self._room(stage) - 1)
        order = ahead[:first]
        for forward, backward in zip_longest(ahead[first:], back):
            order += [block for block in (forward, backward) if block is not None]
        return deque(order)

    def run(self) -> Schedule:
        starts: dict[Block, float] = {}
        for block, count in self.waits.items():
            if not count:
                self.stages[block.stage].ready[block] = 0.0
        while len(starts) < len(self.waits):
            block, start = self._next()
            stage = self.stages[block.stage]
            stage.take(block, self.is_interleaved)
            if block in self.turned[block.stage]:
                self.turned[block.stage].remove(block)
            starts[block] = start
            self.changed.add(block.stage)
            stage.free = start + self.cost[block]
            for later in self.followers[block]:
                self.waits[later] -= 1
                if not self.waits[later]:
                    self.changed.add(later.stage)
                    self.stages[later.stage].ready[later] = max(starts[need] + self.cost[need] for need in self.needed[later])
        longest = max((stage.free for stage in self.stages), default=0.0)
        busy = sum(self.cost[block] for block in starts)
        return Schedule(starts, 1 - busy / (longest * self.count) if longest else 0.0, [stage.most for stage in self.stages])

    def _next(self) -> tuple[Block, float]:
        """Return the block that starts first, and its time: each stage offers the block that its schedule prefers when it is free."""
        for number in self.changed:
            self.offers[number] = self._best(self.stages[number], is_strict=True)
        self.changed.clear()
        offers = [offer for offer in self.offers if offer is not None]
        if not offers:                                          # no stage may hold more: the first one that can continues
            offers = [offer for offer in (self._best(stage, is_strict=False) for stage in self.stages) if offer is not None]
        start, block = min(offers, key=lambda offer: (offer[0], offer[1].stage))
        return block, start

    def _best(self, stage: _Stage, is_strict: bool) -> tuple[float, Block] | None:
        """Return the next block that a stage would run, and its time."""
        ready = {block: max(stage.free, at) for block, at in stage.ready.items() if not is_strict or self._may(stage, block)}
        if not ready:
            return None
        first = min(ready.values())
        return first, min((block for block, at in ready.items() if at == first), key=self._rank)

    def _may(self, stage: _Stage, block: Block) -> bool:
        """Return whether the schedule lets a block begin now."""
        if self.turned[stage.number]:
            return block == self.turned[stage.number][0]
        if block.kind == FORWARD and self.name != "gpipe" and self.trains:
            return len(stage.begun) < self._room(stage.number)
        return self.name != "gpipe" or block.kind == FORWARD or not stage.forward

    def _room(self, stage: int) -> int:
        """Return how many forward blocks a stage may hold."""
        turns = self.turns[stage] if self.is_interleaved else 1
        if self.stages[stage].fillers and turns == 1:
            return self.count                                  # as many as the first stage holds without fillers: no device needs more
        if turns > 1:
            return 2 * (self.count - stage - 1) + (turns - 1) * self.count + 1
        return max(1, self.count - stage) * max(1, self.turns[stage])

    def _rank(self, block: Block) -> tuple[float, ...]:
        """Return the key by which a stage chooses among ready blocks: the smallest wins."""
        part = self.parts[block.part]
        kind = (1, 0, 2)[block.kind]                           # backward, forward, and what fills gaps
        if self.is_interleaved and block.kind != WEIGHTS:
            return (kind, part // self.count, block.hop, part % self.count)
        return (kind, part, block.hop)
