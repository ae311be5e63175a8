"""Rows of a data pipeline on their way to an accelerator: through pinned memory and on a separate stream, one row ahead of the program.

A copy from other memory makes Python wait until the device has finished the work before it. With pinned memory and another stream, the
copy of the next row runs while the device computes with the present one.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchspore.context import effects
from torchspore.engine.devices import device

_NUMBERS = "biufc"


@dataclass
class SentRow:
    """The values of a row with the arrays replaced by tensors of the device, and the event of their arrival."""

    row: Sequence[Any]
    values: list[Any]
    pinned: list[torch.Tensor]
    arrival: Any


class RowTransfer:
    """Copies rows to one device."""

    def __init__(self, target: torch.device) -> None:
        self.device = target
        self._module: Any = torch.get_device_module(target)
        self._stream = self._module.Stream(device=target)
        self._can_pin = True
        self._sent: SentRow | None = None
        self._underway: deque[SentRow] = deque()

    def receive(self, row: Sequence[Any]) -> list[Any]:
        """Return the values of a row; its arrays of numbers are tensors that the current stream may read."""
        sent, self._sent = self._sent, None
        if sent is None or sent.row is not row:
            sent = self._start(row)
        current = self._module.current_stream(self.device)
        current.wait_event(sent.arrival)
        for value in sent.values:
            if isinstance(value, torch.Tensor):
                value.record_stream(current)
        return sent.values

    def send(self, row: Sequence[Any]) -> None:
        """Start the copy of the row that `receive` will request next; do nothing if the device has no memory for it now."""
        if self._sent is not None and self._sent.row is row:
            return
        try:
            self._sent = self._start(row)
        except torch.OutOfMemoryError:
            self._sent = None

    def _start(self, row: Sequence[Any]) -> SentRow:
        while self._underway and self._underway[0].arrival.query():
            self._underway.popleft()                     # until then the copy reads the pinned memory
        pinned: list[torch.Tensor] = []
        with self._module.stream(self._stream):
            values = [self._copy(value, pinned) if _is_sendable(value) else value for value in row]
            arrival = self._module.Event()
            arrival.record(self._stream)
        sent = SentRow(row, values, pinned, arrival)
        if pinned:
            self._underway.append(sent)
        return sent

    def _copy(self, array: np.ndarray[Any, Any], pinned: list[torch.Tensor]) -> torch.Tensor:
        """Start the copy of an array; append the memory that it reads to `pinned`."""
        kind = np.empty(0, np.uint64 if array.dtype.char == "Q" else array.dtype.newbyteorder("="))
        source = self._host_memory(array.shape, torch.from_numpy(kind).dtype)
        source.numpy()[...] = array
        if source.is_pinned():
            pinned.append(source)
        return source.to(self.device, non_blocking=True)

    def _host_memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return pinned memory of the host; after the machine has refused it once, which is reported, memory that is not pinned."""
        if self._can_pin:
            try:
                return torch.empty(shape, dtype=dtype, pin_memory=True)
            except RuntimeError as error:
                self._can_pin = False
                reason = str(error).partition("\n")[0]
                effects.note("data", f"rows reach the device from memory that is not pinned, so that Python waits for each: {reason}")
        return torch.empty(shape, dtype=dtype)


def _is_sendable(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS


def open_transfer() -> RowTransfer | None:
    """Return a transfer to the device on which operators run; None on the CPU and on a device without streams (Apple's mps)."""
    if not device.has_queue() or not hasattr(device.backend(), "Stream"):
        return None
    return RowTransfer(device.current())
