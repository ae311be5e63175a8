"""How many cores this process may use: those of the machine, of its affinity mask and of its container's share of time."""
from __future__ import annotations

import math
import os
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


def usable() -> int:
    """The cores that threads of this process can keep busy, 1 at least."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(own, quota(_GROUPS, Path("/proc/self/cgroup"))))


def quota(groups: Path, membership: Path) -> int:
    """The cores that the control groups of this process share out to it (cgroup v2 `cpu.max`, v1 `cpu.cfs_quota_us`), rounded up."""
    found = [_of_files(groups / "cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us")]
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        lines = []
    inner = next((line.partition("::")[2].strip("/") for line in lines if line.startswith("0::")), "")
    folder = groups / inner
    for place in (folder, *folder.parents):
        if place.is_relative_to(groups):
            found.append(_of_files(place, "cpu.max"))
    return min(found)


def _of_files(folder: Path, *names: str) -> int:
    try:
        share, period = " ".join((folder / name).read_text() for name in names).split()
        cores = math.ceil(int(share) / int(period))
    except (OSError, ValueError, ZeroDivisionError):      # "max": no limit
        return 1 << 16
    return cores if cores > 0 else 1 << 16
