"""Gradients in flat buffers that accumulate until they are cleared, and are summed over processes while the backward pass still runs.

A hook on each Parameter adds its gradient to its part of the buffer and returns that part as the gradient. All processes send messages in
one order: each message when its gradients, and those of all earlier messages, exist. The end of the backward pass waits for them.
"""
from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.base.frames import user_line
from torchspore.base.text import message
from torchspore.distributed.comm import collectives
from torchspore.distributed.comm.groups import Group
from torchspore.engine.autograd import gradient_hooks
from torchspore.engine.tensors.tensor import TensorBase, raw, wrap
from torchspore.engine.torch_internals import torch_private

FIRST = 1 << 20
"""Bytes of the first message, which should leave early, if no option sets the size of messages."""
USUAL = 25 << 20


@dataclass
class _Bucket:
    """Gradients that travel together: a stretch of one buffer."""

    row: torch.Tensor
    indices: list[int]


class Buffers:
    """The gradients of some Parameters; `parameters[i].grad` is a view of its part of a buffer."""

    def __init__(self, parameters: Sequence[Any], group: Group, size: int | None, divides_after: bool, finds_unused: bool,
                 learns_order: bool) -> None:
        self.parameters, self.group, self.divides_after = list(parameters), group, divides_after
        self.finds_unused, self._learns_order, self._size = finds_unused, learns_order, size
        self.sums = True
        """True if gradients are summed over processes; off, they are added up here alone."""
        self.rows: list[torch.Tensor] = []
        self.buckets: list[_Bucket] = []
        self._views: list[torch.Tensor] = []
        self._arrived: list[int] = []
        self._started: list[tuple[_Bucket, Any]] = []
        self._allocate(list(reversed(range(len(self.parameters)))))
        buffers = weakref.ref(self)
        for index, parameter in enumerate(self.parameters):
            gradient_hooks.register(parameter, _hook(buffers, index))

    def clear(self) -> None:
        """Set all gradients to zero."""
        for row in self.rows:
            row.zero_()

    # ---- the memory of gradients

    def _allocate(self, order: list[int]) -> None:
        """Allocate the gradients, in this order, in buffers of one dtype; their earlier values are preserved."""
        before = self._views
        self.rows, self.buckets, self._views = [], [], [torch.empty(0)] * len(self.parameters)
        kinds: dict[Any, list[int]] = {}
        for index in order:
            t = self.parameters[index]._t
            kinds.setdefault((t.dtype, t.device), []).append(index)
        for (dtype, device), indices in kinds.items():
            row = torch.zeros(sum(self.parameters[index]._t.numel() for index in indices), dtype=dtype, device=device)
            self.rows.append(row)
            self._cut(row, indices)
        for index, old in enumerate(before):
            self._views[index].copy_(old)
        for parameter, view in zip(self.parameters, self._views):
            parameter.grad = wrap(view)

    def _cut(self, row: torch.Tensor, indices: list[int]) -> None:
        begin = at = 0
        parts: list[int] = []
        for index in indices:
            t = self.parameters[index]._t
            self._views[index] = row[at:at + t.numel()].view(t.shape)
            at += t.numel()
            parts.append(index)
            most = self._size if self._size is not None else USUAL if self.buckets else FIRST
            if (at - begin) * row.element_size() >= most or index == indices[-1]:
                self.buckets.append(_Bucket(row[begin:at], parts))
                begin, parts = at, []

    # ---- while gradients come

    def arrived(self, index: int, gradient: torch.Tensor) -> torch.Tensor:
        """Add a gradient to its buffer, and send the buffer if it is complete."""
        if gradient.requires_grad:
            raise RuntimeError(f"{user_line()}: " + message(
                "a gradient of a gradient by DistributedDataParallel", "gradients of the first order",
            ))
        view = self._views[index]
        view.add_(gradient)
        if self.sums:
            if not self._arrived:
                torch_private.at_end_of_backward(self._end)
            self._arrived.append(index)
            self._send()
        return view

    def _send(self, all_of_them: bool = False) -> None:
        while len(self._started) < len(self.buckets):
            bucket = self.buckets[len(self._started)]
            if not all_of_them and not set(bucket.indices) <= set(self._arrived):
                return
            if not self.divides_after:
                bucket.row.div_(self.group.size)
            self._started.append((bucket, collectives.start_all_reduce(bucket.row, "sum", self.group)))

    def _end(self) -> None:
        """End the backward pass: the sums over all processes replace this process's gradients."""
        came, self._arrived = self._arrived, []
        missing = [index for index in range(len(self.parameters)) if index not in came]
        if missing and not self.finds_unused:
            self._started = []
            names = ", ".join(str(self.parameters[index].name) for index in missing[:5])
            raise RuntimeError(f"{user_line()}: " + message(
                f"DistributedDataParallel: a backward pass without gradients of {names}", "gradients of all its Parameters",
                hint="DistributedDataParallel(..., find_unused_parameters=True), or gradients by all trainable_params()",
            ))
        self._send(all_of_them=True)
        started, self._started = self._started, []
        for bucket, work in started:
            work.wait()
            if self.divides_after:
                bucket.row.div_(self.group.size)
        if self._learns_order:
            self._learns_order = False
            self._reorder(came + missing)

    def _reorder(self, order: list[int]) -> None:
        """From now on messages leave in the order in which process 0 had its gradients; the gradients given out stay where they are."""
        if self.group.size > 1:
            order = collectives.broadcast(torch.tensor(order), 0, self.group).tolist()
        self._allocate(order)


def _hook(own: weakref.ref[Buffers], index: int) -> Any:
    def arrived(gradient: TensorBase) -> TensorBase | None:
        buffers = own()
        return None if buffers is None else wrap(buffers.arrived(index, raw(gradient)))

    return arrived


class _Used(torch.autograd.Function):
    """Values as they are, whose gradient reaches all weights: zeros, so that each has a gradient in every process."""

    @staticmethod
    def forward(ctx: Any, count: int, *gradients: torch.Tensor) -> Any:
        ctx.weights = gradients[count:]
        return tuple(t.view_as(t) for t in gradients[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return None, *gradients, *(weight.new_zeros(()).expand(weight.shape) for weight in ctx.weights)


def reaching(values: Sequence[TensorBase], weights: Sequence[TensorBase]) -> list[Any]:
    """The values, the first that has a gradient tied to all of the weights."""
    outputs: list[Any] = list(values)
    for at, value in enumerate(values):
        t = raw(value)
        if t.requires_grad:
            tied, = _Used.apply(1, t, *(raw(weight) for weight in weights))
            outputs[at] = wrap(tied)
            break
    return outputs
