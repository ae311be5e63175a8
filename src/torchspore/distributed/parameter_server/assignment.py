"""Which server stores which parameter: dense parameters undivided, by size; tables in equal blocks of rows on all servers."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DENSE, TABLE = "dense", "table"


@dataclass(frozen=True)
class Item:
    """A parameter of an optimizer that servers store."""

    index: int
    """Its index among the optimizer's Parameters."""
    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: str
    """DENSE, or TABLE for a table whose rows are spread over all servers."""
    starts_on_server: bool = False
    """True if a server draws the initial values (`init_in_server`), not worker 0."""
    has_sparse_gradient: bool = False
    """True if the optimizer gets the gradient of a table as rows, as in a training without servers; otherwise as a dense tensor."""
    changes_all_rows: bool = False
    """True if an update may change rows of a table that are not in its gradient: moments move them on."""

    @property
    def elements(self) -> int:
        """The number of elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count


@dataclass(frozen=True)
class Plan:
    """The parameters of one optimizer that servers store."""

    key: str
    optimizer: str
    """The name of the optimizer's class."""
    items: tuple[Item, ...]
    is_divisible: bool = True
    """False if the optimizer's formula needs all its parameters in one process."""

    def describe(self) -> list[list[object]]:
        """Return the facts that must be equal in all processes."""
        items = [
            [item.index, item.name, list(item.shape), item.dtype, item.kind, item.starts_on_server, item.has_sparse_gradient]
            for item in self.items
        ]
        return [[self.key, self.optimizer, self.is_divisible], *items]


def assign(plans: Sequence[Plan], servers: int) -> dict[tuple[str, int], int]:
    """Return the server of each dense parameter, by plan and index: the largest first, each to the server with the least load."""
    units: list[tuple[int, list[tuple[str, int]]]] = []
    for plan in plans:
        dense = [item for item in plan.items if item.kind == DENSE]
        if plan.is_divisible:
            units += [(item.elements, [(plan.key, item.index)]) for item in dense]
        elif dense:
            units.append((sum(item.elements for item in dense), [(plan.key, item.index) for item in dense]))
    load, result = [0] * servers, {}
    for elements, keys in sorted(units, key=lambda unit: -unit[0]):
        server = load.index(min(load))
        load[server] += elements
        result.update(dict.fromkeys(keys, server))
    return result


def rows_of(rows: int, server: int, servers: int) -> tuple[int, int]:
    """Return the first row and the end of a table's rows on a server."""
    return rows * server // servers, rows * (server + 1) // servers
