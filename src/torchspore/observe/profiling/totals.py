"""Sums over the runs of operators: by name, by type, by phase."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torchspore.observe.profiling.profile_data import Operator


@dataclass
class Total:
    """All runs of one name or type; nanoseconds."""

    name: str
    kind: str
    phase: str
    count: int = 0
    span: int = 0
    least: int = 0
    most: int = 0
    flops: int = 0
    read: int = 0
    device_span: int = 0

    @property
    def mean(self) -> float:
        """Of one run."""
        return self.span / self.count

    def rate(self) -> float:
        """Return floating-point operations per second; 0 if none were counted."""
        return self.flops / (self.span / 1e9) if self.flops and self.span else 0.0


def totals(operators: Iterable[Operator], key: Callable[[Operator], str]) -> list[Total]:
    """The sums of runs of one key, the longest first."""
    totals: dict[str, Total] = {}
    for row in operators:
        name = key(row)
        total = totals.get(name)
        if total is None:
            total = totals[name] = Total(name, row.kind, row.phase, least=row.cost)
        total.count += 1
        total.span += row.cost
        total.least, total.most = min(total.least, row.cost), max(total.most, row.cost)
        total.flops += row.flops
        total.read += row.read
        total.device_span += row.device_span
    return sorted(totals.values(), key=lambda row: -row.span)


def by_name(operators: Iterable[Operator]) -> list[Total]:
    """Sums by the full name."""
    return totals(operators, lambda row: row.name)


def by_kind(operators: Iterable[Operator]) -> list[Total]:
    """Sums by the type."""
    return totals(operators, lambda row: row.kind)
