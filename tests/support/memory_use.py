"""The peak memory of this process, and of the tensors of a call. `ru_maxrss` never decreases: a child starts with its parent's."""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Rise:
    """The KiB by which the peak exceeds the memory at the start."""

    kib = 0


@contextmanager
def rise() -> Iterator[Rise]:
    """Reset the peak, and measure by how much the block raises it."""
    result = Rise()
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    yield result
    result.kib = peak() - before


def peak() -> int:
    """Return the peak memory of this process in KiB, since its start or the last `rise`."""
    match = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1])


def most(call: Callable[[], Any], folder: Path) -> int:
    """Return the peak of bytes in tensors that the call creates, from torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiled:
        call()
    path = folder / "trace.json"
    profiled.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    path.unlink()
    results = sorted(((event["ts"], event["args"]) for event in events if event.get("name") == "[memory]"), key=lambda pair: pair[0])
    # torch's count goes on from profile to profile, and never hears of what other threads freed while one was on.
    before = results[0][1]["Total Allocated"] - results[0][1]["Bytes"]
    return max(int(about["Total Allocated"]) for _, about in results) - int(before)
