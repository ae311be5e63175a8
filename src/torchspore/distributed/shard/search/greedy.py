"""A quick search along one axis: the most expensive operators choose first, the others follow; then each choice is revised once."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SWEEPS = 3


def solve(unary: Sequence[np.ndarray], edges: Sequence[tuple[int, int, np.ndarray]], order: Sequence[int]) -> list[int]:
    """Return a value for each variable, chosen in this order by its cost alone and with neighbours that have chosen."""
    neighbours: list[list[tuple[int, np.ndarray]]] = [[] for _ in unary]
    for first, other, costs in edges:
        if first != other:
            neighbours[first].append((other, costs))
            neighbours[other].append((first, costs.T))
    values = [-1] * len(unary)
    for _ in range(1 + SWEEPS):
        changed = False
        for at in order:
            total = unary[at].copy()
            for other, costs in neighbours[at]:
                total += costs[:, values[other]] if values[other] >= 0 else costs.min(1)
            best = int(total.argmin())
            if values[at] < 0 or total[best] < total[values[at]]:
                values[at], changed = best, True
        if not changed:
            break
    return values
