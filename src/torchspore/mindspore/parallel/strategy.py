"""The cuts of a compiled network's Parameters, by rank."""
from __future__ import annotations

import math
import string
from typing import Any

from torchspore.base.text import message, short
from torchspore.distributed import device_count
from torchspore.distributed.shard import metadata
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.parallel._shard import Layout
from torchspore.public_names import missing

Facts = dict[str, list[Any]]


def enable_save_strategy_online() -> None:
    """Starts storing the layouts of Parameters when a split graph is compiled."""
    metadata.enable()


def clear_strategy_metadata() -> None:
    """Clears the layouts of all graphs."""
    metadata.clear()


def get_strategy_metadata(network: Cell, rank_id: int | None = None) -> dict[int, Facts] | None:
    """Returns, by rank (or only for `rank_id`) and by a Parameter's name, its Layout, its dtype as text, and its full shape.

    None if no graph with the network's Parameters was stored. Raises TypeError unless the network is a Cell, KeyError for an invalid rank.
    """
    layouts = _layouts_of("get_strategy_metadata", network)
    if layouts is None:
        return None
    count = device_count.devices()[0]
    if rank_id is not None and rank_id not in range(count):
        raise KeyError(message(f"get_strategy_metadata(..., rank_id={short(rank_id)})", f"a rank from 0 to {count - 1}"))
    return {rank: _facts(layouts, rank) for rank in (range(count) if rank_id is None else (rank_id,))}


def get_current_strategy_metadata(network: Cell) -> dict[int, Facts] | None:
    """Returns the same for this process, whose number is 0 here."""
    layouts = _layouts_of("get_current_strategy_metadata", network)
    return None if layouts is None else {0: _facts(layouts, device_count.rank())}


def _layouts_of(call: str, network: Any) -> dict[str, metadata.Lying] | None:
    if not isinstance(network, Cell):
        raise TypeError(message(f"{call}({short(network)})", f"a Cell, got {type(network).__name__}"))
    return metadata.of(network.get_parameters())


def _facts(layouts: dict[str, metadata.Lying], rank: int) -> Facts:
    return {name: [_layout(entry), entry.dtype, list(entry.shape)] for name, entry in layouts.items() if rank in entry.ranks}


def _layout(entry: metadata.Lying) -> Layout:
    names = tuple(string.ascii_lowercase[:len(entry.matrix)])

    def name(axis: Any) -> Any:
        return tuple(map(name, axis)) if isinstance(axis, tuple) else "None" if axis == -1 else names[len(names) - 1 - axis]

    return Layout(entry.matrix, names, list(entry.ranks[:math.prod(entry.matrix)]))(*map(name, entry.tensor_map))


__getattr__ = missing(__name__)
__all__ = ["clear_strategy_metadata", "enable_save_strategy_online", "get_current_strategy_metadata", "get_strategy_metadata"]
