"""Strategy and group files of graphs that are split: written when one is compiled, read when an operator with a strategy is met."""
from __future__ import annotations

import functools
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchspore.base.text import message
from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE
from torchspore.engine.shard import devices, strategy_file
from torchspore.engine.shard.strategies import TensorLayout

if TYPE_CHECKING:
    from torchspore.engine.shard.spread import Spread

_FILES = "auto_parallel.strategy_ckpt_config"
_GROUPS = "auto_parallel.group_ckpt_save_file"


def keep(spread: Spread) -> None:
    """Writes the files that the context names, from the first process. Raises OSError."""
    if spread.kind == devices.RANKS and devices.rank() != 0:
        return
    path, groups = str(STORE.get(f"{_FILES}.save_file")), str(STORE.get(_GROUPS))
    if path:
        strategy_file.write(Path(path), _file(spread, bool(STORE.get(f"{_FILES}.only_trainable_params"))))
        for member in ("save_file", "only_trainable_params"):
            effects.report(f"{_FILES}.{member}", Outcome.applied(f"strategies of the last graph that was compiled are in {path}"))
    if groups:
        made = sorted({ranks for ranks in _sharing(spread) if len(ranks) > 1})
        names = {f"{len(ranks)}-{'-'.join(map(str, ranks))}": ranks for ranks in made}
        strategy_file.write_groups(Path(groups), names, _same(spread))
        effects.report(_GROUPS, Outcome.applied(f"groups of the last graph that was compiled are in {groups}"))


def _file(spread: Spread, only_trained: bool) -> strategy_file.StrategyFile:
    layouts = {
        name: strategy_file.stored(TensorLayout(matrix, places), shape)
        for name, (matrix, places, shape, is_trained) in spread.parameters.items() if is_trained or not only_trained
    }
    operators = {name: (0, strategy) for name, strategy in spread.told().items()}
    return strategy_file.StrategyFile(layouts, operators, 1)


def _sharing(spread: Spread) -> Iterable[tuple[int, ...]]:
    """For each Parameter the processes that hold the same part of it as this one."""
    mine = devices.rank() % spread.count
    for matrix, places, _, _ in spread.parameters.values():
        layout = TensorLayout(matrix, places)
        own = layout.coordinates(mine)
        yield tuple(rank for rank in range(prod(matrix)) if layout.coordinates(rank) == own)


def _same(spread: Spread) -> list[int]:
    """The processes that hold the same of all Parameters as this one."""
    found = set(range(spread.count))
    for ranks in _sharing(spread):
        found &= set(ranks)
    return sorted(found)


def file_to_read() -> str:
    """The strategy file that the context names; '' for none."""
    return str(STORE.get(f"{_FILES}.load_file"))


def loaded(path: str, name: str) -> tuple[Any, ...] | None:
    """The strategy that a file has for an operator, by the name that such files give it; None where it has none.

    Raises ValueError where the file is no strategy file or not there.
    """
    if not path:
        return None
    try:
        stamp = Path(path).stat().st_mtime_ns
        found = _read(path, stamp).get(name)
    except (OSError, ValueError) as error:
        wrote = f"set_auto_parallel_context(strategy_ckpt_config={{'load_file': {path!r}}})"
        raise ValueError(message(wrote, "a strategy file that is there") + f"\n\n{error}") from None
    effects.report(f"{_FILES}.load_file", Outcome.applied(f"operators with a strategy take the one that {path} has"))
    return found


@functools.lru_cache(maxsize=4)
def _read(path: str, _stamp: int) -> dict[str, tuple[Any, ...]]:
    file = strategy_file.read(Path(path))
    return {name: tuple(map(tuple, strategy)) for name, (_, strategy) in file.strategies.items() if strategy}
