"""Hooks that print: the values themselves, or only their dtypes and shapes."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore.dataset.debug.debug_hook import DebugHook


class PrintDataHook(DebugHook):
    """Prints the values."""

    def compute(self, *args: Any) -> None:
        for column, value in enumerate(args[0]):
            print(f"  column {column}: {value}")


class PrintMetaDataHook(DebugHook):
    """Prints the dtypes and shapes."""

    def compute(self, *args: Any) -> None:
        for column, value in enumerate(args[0]):
            description = f"{value.dtype} {list(value.shape)}" if hasattr(value, "dtype") else f"{type(value).__name__}"
            print(f"  column {column}: {description}")
