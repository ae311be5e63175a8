"""How the Parameters of a network that was compiled are cut, by the number of each process."""
from __future__ import annotations

import math
import string
from typing import Any

from torchspore.base.text import message, short
from torchspore.distributed import device_count
from torchspore.distributed.shard import metadata
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.parallel._shard import Layout
from torchspore.names import missing

Facts = dict[str, list[Any]]


def enable_save_strategy_online() -> None:
    """From now on the layouts of Parameters are kept when a graph is compiled that is split over devices."""
    metadata.enable()


def clear_strategy_metadata() -> None:
    """Forgets the layouts of all graphs."""
    metadata.clear()


def get_strategy_metadata(network: Cell, rank_id: int | None = None) -> dict[int, Facts] | None:
    """By the number of each process (or of `rank_id` alone), by name of a Parameter: its Layout, its dtype as text, its whole shape.

    None where nothing was kept of a graph with the network's Parameters. Raises TypeError for what is no Cell, KeyError for a rank that is
    none.
    """
    found = _found("get_strategy_metadata", network)
    if found is None:
        return None
    count = device_count.devices()[0]
    if rank_id is not None and rank_id not in range(count):
        raise KeyError(message(f"get_strategy_metadata(..., rank_id={short(rank_id)})", f"a rank from 0 to {count - 1}"))
    return {rank: _facts(found, rank) for rank in (range(count) if rank_id is None else (rank_id,))}


def get_current_strategy_metadata(network: Cell) -> dict[int, Facts] | None:
    """The same of this process alone, whose number is 0 here."""
    found = _found("get_current_strategy_metadata", network)
    return None if found is None else {0: _facts(found, device_count.rank())}


def _found(call: str, network: Any) -> dict[str, metadata.Lying] | None:
    if not isinstance(network, Cell):
        raise TypeError(message(f"{call}({short(network)})", f"a Cell, got {type(network).__name__}"))
    return metadata.of(network.get_parameters())


def _facts(found: dict[str, metadata.Lying], rank: int) -> Facts:
    return {name: [_layout(one), one.dtype, list(one.shape)] for name, one in found.items() if rank in one.ranks}


def _layout(one: metadata.Lying) -> Layout:
    names = tuple(string.ascii_lowercase[:len(one.matrix)])

    def name(place: Any) -> Any:
        return tuple(map(name, place)) if isinstance(place, tuple) else "None" if place == -1 else names[len(names) - 1 - place]

    return Layout(one.matrix, names, list(one.ranks[:math.prod(one.matrix)]))(*map(name, one.places))


__getattr__ = missing(__name__)
__all__ = ["clear_strategy_metadata", "enable_save_strategy_online", "get_current_strategy_metadata", "get_strategy_metadata"]
