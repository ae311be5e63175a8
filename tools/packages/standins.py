"""Stand-ins of modules of mindspore.dataset that torchspore lacks, so that packages which import them can be imported.

A program can name and subclass a class of a stand-in, but not use it. Modules that torchspore has are not replaced.
"""
from __future__ import annotations

import importlib
import sys
import types
from typing import Any

LACKING = (
    "mindspore.dataset.text", "mindspore.dataset.text.transforms", "mindspore.dataset.text.utils", "mindspore.dataset.audio",
    "mindspore.dataset.audio.utils", "mindspore.dataset.core.datatypes", "mindspore._c_dataengine",
)
CLASSES = ("TextBaseDataset",)


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        cls = _absent(f"{self.__name__}.{name}")
        setattr(self, name, cls)
        return cls


def _absent(path: str) -> type:
    def refuse(*_: Any, **__: Any) -> None:
        raise NotImplementedError(f"{path} is not in torchspore yet.")

    return type(path.rpartition(".")[2], (), {"__init__": refuse, "PY": "PY", "C": "C"})


def install_stand_ins() -> list[str]:
    """Install the stand-ins of the absent modules and classes. Return their names."""
    names = []
    for path in LACKING:
        try:
            importlib.import_module(path)
        except ImportError:
            module = _Module(path)
            module.__path__ = []  # type: ignore[attr-defined]
            sys.modules[path] = module
            parent, _, name = path.rpartition(".")
            setattr(importlib.import_module(parent), name, module)
            names.append(path)
    dataset = importlib.import_module("mindspore.dataset")
    for name in CLASSES:
        if not hasattr(dataset, name):
            setattr(dataset, name, _absent(f"mindspore.dataset.{name}"))
            names.append(f"mindspore.dataset.{name}")
    return names
