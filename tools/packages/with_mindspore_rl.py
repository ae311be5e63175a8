"""mindspore_rl 0.7.0: its modules import."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from module_imports import import_all

PACKAGE = "mindspore_rl==0.7.0"
NEEDS = ("gym==0.26.2", "gym-notices", "cloudpickle", "matplotlib", "contourpy", "cycler", "fonttools", "kiwisolver", "pyparsing", "pyyaml",
         "python-dateutil", "six", "astor", "packaging")
Row = tuple[str, str, Callable[[], dict[str, Any] | None]]


def rows(options: dict[str, Any]) -> Iterator[Row]:
    """Yield (name, group, function to run) of each row."""
    del options
    yield "every module", "imports", lambda: import_all("mindspore_rl", ("d4rl is not installed",))
