"""Modules that are imported on first use."""
from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class LazyModule:
    """A proxy for a module, which is imported when one of its attributes is first read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, name)
