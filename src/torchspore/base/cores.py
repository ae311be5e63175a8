"""The number of cores that this process may use, limited by the machine, the affinity mask and the container's CPU quota."""
from __future__ import annotations

import math
import os
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


def usable() -> int:
    """Return the number of cores that threads of this process can keep busy, at least 1."""
    affinity_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(affinity_cores, quota(_GROUPS, Path("/proc/self/cgroup"))))


def quota(groups: Path, membership: Path) -> int:
    """Return the cores that the control groups of this process allow (cgroup v2 `cpu.max`, v1 `cpu.cfs_quota_us`), rounded up."""
    limits = [_read_limit(groups / "cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us")]
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    inner = next((line.partition("::")[2].strip("/") for line in lines if line.startswith("0::")), "")
    folder = groups / inner
    for parent in (folder, *folder.parents):
        if parent.is_relative_to(groups):
            limits.append(_read_limit(parent, "cpu.max"))
    return min(limits)


def _read_limit(folder: Path, *names: str) -> int:
    try:
        share, period = " ".join((folder / name).read_text() for name in names).split()
        cores = math.ceil(int(share) / int(period))
    except (OSError, ValueError, ZeroDivisionError):      # "max": no limit
        return 1 << 16
    return cores if cores > 0 else 1 << 16
