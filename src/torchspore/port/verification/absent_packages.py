"""Placeholders for packages that are not installed: many files import packages that their Cells don't need."""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn


class Placeholder:
    """A name of a package that is not installed. Calls and subclasses raise ModuleNotFoundError."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(self._package)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ModuleNotFoundError(f"No module named {self._package!r}", name=self._package)

    __call__ = __mro_entries__ = __getitem__ = __iter__ = __enter__ = _refuse


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(self.__name__)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads an empty module for the absent packages and what is below them."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if not any(fullname == name or fullname.startswith(name + ".") for name in self.names):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Does nothing: a placeholder has no code."""


@contextmanager
def placeholders(names: set[str]) -> Iterator[None]:
    """Import placeholders for these packages while the block runs."""
    finder = _Finder(names)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name, module in list(sys.modules.items()) if type(module) is _Module]:
            del sys.modules[name]


def absent_package(error: BaseException | None, root: str) -> str | None:
    """Return the package whose absence an import ended with; None for another error, and for a module that is missing below `root`."""
    if not isinstance(error, ModuleNotFoundError) or not error.name or error.name.split(".")[0] in ("mindspore", "torchspore"):
        return None
    first = error.name.split(".")[0]
    try:
        spec = importlib.machinery.PathFinder.find_spec(first, [root])
    except (ImportError, ValueError):
        spec = None
    return error.name if spec is None else None
