"""Branches and loops in a trace: one operator of ours with numbered records, which is rewritten when the trace has ended.

The operator never runs: it gives the shapes of results while a graph is traced, and autograd its gradients, which are such calls again.
"""
from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.engine.autograd.leaves import is_differentiable
from torchspore.graph.refusal import Refusal

RECORDS: dict[int, Record] = {}
"""The records of the present traces; emptied when the outermost has ended."""

_numbers = itertools.count()    # never used twice: torch remembers the shapes that an operator gave for its arguments


Flag = torch.Tensor | bool
Gradients = tuple[list[torch.Tensor | None], list[Flag]]


@dataclass(eq=False)
class Record:
    """The branch or loop of one call of the operator; `metas` are fake tensors of its results."""

    metas: list[torch.Tensor]

    def gradient(self, inputs: Sequence[torch.Tensor], gradients: list[torch.Tensor], flags: list[Flag]) -> Gradients:
        """Return (the gradients of the inputs, their flags), computed by a further record. Raises Refusal if gradients are not supported.

        A flag states whether the executed branch has a gradient (`control_flow.gradient_presence`).
        """
        raise Refusal("takes a gradient of a higher order through a loop or branch than graphs support")

    def graphs(self) -> list[torch.fx.GraphModule]:
        """The graphs that may run."""
        return []

    @property
    def acts(self) -> bool:
        """True if it does something besides giving values, whatever its graphs do."""
        return False


inspect.modulesbyfile.setdefault(__file__, __name__)      # as in custom_operators.py


@torch.library.custom_op("torchspore::control", mutates_args=())
def control(inputs: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    """Represents the record `number`."""
    raise RuntimeError("a branch or loop was run before it was rewritten")


@control.register_fake
def _(inputs: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    return [torch.empty_strided(m.shape, m.stride(), dtype=m.dtype, device=_device(inputs, m)) for m in RECORDS[number].metas]


def _device(inputs: list[torch.Tensor], meta: torch.Tensor) -> torch.device:
    position = getattr(meta, "at", None)
    return position if position is not None else inputs[-1].device


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    gradient_inputs, ctx.number = inputs
    ctx.save_for_backward(*gradient_inputs)
    record = RECORDS[ctx.number]
    ctx.mark_non_differentiable(*[t for t in output if not is_differentiable(t)])
    ctx.record = record


def _backward(ctx: Any, gradients: list[torch.Tensor | None]) -> Any:
    inputs = ctx.saved_tensors
    incoming: list[Flag] = ctx.presence.flags_of(ctx) if hasattr(ctx, "presence") else [g is not None for g in gradients]
    incoming += [False] * (len(gradients) - len(incoming))
    filled, flags = [], []
    for g, m, flag in zip(gradients, ctx.record.metas, incoming):
        if is_differentiable(m):
            filled.append(torch.zeros(m.shape, dtype=m.dtype, device=_device(list(inputs), m)) if g is None else g)
            flags.append(False if g is None else flag)
    found, ctx.flags = ctx.record.gradient(inputs, filled, flags)
    return found, None


control.register_autograd(_backward, setup_context=_setup)


def emit(record: Record, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Add a call of `record` to the current trace; return its results."""
    number = next(_numbers)
    RECORDS[number] = record
    return list(control(list(inputs), number))


def flag_like() -> torch.Tensor:
    """Return a fake tensor of a flag."""
    flag_meta = torch.empty((), dtype=torch.bool, device="meta")
    flag_meta.at = torch.device("cpu")  # type: ignore[attr-defined]
    return flag_meta


def as_tensor(flag: Flag) -> torch.Tensor:
    """A flag as a Tensor of the graph."""
    return flag if isinstance(flag, torch.Tensor) else torch.full((), flag, dtype=torch.bool)


def meta_tensor_like(t: torch.Tensor, contiguous: bool = False) -> torch.Tensor:
    """A tensor without memory that says shape, strides, dtype and device of `t`."""
    meta_tensor = torch.empty(t.shape, dtype=t.dtype, device="meta") if contiguous else torch.empty_strided(
        t.shape, t.stride(), dtype=t.dtype, device="meta",
    )
    meta_tensor.at = getattr(t, "at", t.device)  # type: ignore[attr-defined]
    return meta_tensor


OPERATOR = torch.ops.torchspore.control.default


@dataclass(eq=False)
class Say(Record):
    """A print of values that are known while compiling; it has no inputs."""

    text: str

    @property
    def acts(self) -> bool:
        return True


@dataclass(eq=False)
class Check(Record):
    """An assert; the only input is its test."""

    text: str

    @property
    def acts(self) -> bool:
        return True
