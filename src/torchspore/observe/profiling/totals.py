"""Sums over the runs of operators: by name, by type, by phase."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torchspore.observe.profiling.record import Operator


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
        """Floating-point operations a second; 0 where none were counted."""
        return self.flops / (self.span / 1e9) if self.flops and self.span else 0.0


def totals(operators: Iterable[Operator], key: Callable[[Operator], str]) -> list[Total]:
    """The sums of runs of one key, the longest first."""
    found: dict[str, Total] = {}
    for row in operators:
        name = key(row)
        own = found.get(name)
        if own is None:
            own = found[name] = Total(name, row.kind, row.phase, least=row.cost)
        own.count += 1
        own.span += row.cost
        own.least, own.most = min(own.least, row.cost), max(own.most, row.cost)
        own.flops += row.flops
        own.read += row.read
        own.device_span += row.device_span
    return sorted(found.values(), key=lambda row: -row.span)


def by_name(operators: Iterable[Operator]) -> list[Total]:
    """Sums by the full name."""
    return totals(operators, lambda row: row.name)


def by_kind(operators: Iterable[Operator]) -> list[Total]:
    """Sums by the type."""
    return totals(operators, lambda row: row.kind)
