"""The assumed speeds of a device and of its links, for predictions; they are equal on every process."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from torchspore.context import plan_request
from torchspore.context.plan_request import Machine as Machine

set_by_program: dict[str, Any] = {}
"""Figures that the program has set: `set_cost_model_context(device_memory_capacity=..)` is the `capacity`."""


def machine() -> Machine:
    """Return the machine of `torchspore plan --bandwidth .. --latency ..`, or else the default machine."""
    request = plan_request.pending
    return replace(Machine() if request is None else request.machine, **set_by_program)
