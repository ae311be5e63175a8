"""`set_op_strategy_config`: the file for the strategies of a search."""
from __future__ import annotations

from pathlib import Path

from torchspore.base.text import message, short
from torchspore.context.strategy_files import op_strategies
from torchspore.public_names import missing


def set_op_strategy_config(mode: str = "SAVE", path: str = "") -> None:
    """Sets the .json file, by an absolute path, to which a search's strategies are written ('SAVE') or from which they are read ('LOAD').

    It acts in auto_parallel: a file has the strategies of operators and the layouts of Parameters. When it is read, these are fixed, and
    only the others are searched.

    Raises TypeError unless the path is a str, KeyError for another mode or path.
    """
    call_text = f"set_op_strategy_config({short(mode)}, {short(path)})"
    if not isinstance(path, str):
        raise TypeError(message(call_text, f"a str as path, got {type(path).__name__}"))
    if mode not in ("SAVE", "LOAD"):
        raise KeyError(message(call_text, "'SAVE' or 'LOAD'"))
    if not Path(path).is_absolute() or Path(path).suffix != ".json":
        raise KeyError(message(call_text, "an absolute path that ends with .json"))
    op_strategies.clear()                      # as in MindSpore, one mode at a time
    op_strategies[mode] = path


def op_strategy_config() -> dict[str, str]:
    """The paths by mode."""
    return dict(op_strategies)


__getattr__ = missing(__name__)
