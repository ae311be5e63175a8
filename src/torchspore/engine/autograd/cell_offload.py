"""`Cell.offload`: what chosen Cells compute leaves the device's memory until the backward pass needs it, also without `memory_offload`."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torchspore.context import effects
from torchspore.engine.memory import offload
from torchspore.engine.memory.saved_tensors import Tape
from torchspore.engine.tensors.tensor import is_recording
from torchspore.engine.torch_internals import torch_private

RULE = "offload"
"""The note of a Cell next to its rules for recomputing."""


def is_inside_offloaded(cells: Iterable[Any]) -> bool:
    """Return whether one of the Cells is offloaded."""
    return offload.is_requested_by_cell() and any(RULE in (cell.__dict__.get("_recompute_") or ()) for cell in cells)


def offloaded(call: Callable[..., Any], ahead: int | None) -> Callable[..., Any]:
    """Return a Cell's `call` whose saved values move out of memory; `ahead` is how many values return before the one that is needed.

    While a graph is captured, `call` is returned unchanged: a pass changes the complete graph.
    """

    def moving(*args: Any, **kwargs: Any) -> Any:
        if not is_recording() or offload.is_capturing() or torch_private.is_transforming():
            return call(*args, **kwargs)
        effects.note(offload.NOTES, offload.figures)
        with Tape(offload.planned_store, ahead=ahead).recording():
            return call(*args, **kwargs)

    return moving
