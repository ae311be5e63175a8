"""How much memory this process takes at its peak, and the tensors of a call. `ru_maxrss` never falls: a child begins with its parent's."""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Rise:
    """The KiB by which the peak rose above what was held at the start."""

    kib = 0


@contextmanager
def rise() -> Iterator[Rise]:
    """Forgets the peak, and says afterwards by how much the body raised it."""
    found = Rise()
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    yield found
    found.kib = peak() - before


def peak() -> int:
    """The most KiB of memory that this process has held since it began, or since `rise` forgot."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


def most(call: Callable[[], Any], folder: Path) -> int:
    """The most bytes that tensors made in the call take at a time, as torch's profiler sees it."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiled:
        call()
    path = folder / "trace.json"
    profiled.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    path.unlink()
    found = sorted(((event["ts"], event["args"]) for event in events if event.get("name") == "[memory]"), key=lambda pair: pair[0])
    # torch's count goes on from profile to profile, and never hears of what other threads freed while one was on.
    before = found[0][1]["Total Allocated"] - found[0][1]["Bytes"]
    return max(int(about["Total Allocated"]) for _, about in found) - int(before)
