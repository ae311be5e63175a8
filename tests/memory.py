"""How much memory this process takes at its peak. `ru_maxrss` is no help: it never falls, and a child begins with its parent's."""
from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
