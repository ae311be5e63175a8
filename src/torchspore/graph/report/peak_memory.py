"""The peak of memory for `torchspore explain`, by what held it: parameters, gradients, activations, optimizer state, workspace."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torchspore.base.columns import width
from torchspore.base.text import format_bytes
from torchspore.context import effects
from torchspore.engine.devices import machine
from torchspore.engine.memory import limit, memory_owners
from torchspore.engine.native import allocator
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.report import provenance
from torchspore.translations import translatable, translate


class _Recording:
    """The switch that makes graphs mark their phases."""

    def __init__(self) -> None:
        self.is_on = False
        """True if graphs distinguish their gradients and the work of their optimizers from other operators."""


RECORDING = _Recording()
_ROWS = ((translatable("parameter"), allocator.PARAMETER), (translatable("gradient"), allocator.GRADIENT),
         (translatable("activation"), allocator.ACTIVATION), (translatable("optimizer state"), allocator.STATE),
         (translatable("workspace"), allocator.WORKSPACE))


def watch() -> None:
    """Count from now on, and print the peak at the end of `torchspore explain`."""
    effects.note("memory", _accelerators)
    if not limit.counting():
        effects.note("memory", translate("the memory of Tensors on the CPU is not counted: {reason}").format(reason=allocator.why_not()))
        return
    RECORDING.is_on = True
    provenance.keep_all()
    effects.note("memory", _describe_total)
    for name, kind in _ROWS:
        effects.note("memory", _row(name, kind))


def _describe_total() -> str:
    figures = allocator.figures()
    if figures is None or not figures.peak:
        return ""
    text = translate("peak memory on the CPU: {size} in Tensors and in the workspace of operators")
    return text.format(size=format_bytes(figures.peak))


def _row(name: str, kind: int) -> Callable[[], str]:
    def row() -> str:
        figures = allocator.figures()
        if figures is None or not figures.peak:
            return ""
        if name == _ROWS[0][0]:
            memory_owners.settle()
            figures = allocator.figures() or figures
        label = translate(name)
        return f"{' ' * (17 - width(label))}{label} {format_bytes(figures.peaks[kind]):>11} {figures.peaks[kind] / figures.peak:5.0%}"

    return row


def _accelerators() -> str:
    peaks = machine.device_peaks()
    text = translate("{device}: {size} in Tensors at the peak")
    return translate(", ").join(text.format(device=name, size=format_bytes(most)) for name, most in peaks.items() if most)


def phase_of(meta: Mapping[str, Any]) -> int:
    """As what counts that a node of a graph takes and keeps."""
    if meta.get(node_metadata.OPTIMIZER):
        return allocator.WORKSPACE
    return allocator.GRADIENT if node_metadata.is_backward(meta) else allocator.ACTIVATION


def in_phases(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return `run` with the kind of its allocations set while it runs."""

    def counted(*inputs: Any) -> Any:
        try:
            return run(*inputs)
        finally:
            allocator.phase(None)

    return counted
