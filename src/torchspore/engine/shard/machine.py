"""The assumed speed of a device and of what connects it with others: every prediction says it."""
from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """One of the devices; the same figures on every process, so that all of them predict the same."""

    bandwidth: float = 50e9
    """Bytes a second that one device receives."""
    latency: float = 20e-6
    """Seconds that an exchange takes at least."""
    products: float = 50e12
    """Multiplications and additions a second."""
    memory: float = 1e12
    """Bytes a second that operators read and write."""
    capacity: float = 16.0 * 2**30
    """Bytes that one device can hold."""

    def sending(self, received: float, messages: int = 1) -> float:
        """Seconds for exchanges in which a device receives so many bytes."""
        return messages * self.latency + received / self.bandwidth


set_by_program: dict[str, float] = {}
"""Figures that the program has set: `set_cost_model_context(device_memory_capacity=..)` is the `capacity`."""


def machine() -> Machine:
    """The machine that `torchspore plan --bandwidth .. --latency ..` names, else the one that is assumed."""
    bandwidth = float(os.environ.get("TORCHSPORE_PLAN_BANDWIDTH", "50")) * 1e9
    return Machine(bandwidth, float(os.environ.get("TORCHSPORE_PLAN_LATENCY", "20")) / 1e6, **set_by_program)
