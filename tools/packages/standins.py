"""Stands in for modules of mindspore.dataset that torchspore lacks yet, so that packages which import them at their top can be imported.

What stands in can only be named and subclassed; nothing is put where torchspore has a module. (Text and audio come with their own issue.)
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
        made = _absent(f"{self.__name__}.{name}")
        setattr(self, name, made)
        return made


def _absent(path: str) -> type:
    def refuse(*_: Any, **__: Any) -> None:
        raise NotImplementedError(f"{path} is not in torchspore yet.")

    return type(path.rpartition(".")[2], (), {"__init__": refuse, "PY": "PY", "C": "C"})


def put() -> list[str]:
    """Puts them where they are needed; gives their names."""
    found = []
    for path in LACKING:
        try:
            importlib.import_module(path)
        except ImportError:
            module = _Module(path)
            module.__path__ = []  # type: ignore[attr-defined]
            sys.modules[path] = module
            parent, _, name = path.rpartition(".")
            setattr(importlib.import_module(parent), name, module)
            found.append(path)
    dataset = importlib.import_module("mindspore.dataset")
    for name in CLASSES:
        if not hasattr(dataset, name):
            setattr(dataset, name, _absent(f"mindspore.dataset.{name}"))
            found.append(f"mindspore.dataset.{name}")
    return found
