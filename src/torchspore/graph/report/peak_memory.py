"""The peak of memory for `torchspore explain`, by what held it: parameters, gradients, activations, optimizer state, workspace."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torchspore.base.text import in_bytes
from torchspore.context import effects
from torchspore.engine.core import allocator, machine, memory_owners, node_metadata
from torchspore.engine.memory import limit
from torchspore.graph.report import provenance

wanted = False
"""True if graphs distinguish their gradients and the work of their optimizers from other operators."""
_ROWS = (("parameter", allocator.PARAMETER), ("gradient", allocator.GRADIENT), ("activation", allocator.ACTIVATION),
         ("optimizer state", allocator.STATE), ("workspace", allocator.WORKSPACE))


def watch() -> None:
    """Counts from now on, and lets `torchspore explain` print the peak at the end."""
    global wanted
    effects.note("memory", _accelerators)
    if not limit.counting():
        effects.note("memory", f"the memory of Tensors on the CPU is not counted: {allocator.why_not()}")
        return
    wanted = True
    provenance.keep_all()
    effects.note("memory", _whole)
    for name, kind in _ROWS:
        effects.note("memory", _row(name, kind))


def _whole() -> str:
    found = allocator.figures()
    if found is None or not found.peak:
        return ""
    return f"at its peak the program held {in_bytes(found.peak)} in Tensors and what operators work with on the CPU:"


def _row(name: str, kind: int) -> Callable[[], str]:
    def row() -> str:
        found = allocator.figures()
        if found is None or not found.peak:
            return ""
        if name == _ROWS[0][0]:
            memory_owners.settle()
            found = allocator.figures() or found
        return f"{name:>17} {in_bytes(found.peaks[kind]):>11} {found.peaks[kind] / found.peak:5.0%}"

    return row


def _accelerators() -> str:
    peaks = machine.device_peaks()
    return ", ".join(f"{name}: {in_bytes(most)} in Tensors at the peak" for name, most in peaks.items() if most)


def phase_of(meta: Mapping[str, Any]) -> int:
    """As what counts that a node of a graph takes and keeps."""
    if meta.get(node_metadata.OPTIMIZER):
        return allocator.WORKSPACE
    return allocator.GRADIENT if node_metadata.is_backward(meta) else allocator.ACTIVATION


def in_phases(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, whose code says as what counts what it takes, and nothing of that after it."""

    def counted(*inputs: Any) -> Any:
        try:
            return run(*inputs)
        finally:
            allocator.phase(None)

    return counted
