"""Named ranges in the trace of the active profiler; without one, each costs one look-up in torch."""
from __future__ import annotations

import itertools
import threading
from typing import Any

import torch

from torchspore.engine.torch_internals.torch_private import quick_mark

PREFIX = "torchspore::"
CELL, OPTIMIZER, OPERATOR, DATA, GRAPH, STEP, COMPILE = (
    f"{PREFIX}{kind}::" for kind in ("cell", "optimizer", "operator", "data", "graph", "step", "compile")
)
"""The beginning of torchspore's marks: their texts are read back from the trace."""


class _Local(threading.local):
    step: Any = None


_local = _Local()
_ranges: dict[int, Any] = {}
_numbers = itertools.count(1)
mark = quick_mark
"""`with mark("text"):` marks its block; it costs a microsecond while a profiler is active, and less otherwise."""


def begin_step() -> None:
    """Mark the beginning of a step in the trace of the active profiler; end the previous step if it is open."""
    end_step()
    _local.step = torch.profiler.record_function(STEP)
    _local.step.__enter__()


def end_step() -> None:
    """Marks the end of the step."""
    step, _local.step = _local.step, None
    if step is not None:
        step.__exit__(None, None, None)


def open_range(text: str) -> int:
    """Begin a named range in the trace of the active profiler; return its number."""
    number = next(_numbers)
    _ranges[number] = torch.profiler.record_function(text)
    _ranges[number].__enter__()
    return number


def close_range(number: int) -> bool:
    """Ends a stretch; says whether there was one of this number."""
    range_ = _ranges.pop(number, None)
    if range_ is not None:
        range_.__exit__(None, None, None)
    return range_ is not None
