"""Modules that are imported on first use."""
from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from torchspore.base.garbage_collection import import_without_collections
from torchspore.base.interrupts import postponed


class LazyModule:
    """A proxy for a module, which is imported when one of its attributes is first read, set or deleted.

    The import is that of an `import` statement: threads wait for each other, and a failed import is tried again at the next use. Ctrl-C
    waits until it has ended. If the proxy is a global variable of `importer`, the module then takes its position there.
    """

    def __init__(self, name: str, importer: dict[str, Any] | None = None) -> None:
        self.__dict__.update(_name=name, _importer=importer, _module=None)

    def _load(self) -> ModuleType:
        state = self.__dict__
        module: ModuleType | None = state["_module"]
        if module is None:
            with postponed(), import_without_collections():
                module = importlib.import_module(state["_name"])
            if not getattr(module.__spec__, "_initializing", False):    # otherwise the use is part of the module's own import
                state["_module"] = module
                importer, variable = state["_importer"], state["_name"].rpartition(".")[2]
                if importer is not None and importer.get(variable) is self:
                    importer[variable] = module
        return module

    def __getattr__(self, name: str) -> Any:
        if "_name" not in self.__dict__:           # a copy that has no state yet
            raise AttributeError(name)
        return getattr(self._load(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._load(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._load(), name)


def import_lazily(importer: dict[str, Any], *names: str) -> None:
    """Assign proxies of modules to global variables of the caller: `import_lazily(globals(), "package.module")` assigns `module`."""
    importer.update({name.rpartition(".")[2]: LazyModule(name, importer) for name in names})
