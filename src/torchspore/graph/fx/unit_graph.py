"""Groups of nodes that are to run as one, and whether two groups may become one."""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch.fx.node import Node


class UnitGraph:
    """The nodes of a graph in units, each a node or a group of nodes; `before` lists for each node those that must run earlier."""

    def __init__(self, before: Mapping[Node, list[Node]], groups: Iterable[Iterable[Node]] = ()) -> None:
        self.unit_of = {node: index for index, node in enumerate(before)}
        for group in groups:
            nodes = list(group)
            for node in nodes:
                self.unit_of[node] = self.unit_of[nodes[0]]
        self._needs: dict[int, set[int]] = {unit: set() for unit in self.unit_of.values()}
        for node, needed in before.items():
            unit = self.unit_of[node]
            self._needs[unit].update(self.unit_of[other] for other in needed)
            self._needs[unit].discard(unit)
        self._replaced: dict[int, int] = {}

    def are_independent(self, first: Node, second: Node) -> bool:
        """Return whether neither of the units of two nodes waits for the other, directly or through others."""
        a, b = self._current(self.unit_of[first]), self._current(self.unit_of[second])
        return a != b and not self._waits(a, b) and not self._waits(b, a)

    def join(self, first: Node, second: Node) -> None:
        """Merge the units of two nodes, which are independent."""
        a, b = self._current(self.unit_of[first]), self._current(self.unit_of[second])
        self._needs[a] |= self._needs.pop(b)
        self._replaced[b] = a

    def _current(self, unit: int) -> int:
        while unit in self._replaced:
            unit = self._replaced[unit]
        return unit

    def _waits(self, unit: int, other: int) -> bool:
        waiting, seen = [unit], {unit}
        while waiting:
            for needed in self._needs[waiting.pop()]:
                current = self._current(needed)
                if current == other:
                    return True
                if current not in seen:
                    seen.add(current)
                    waiting.append(current)
        return False
