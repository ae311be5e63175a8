"""Strategy and group files of split graphs: written when a graph is compiled, read for an operator with a strategy."""
from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchspore.base.text import message
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.context.strategy_files import op_strategies
from torchspore.distributed import device_count
from torchspore.distributed.shard import strategy_file
from torchspore.distributed.shard.strategy_validation import TensorLayout

if TYPE_CHECKING:
    from torchspore.distributed.shard.sharded_capture import ShardedCapture

_FILES = "auto_parallel.strategy_ckpt_config"
_GROUPS = "auto_parallel.group_ckpt_save_file"


def keep(sharded_capture: ShardedCapture) -> None:
    """Write the files that the context and GROUP_INFO_FILE name: the first process does, and each process whose rank is in the name.

    Raises OSError.
    """
    path, groups = str(STORE.get(f"{_FILES}.save_file")), str(STORE.get(_GROUPS)) or os.environ.get("GROUP_INFO_FILE", "")
    if path and _writes_file(sharded_capture, path):
        strategy_file.write(Path(path), _file(sharded_capture, bool(STORE.get(f"{_FILES}.only_trainable_params"))))
        for member in ("save_file", "only_trainable_params"):
            effects.report(f"{_FILES}.{member}", Outcome.applied(f"strategies of the last graph that was compiled are in {path}"))
    if groups and _writes_file(sharded_capture, groups):
        rank_groups = sorted({ranks for ranks in _sharing(sharded_capture) if len(ranks) > 1})
        names = {f"{len(ranks)}-{'-'.join(map(str, ranks))}": ranks for ranks in rank_groups}
        Path(groups).parent.mkdir(parents=True, exist_ok=True)
        strategy_file.write_groups(Path(groups), names, _ranks_with_equal_parts(sharded_capture))
        effects.report(_GROUPS, Outcome.applied(f"groups of the last graph that was compiled are in {groups}"))


def export(sharded_capture: ShardedCapture, path: str) -> None:
    """Write the strategies and the layouts of trained Parameters to a strategy file. Raises OSError."""
    strategy_file.write(Path(path), _file(sharded_capture, True))


def _writes_file(sharded_capture: ShardedCapture, path: str) -> bool:
    """Return whether this process writes this file: the first does, and one whose rank is in the name, as in 'rank_3/strategy.ckpt'."""
    if sharded_capture.kind != device_count.RANKS or device_count.rank() == 0:
        return True
    return re.search(rf"(?<!\d){device_count.rank()}(?!\d)", "/".join(Path(path).parts[-2:])) is not None


def _file(sharded_capture: ShardedCapture, only_trained: bool) -> strategy_file.StrategyFile:
    layouts = {
        name: strategy_file.stored(TensorLayout(matrix, tensor_map), shape)
        for own, (matrix, tensor_map, shape, is_trained) in sharded_capture.parameters.items() if is_trained or not only_trained
        for name in _of_stages(sharded_capture, own)
    }
    operators = {name: (0, strategy) for name, strategy in sharded_capture.strategies_by_operator().items()}
    return strategy_file.StrategyFile(layouts, operators, 1)


def _of_stages(sharded_capture: ShardedCapture, name: str) -> list[str]:
    """Return the names of a Parameter in a file; with stages those that `merge_pipeline_strategys` writes, such as '1-weight'."""
    if sharded_capture.stages == 1:
        return [name]
    home = sharded_capture.homes.get(name)
    return [f"{stage}-{name}" for stage in (range(sharded_capture.stages) if home is None else (home,))]


def _sharing(sharded_capture: ShardedCapture) -> Iterable[tuple[int, ...]]:
    """Return for each Parameter the processes that store the same part as this one."""
    mine = device_count.rank() % sharded_capture.count
    for matrix, tensor_map, _, _ in sharded_capture.parameters.values():
        layout = TensorLayout(matrix, tensor_map)
        coordinates = layout.coordinates(mine)
        yield tuple(rank for rank in range(prod(matrix)) if layout.coordinates(rank) == coordinates)


