"""`set_op_strategy_config`: the file that strategies found by a search are kept in."""
from __future__ import annotations

from pathlib import Path

from torchspore.base.text import message, short
from torchspore.distributed.shard import strategy_io
from torchspore.names import missing


def set_op_strategy_config(mode: str = "SAVE", path: str = "") -> None:
    """Names the .json file, by an absolute path, that strategies found by a search are written to ('SAVE') or read from ('LOAD').

    It acts in auto_parallel: a file holds the strategies of operators and the layouts of Parameters, and these lie so when it is read; the
    rest is searched around them.

    Raises TypeError for a path that is no str, KeyError for another mode or path.
    """
    wrote = f"set_op_strategy_config({short(mode)}, {short(path)})"
    if not isinstance(path, str):
        raise TypeError(message(wrote, f"a str as path, got {type(path).__name__}"))
    if mode not in ("SAVE", "LOAD"):
        raise KeyError(message(wrote, "'SAVE' or 'LOAD'"))
    if not Path(path).is_absolute() or Path(path).suffix != ".json":
        raise KeyError(message(wrote, "an absolute path that ends with .json"))
    strategy_io.op_strategies[mode] = path


def op_strategy_config() -> dict[str, str]:
    """The paths that were named, by mode."""
    return dict(strategy_io.op_strategies)


__getattr__ = missing(__name__)
