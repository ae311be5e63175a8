"""Modules that are imported when they are first used."""
from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class Later:
    """Stands for a module, which is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = importlib.import_module(self._name)
        return getattr(self._module, name)
