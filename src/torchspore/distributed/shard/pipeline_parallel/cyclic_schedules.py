"""The order of a stage in the schedules 'seqpipe', 'seqvpp' and 'seqsmartvpp' of MindSpore, for micro batches with unsplit sequences.

Micro batches run in cycles of about as many as there are stages; all micro batches of a cycle take one turn of a stage before the next turn
begins. After a warm-up of forward blocks, one backward block follows each forward block: that of the micro batch that came first, its last
turn first. The three schedules differ in the length of the warm-up, and in their requirements on the pipeline.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from torchspore.base.text import message

NAMES = ("seqpipe", "seqvpp", "seqsmartvpp")
Part = tuple[int, ...]
Block = TypeVar("Block")


def check(name: str, stages: int, turns: int, parts: int) -> None:
    """Raise ValueError for a pipeline that the schedule does not support: 'seqvpp' needs several turns, 'seqsmartvpp' also an even number.
    """
    if name == "seqpipe":
        return
    what = f"pipeline_scheduler={name!r} with {parts} parts over {stages} stages, each of which has {turns} turns"
    if turns < 2:
        raise ValueError(message(what, "stages that have several turns", hint="let the stages of Cells go 0, 1, 0, 1 along the way"))
    if parts < stages:
        raise ValueError(message(what, f"{stages} parts or more", hint="write a greater number into PipelineCell"))
    if name == "seqsmartvpp" and stages % 2:
        raise ValueError(message(what, "an even number of stages"))


def order(
    name: str, stages: int, stage: int, ahead: Mapping[Part, Sequence[Block]], back: Mapping[Part, Sequence[Block]],
) -> Iterator[Block]:
    """Return the order of a stage: `ahead` has its forward blocks by micro batch, `back` the backward blocks, each in the order of turns.
    """
    turns = max(map(len, ahead.values()), default=0)
    cycles = list(_cycles(sorted(ahead), stages))
    forward = [(part, ahead[part][turn]) for cycle in cycles for turn in range(turns) for part in cycle if turn < len(ahead[part])]
    ahead_of_next = 1 if turns == 1 or name == "seqsmartvpp" else 2
    begins = (stages - 1 - stage) * ahead_of_next + (turns - 1) * len(cycles[0]) if cycles else 0
    remaining = {part: deque(part_blocks) for part, part_blocks in back.items()}
    waiting: deque[Part] = deque()
    for number, (part, block) in enumerate(forward):
        yield block
        waiting.append(part)
        if number >= min(begins, len(forward) - 1):
            yield from _next_block(remaining, waiting.popleft())
    for part in waiting:
        yield from _next_block(remaining, part)
    for part_blocks in remaining.values():  # more than came forward: values that only the way back passes on
        yield from part_blocks


def _next_block(remaining: Mapping[Part, deque[Block]], part: Part) -> Iterator[Block]:
    part_blocks = remaining.get(part)
    if part_blocks:
        yield part_blocks.popleft()


def _cycles(parts: Sequence[Part], stages: int) -> Iterator[Sequence[Part]]:
    """Return the micro batches in cycles of as many as there are stages; a remainder makes the first cycles longer."""
    count = max(1, len(parts) // stages)
    lengths = [min(stages, len(parts))] * count
    for number in range(len(parts) - sum(lengths)):
        lengths[number % count] += 1
    at = 0
    for length in lengths:
        yield parts[at:at + length]
        at += length
