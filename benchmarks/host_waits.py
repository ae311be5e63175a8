"""Counts how often a step makes the host wait for the GPU, with torch's profiler."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy",
         "hipStreamSynchronize", "hipDeviceSynchronize", "hipEventSynchronize", "hipMemcpyWithStream")
"""Calls of the runtime that return when the device has finished. If `cudaMemcpyAsync` waits, a synchronization follows."""
_MARK = "counted step"


def count(step: Callable[[], Any]) -> int:
    """Return the number of such calls of one step. The profiler's synchronization comes after the step and does not count."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        with record_function(_MARK):
            step()
        torch.cuda.synchronize()
    events = list(profiler.events() or [])
    span = next(event.time_range for event in events if event.name == _MARK)
    return sum(event.name in WAITS and span.start <= event.time_range.start <= span.end for event in events)
