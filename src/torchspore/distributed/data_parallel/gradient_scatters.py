"""Gradients that are summed for some rows while the backward pass still runs: `enable_parallel_optimizer` from `level2` on.

Small gradients travel together, large ones separately. A message begins when its gradients exist. On an accelerator the wait for its result
begins when the next message would make both together larger than the largest, or at the end of the backward pass: the device computes while
it communicates, at the price of one more gradient in memory. The wait is queued on the device; Python continues. The operand of a message
stays referenced until the wait, so that torch's allocator does not reuse its memory. On the CPU the wait follows at once, because gloo's
threads and operators share the cores and the memory.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from torchspore.distributed.comm import collectives, groups, operators
from torchspore.distributed.comm.groups import Group
from torchspore.distributed.data_parallel import fusion
from torchspore.engine.torch_internals import torch_private

LARGEST = 4 * fusion.MEGABYTE
"""Bytes of a message of small gradients, unless the context limits messages to less."""
SMALL = fusion.MEGABYTE // 4
"""Bytes below which a gradient waits for others."""


@dataclass
class _Gradient:
    """A full gradient in float32, and the tensor that gets the sum of this process's rows; None: the tensor that is received."""

    full: torch.Tensor
    rows: torch.Tensor | None


@dataclass
class _Message:
    """Gradients that travel together: the operand, the received tensor, and the tensors that get their sums.

    The full gradients are not referenced: a gradient that is not contiguous would be in memory twice.
    """

    packed: torch.Tensor
    received: torch.Tensor
    rows: list[torch.Tensor | None]

    @property
    def size(self) -> int:
        """The bytes of the operand."""
        return int(self.packed.nbytes)


class Scatters:
    """The messages of the backward passes of one step; the groups and the factor of the sums are equal for all gradients."""

    def __init__(self, factor: float | None) -> None:
        self._factor = factor
        self._group: tuple[Group, Group] | None = None
        self._small: list[_Gradient] = []
        self._running: list[_Message] = []
        self._leaves: set[int] = set()
        """The ids of the leaves whose gradients this pass has sent."""
        self._largest = 0
        """The bytes of the largest gradient."""
        self._is_registered = False

    def add(self, gradient: torch.Tensor, leaf: torch.Tensor, group: Group, others: Group) -> torch.Tensor:
        """Return the sum of this process's rows, which is complete at the end of the backward pass.

        It is complete at once where something may read it before: a second gradient of the leaf, or a hook on it.
        """
        if not self._is_registered:
            self._is_registered = True
            torch_private.at_end_of_backward(self.end)
        if self._group is not None and self._group != (group, others):
            self._flush()
        self._group = group, others
        shape = (gradient.shape[0] // group.size, *gradient.shape[1:])
        full = gradient.float()
        self._largest = max(self._largest, full.nbytes)
        is_read_before = id(leaf) in self._leaves or bool(leaf._backward_hooks)
        self._leaves.add(id(leaf))
        limit = _limit()
        is_alone = is_read_before or full.nbytes >= min(SMALL, limit)
        if is_alone and gradient.dtype == torch.float32 and others.size == 1:
            rows = self._start([_Gradient(full, None)]).view(shape)
        else:
            rows = gradient.new_empty(shape)
            if not is_alone and sum(other.full.nbytes for other in self._small) + full.nbytes > limit:
                self._send_small()
            self._small.append(_Gradient(full, rows))
            if is_alone:
                self._send_small()
        if is_read_before:
            self._flush()
        return rows

    def end(self) -> None:
        """Wait for all messages at the end of the backward pass."""
        self._is_registered = False
        self._flush()
        self._leaves.clear()

    def drop(self) -> None:
        """Forget the messages of a pass that has failed."""
        self._small, self._running, self._is_registered = [], [], False
        self._leaves.clear()

    def _flush(self) -> None:
        self._send_small()
        while self._running:
            self._finish(self._running.pop(0))

    def _send_small(self) -> None:
        small, self._small = self._small, []
        if small:
            self._start(small)

    def _start(self, gradients: Sequence[_Gradient]) -> torch.Tensor:
        """Start a message and return the tensor that is received."""
        assert self._group is not None
        group, _ = self._group
        size = sum(gradient.full.nbytes for gradient in gradients)
        while self._running and sum(message.size for message in self._running) + size > max(self._largest, size):
            self._finish(self._running.pop(0))
        parts = [gradient.full.reshape(group.size, -1) for gradient in gradients]
        packed = parts[0].contiguous() if len(parts) == 1 else torch.cat(parts, 1)
        received = operators.reduce_scatter(packed, collectives.KINDS["sum"], group.size, group.key)
        self._running.append(_Message(packed, received, [gradient.rows for gradient in gradients]))
        if not groups.has_queue():
            self._finish(self._running.pop())
        return received

    def _finish(self, message: _Message) -> None:
        assert self._group is not None
        received = operators.wait_for(message.received)
        if self._group[1].size > 1:
            received = collectives.all_reduce(received, "sum", self._group[1])
        if self._factor is not None:
            received.mul_(self._factor)
        start = 0
        for rows in message.rows:
            if rows is not None:
                rows.copy_(received.view(-1)[start:start + rows.numel()].view(rows.shape))
                start += rows.numel()


def _limit() -> int:
    """Return the bytes of a message of small gradients; 0 if each travels alone."""
    return min(fusion.rule("reducescatter").limit, LARGEST)


def describe_rule() -> str:
    """Return how gradients travel, for the report of the option."""
    limit = _limit()
    if not limit:
        return "each gradient is sent separately"
    return f"gradients below {SMALL >> 10} KB travel in messages up to {limit / fusion.MEGABYTE:g} MB"
