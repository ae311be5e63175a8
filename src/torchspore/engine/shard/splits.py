"""What graphs that were split tell of it: layouts of Parameters, strategies of operators."""
from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any


def layouts(graphs: Iterable[Any]) -> dict[str, list[Any]]:
    """By name of each Parameter: device matrix, tensor map, shape of a part, field size, whether parts are equal, who shares it."""
    found: dict[str, list[Any]] = {}
    for graph in graphs:
        for name, (matrix, places, shape, _) in (graph.split.spread.parameters if graph.split is not None else {}).items():
            part = [size // _count(matrix, place) for size, place in zip(shape, places)]
            found[name] = [list(matrix), [list(p) if isinstance(p, tuple) else p for p in places], part, 0, True, ""]
    return found


def _count(matrix: tuple[int, ...], place: Any) -> int:
    """Into how many parts an entry of a tensor map cuts."""
    if place == -1:
        return 1
    return prod(matrix[len(matrix) - 1 - one] for one in (place if isinstance(place, tuple) else (place,)))


def strategies(graphs: Iterable[Any]) -> dict[str, list[list[int]]]:
    """By name of each operator that has one its strategy."""
    found: dict[str, list[list[int]]] = {}
    for graph in graphs:
        if graph.split is not None:
            found.update({name: [list(one) for one in strategy] for name, strategy in graph.split.spread.strategies.items()})
    return found
