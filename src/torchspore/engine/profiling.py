"""What a profiler sees of this process: marks around steps, and a trace of the operators between two moments."""
from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import torch


class _Local(threading.local):
    step: Any = None


_local = _Local()


def begin_step() -> None:
    """Marks the beginning of a step in the trace of whatever profiler is watching; ends the one before, where it was left open."""
    end_step()
    _local.step = torch.profiler.record_function("step")
    _local.step.__enter__()


def end_step() -> None:
    """Marks the end of the step."""
    step, _local.step = _local.step, None
    if step is not None:
        step.__exit__(None, None, None)


class Trace:
    """The operators that ran between `start` and `stop`, with their times and, where asked for, shapes, memory and Python's stack."""

    def __init__(self, on_cpu: bool, on_device: bool, with_shapes: bool, with_memory: bool, with_stack: bool) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU] if on_cpu or not torch.cuda.is_available() else []
        if on_device and torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self._profile = torch.profiler.profile(
            activities=activities, profile_memory=with_memory, with_stack=with_stack, record_shapes=with_shapes, acc_events=True,
        )

    def start(self) -> None:
        """Watches from now on."""
        self._profile.start()

    def stop(self) -> None:
        """Watches no longer."""
        self._profile.stop()

    def write(self, path: Path) -> None:
        """Writes the trace as JSON that chrome://tracing and Perfetto draw."""
        self._profile.export_chrome_trace(str(path))

    def totals(self) -> list[dict[str, Any]]:
        """Each operator with how often it ran and how long, in microseconds, the longest first."""
        rows = [
            {"name": row.key, "count": row.count, "total_us": row.cpu_time_total, "self_us": row.self_cpu_time_total}
            for row in self._profile.key_averages()
        ]
        return sorted(rows, key=lambda row: -row["self_us"])


_ranges: dict[int, Any] = {}
_numbers = itertools.count(1)


def open_range(text: str) -> int:
    """Begins a named stretch in the trace of whatever profiler is watching; gives its number."""
    number = next(_numbers)
    _ranges[number] = torch.profiler.record_function(text)
    _ranges[number].__enter__()
    return number


def close_range(number: int) -> bool:
    """Ends a stretch; says whether there was one of this number."""
    found = _ranges.pop(number, None)
    if found is not None:
        found.__exit__(None, None, None)
    return found is not None
