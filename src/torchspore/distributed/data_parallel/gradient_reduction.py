"""Gradients over all processes: flat messages of several, in float32, as sums or means."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.distributed.comm.groups import Group
from torchspore.distributed.data_parallel.fusion import Buckets
from torchspore.engine.tensors.tensor import TensorBase, frame
from torchspore.engine.torch_internals.torch_private import no_transforms, without_modes

Gradients = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Plan:
    """How the gradients of some Parameters are reduced: which travel together, among which processes, with which factor."""

    buckets: Buckets
    group: Group
    factor: float | None
    """The factor of the sums; None if they remain sums."""


def reduced(gradients: Gradients, plan: Plan) -> list[torch.Tensor]:
    """The gradients that the plan names over all processes, each in its own dtype; the others as they are."""
    reduced = list(gradients)
    if not is_traced() and not any(g.requires_grad for g in gradients):   # they can be sent while Python continues
        started = [(indices, start([gradients[index] for index in indices], plan)) for indices in plan.buckets]
        for indices, message in started:
            for index, gradient in zip(indices, message.parts()):
                reduced[index] = gradient
        return reduced
    from torchspore.distributed.comm import collectives

    for indices in plan.buckets:
        parts = [gradients[index] for index in indices]
        summed = collectives.all_reduce(flat(parts), "sum", plan.group)
        for index, gradient in zip(indices, cut(summed if plan.factor is None else summed * plan.factor, parts)):
            reduced[index] = gradient
    return reduced


def is_traced() -> bool:
    """Return whether a graph is captured in this thread."""
    around = frame()
    while around is not None:
        if around.traces:
            return True
        around = around.outer
    return False


def values_before(tensor: TensorBase) -> np.ndarray:
    """Return the values of a Tensor; while a graph is captured, its initial values."""
    with without_modes(), no_transforms(), torch.no_grad():
        t = tensor._t.detach().cpu()
        return (t.float() if t.is_floating_point() else t).numpy()


def flat(gradients: Gradients) -> torch.Tensor:
    """The gradients in one row, in float32."""
    rows = [g.reshape(-1).float() for g in gradients]
    return rows[0] if len(rows) == 1 else torch.cat(rows)


def cut(row: torch.Tensor, like: Gradients) -> list[torch.Tensor]:
    """The parts of a row, in the shapes and dtypes of `like`."""
    parts = row.split([g.numel() for g in like]) if len(like) > 1 else [row]
    return [part.view(g.shape).to(g.dtype) for part, g in zip(parts, like)]


class Message:
    """Gradients that are on their way."""

    def __init__(self, gradients: Gradients, plan: Plan) -> None:
        from torchspore.distributed.comm import collectives

        self._like = [torch.empty_like(g, device="meta") for g in gradients]
        row = flat(gradients)
        self._row = row.clone() if len(gradients) == 1 and row.data_ptr() == gradients[0].data_ptr() else row
        self._factor = plan.factor
        self._work: Any = collectives.start_all_reduce(self._row, "sum", plan.group)

    def parts(self) -> list[torch.Tensor]:
        """Waits for the others; gives the gradients over all processes."""
        self.wait()
        if self._factor is not None:
            self._row.mul_(self._factor)
        return cut(self._row, self._like)

    def wait(self) -> None:
        """Waits for the others."""
        self._work.wait()


def start(gradients: Gradients, plan: Plan) -> Message:
    """Sends gradients off."""
    return Message(gradients, plan)
