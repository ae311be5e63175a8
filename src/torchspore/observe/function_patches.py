"""Replaces functions temporarily, so that an observer of a program costs nothing while it is inactive."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


class Replaced:
    """Patched functions and their originals, until `restore`."""

    def __init__(self) -> None:
        self._plain: list[tuple[Any, str, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._plain)

    def put(self, owner: Any, name: str, make: Callable[[Any], Any], static: bool = False) -> None:
        """Replaces `owner.name` by what `make` gives for it; `static` says that it is a staticmethod."""
        plain = vars(owner)[name]
        replacement = make(plain.__func__ if static else plain)
        self._plain.append((owner, name, plain))
        setattr(owner, name, staticmethod(replacement) if static else replacement)

    def put_everywhere(self, name: str, plain: Any, make: Callable[[Any], Any]) -> None:
        """Replaces a function under its name in each module that has it, from wherever it was imported."""
        for module in [module for module in list(sys.modules.values()) if getattr(module, "__dict__", {}).get(name) is plain]:
            self.put(module, name, make)

    def restore(self) -> None:
        """Restore the original functions, the last one first."""
        while self._plain:
            owner, name, plain = self._plain.pop()
            setattr(owner, name, plain)
