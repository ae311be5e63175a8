"""The objects in the memory of this process, listed after a fault."""
from __future__ import annotations

import gc
import json
import time
import traceback
from typing import Any

import torch

from torchspore.base import frames
from torchspore.engine.devices import gpu_kinds
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.engine.tensors.tensor import TensorBase

_SHOWN = 2000
"""Tensors that are listed, the largest first."""


def tensors() -> str:
    """A table of the Tensors that the program holds: bytes, address, device, dtype, shape, the Parameter's name."""
    rows: dict[tuple[str, int], tuple[int, str]] = {}
    for value in gc.get_objects():
        if issubclass(type(value), TensorBase):            # isinstance would call objects that respond with a warning
            t = getattr(value, "_t", None)
            if type(t) is torch.Tensor and t.layout is torch.strided and t.device.type != "meta":
                rows.setdefault((str(t.device), t.data_ptr()), (t.untyped_storage().nbytes(), _row(value, t)))
    listed = sorted(rows.values(), reverse=True)
    total = sum(size for size, _ in listed)
    lines = [f"# {len(listed)} Tensors of the program hold {total} bytes; bytes  address  device  dtype[shape]  name"]
    return "\n".join([*lines, *[row for _, row in listed[:_SHOWN]]]) + "\n"


def _row(value: Any, t: torch.Tensor) -> str:
    dtype = FROM_TORCH.get(t.dtype, t.dtype)
    name = getattr(value, "name", "") if type(value) is not TensorBase else ""
    return f"{t.untyped_storage().nbytes()}  {t.data_ptr():#x}  {t.device}  {dtype}{list(t.shape)}  {name if isinstance(name, str) else ''}"


def device_memory() -> str:
    """Return the state of an accelerator's allocator: totals, and its blocks as JSON."""
    module = gpu_kinds.module()
    if not (module.is_available() and module.is_initialized()):
        return ""
    snapshot: Any = getattr(module, "memory_snapshot", list)
    summary = getattr(module, "memory_summary", None)
    figures = summary() if summary is not None else json.dumps(module.memory_stats(), indent=1)
    return f"\n# the device's allocator\n{figures}\n{json.dumps(snapshot(), default=str)[: 1 << 24]}"


def memory(started: int) -> list[tuple[float, int]]:
    """Return the memory of the process as a line of the history."""
    try:
        with open("/proc/self/statm", "rb") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError):
        return []
    return [(round((time.monotonic_ns() - started) / 1e9, 2), pages * 4096)]


def operator_of(error: BaseException) -> str:
    """Return the MindSpore operator in which an error was raised; empty outside of operators."""
    text = ""
    at: BaseException | None = error
    while at is not None:
        for frame, _ in traceback.walk_tb(at.__traceback__):
            if frames.is_torchspore_file(frame.f_code.co_filename):
                text = FRONT.operator_of(frame) or text
        at = at.__context__ if not text else None
    return text
