"""`set_op_strategy_config`: the file that strategies found by a search are kept in."""
from __future__ import annotations

from pathlib import Path

from torchspore.base.text import message, short
from torchspore.context import effects
from torchspore.names import missing

_kept: dict[str, str] = {}


def set_op_strategy_config(mode: str = "SAVE", path: str = "") -> None:
    """Names the .json file, by an absolute path, that strategies found by a search are written to ('SAVE') or read from ('LOAD').

    No strategies are searched yet, and `explain` says so. Raises TypeError for a path that is no str, KeyError for another mode or path.
    """
    wrote = f"set_op_strategy_config({short(mode)}, {short(path)})"
    if not isinstance(path, str):
        raise TypeError(message(wrote, f"a str as path, got {type(path).__name__}"))
    if mode not in ("SAVE", "LOAD"):
        raise KeyError(message(wrote, "'SAVE' or 'LOAD'"))
    if not Path(path).is_absolute() or Path(path).suffix != ".json":
        raise KeyError(message(wrote, "an absolute path that ends with .json"))
    _kept.update({mode: path})
    effects.note("distribution", f"{wrote}: not built yet: no strategies are searched")


def op_strategy_config() -> dict[str, str]:
    """The paths that were named, by mode."""
    return dict(_kept)


__getattr__ = missing(__name__)