def _ranks_with_equal_parts(sharded_capture: ShardedCapture) -> list[int]:
    """Return the processes that store the same parts of all Parameters as this one."""
    found = set(range(sharded_capture.count))
    for ranks in _sharing(sharded_capture):
        found &= set(ranks)
    return sorted(found)




def store_found_strategies(sharded_capture: ShardedCapture) -> None:
    """Write the strategies that a search chose to the file of `set_op_strategy_config('SAVE', ..)`. Raises OSError."""
    path = op_strategies.get("SAVE", "")
    if path and sharded_capture.searched is not None and (sharded_capture.kind != device_count.RANKS or device_count.rank() == 0):
        strategy_file.write(Path(path), _file(sharded_capture, False))
        effects.note("distribution", f"set_op_strategy_config('SAVE'): strategies of the last graph that was searched are in {path}")


def found_layouts() -> dict[str, strategy_file.StoredLayout]:
    """Return the layouts of Parameters by name from the file of `set_op_strategy_config('LOAD', ..)`, or else that of the context.

    Raises ValueError if the file is missing or is not a strategy file.
    """
    path = op_strategies.get("LOAD", "") or file_to_read()
    if not path:
        return {}
    try:
        read = _read(path, Path(path).stat().st_mtime_ns)
    except (OSError, ValueError) as error:
        wrote = f"auto_parallel with the strategies of {path!r}"
        raise ValueError(message(wrote, "a strategy file that is there") + f"\n\n{error}") from None
    return {strategy_file.stage_of(name)[1]: layout for name, layout in read.layouts.items() if not layout.rows}


def tensor_map_of(layout: strategy_file.StoredLayout, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Return the tensor map of a file with one entry for each dimension of this shape; None for a Parameter of another shape.

    A file may write a dimension that several axes of the grid split as several dimensions.
    """
    if layout.nested is not None or len(layout.tensor_map) == len(shape):
        nested = layout.nested or [() if entry == -1 else (entry,) for entry in layout.tensor_map]
        tensor_map = [-1 if not axes else axes[0] if len(axes) == 1 else axes for axes in nested]
        return tuple(tensor_map) if len(tensor_map) == len(shape) else None
    entries, tensor_map = list(zip(layout.tensor_map, layout.tensor_shape or ())), []
    for size in shape:
        axes: list[int] = []
        is_first = True
        while entries and size % entries[0][1] == 0 and (size > 1 or is_first):
            axis, length = entries.pop(0)
            size //= length
            axes += [axis] if axis != -1 else []
            is_first = False
        if size != 1:
            return None
        tensor_map.append(-1 if not axes else axes[0] if len(axes) == 1 else tuple(axes))
    return tuple(tensor_map) if not entries else None


def file_to_read() -> str:
    """Return the strategy file that the context names; '' for none."""
    return str(STORE.get(f"{_FILES}.load_file"))


def loaded(path: str, name: str) -> tuple[Any, ...] | None:
    """Return the strategy of an operator by its name in such files; None if the file has none.

    Raises ValueError if the file is missing or is not a strategy file.
    """
    if not path:
        return None
    try:
        _, stored_strategy = _read(path, Path(path).stat().st_mtime_ns).strategies.get(name, (0, ()))
    except (OSError, ValueError) as error:
        wrote = f"set_auto_parallel_context(strategy_ckpt_config={{'load_file': {path!r}}})"
        raise ValueError(message(wrote, "a strategy file that is there") + f"\n\n{error}") from None
    effects.report(f"{_FILES}.load_file", Outcome.applied(f"operators with a strategy take the one that {path} has"))
    return tuple(map(tuple, stored_strategy)) or None


@functools.lru_cache(maxsize=4)
def _read(path: str, _stamp: int) -> strategy_file.StrategyFile:
    return strategy_file.read(Path(path))
