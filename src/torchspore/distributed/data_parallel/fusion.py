"""Decides which gradients travel in one message.

The rules are MindSpore's: Parameters with different `comm_fusion` numbers are grouped by them (0 travels alone); otherwise
`all_reduce_fusion_config` divides the list of gradients after each of its indexes; otherwise `comm_fusion` sets the bytes of a message.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.context.store import STORE

MEGABYTE = 1 << 20
AUTO = 64
"""Megabytes of a message where `comm_fusion` says 'auto'."""

Buckets = list[list[int]]


@dataclass(frozen=True)
class Rule:
    """The context's rule: split at `positions`, or after `limit` bytes; with neither, each gradient has a separate message."""

    positions: tuple[int, ...] = ()
    limit: int = 0

    def __str__(self) -> str:
        if self.positions:
            return f"cut after the gradients {', '.join(map(str, self.positions))}"
        return f"up to {self.limit / MEGABYTE:g} MB" if self.limit else "each by itself"


def rule(kind: str = "allreduce") -> Rule:
    """Return the context's rule for messages of a kind: 'allreduce', 'allgather' or 'reducescatter'."""
    split_positions = tuple(STORE.get("auto_parallel.all_reduce_fusion_config")) if kind == "allreduce" else ()
    if split_positions:
        return Rule(split_positions)
    if not STORE.get("auto_parallel.comm_fusion.openstate"):
        return Rule()
    config = STORE.get(f"auto_parallel.comm_fusion.{kind}")
    size = config["config"] if config["mode"] == "size" else AUTO
    return Rule(limit=int(size * MEGABYTE))


def of_gradients(numbers: Sequence[int], sizes: Sequence[int], rule: Rule, fusion_type: int = 1) -> Buckets:
    """Return the indexes of gradients that travel together, for the Parameters' `comm_fusion` and the bytes of each gradient."""
    if len(set(numbers)) > 1:
        return _by_number(numbers)
    if rule.positions and fusion_type == 1:
        return _by_position(len(sizes), rule.positions)
    return by_size(sizes, rule.limit)


def _by_number(numbers: Sequence[int]) -> Buckets:
    buckets: dict[Any, list[int]] = {}
    for index, number in enumerate(numbers):
        buckets.setdefault(number if number else ("alone", index), []).append(index)
    return list(buckets.values())


def _by_position(count: int, cuts: Sequence[int]) -> Buckets:
    """Divide the messages after the gradients at these indexes."""
    buckets: Buckets = [[]]
    remaining = list(cuts)
    for index in range(count):
        buckets[-1].append(index)
        if remaining and remaining[0] <= index:
            remaining.pop(0)
            buckets.append([])
    return [bucket for bucket in buckets if bucket]


def by_size(sizes: Sequence[int], limit: int) -> Buckets:
    """Group neighbours until a message would exceed `limit` bytes, starting with the last, whose gradient is computed first."""
    buckets: Buckets = []
    filled = 0
    for index in reversed(range(len(sizes))):
        if not buckets or not limit or filled + sizes[index] > limit:
            buckets.append([])
            filled = 0
        buckets[-1].insert(0, index)
        filled += sizes[index]
    return buckets
