"""The function that receives each row that a data pipeline gives to the program; a parameter server job looks into the next row."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = tuple[Any, ...]


class _RowListener:
    """`receive(row, peek)` is called for each row; `peek()` returns the pipeline's next row if it is in memory already, else None."""

    def __init__(self) -> None:
        self.receive: Callable[[Row, Callable[[], Row | None]], None] | None = None


ROW_LISTENER = _RowListener()
