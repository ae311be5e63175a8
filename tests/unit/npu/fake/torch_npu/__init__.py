"""Stands in for torch_npu: takes the calls that its record knows, with the arguments that they have there, and keeps them in `calls`."""
from __future__ import annotations

import inspect
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

RECORDS = json.loads(Path(__file__).parents[2].joinpath("torch_npu.json").read_text(encoding="utf-8"))
RECORD = RECORDS[os.environ.get("RECORDED_TORCH_NPU", max(RECORDS))]
KINDS = {"plain": inspect.Parameter.POSITIONAL_OR_KEYWORD, "keyword": inspect.Parameter.KEYWORD_ONLY,
         "star": inspect.Parameter.VAR_POSITIONAL, "stars": inspect.Parameter.VAR_KEYWORD}
ANSWERS: dict[str, Any] = {
    "device_count": 2, "is_available": True, "is_initialized": False, "current_device": 0, "get_device_name": "Ascend (fake)",
    "memory_stats": {"allocated_bytes.all.current": 7},
}
calls: list[tuple[str, dict[str, Any]]] = []


def signature(rows: list[list[Any]]) -> inspect.Signature:
    return inspect.Signature([
        inspect.Parameter(name, KINDS[kind], default=None if has_default and kind in ("plain", "keyword") else inspect.Parameter.empty)
        for name, kind, has_default in rows
    ])


def recorded(name: str, rows: list[list[Any]]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        calls.append((name, dict(signature(rows).bind(*args, **kwargs).arguments)))
        return ANSWERS.get(name)

    return call


class Settable:
    """An object whose attributes can be set, and no others than the record has."""

    def __init__(self, name: str, names: list[str]) -> None:
        self.__dict__.update(_name=name, _known=names)

    def __setattr__(self, attribute: str, value: Any) -> None:
        if attribute not in self._known:
            raise AttributeError(f"torch_npu has no {self._name}.{attribute}")
        calls.append((f"{self._name}.{attribute}", {"value": value}))


def build(name: str, about: Any) -> Any:
    if isinstance(about, list):
        return recorded(name, about)
    return Settable(name, about["attributes"]) if about is not None and about["attributes"] else object()


npu = ModuleType("torch.npu")
for _name, _about in RECORD["npu"].items():
    setattr(npu, _name, build(_name, _about))
npu._is_in_bad_fork = lambda: False
if not hasattr(torch, "npu"):
    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", npu)
