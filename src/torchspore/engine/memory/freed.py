"""Host memory: keeps freed blocks in the process instead of giving them back to the kernel at once.

glibc returns large freed blocks immediately, which costs thousands of page faults a training step (spec/engine.md §2.6).
`mallopt` takes C ints, so the thresholds are the largest that fit. `TORCHSPORE_MALLOC=0` leaves everything as it was.
"""
from __future__ import annotations

import ctypes
import os
import platform

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_blocks() -> str:
    """Raises glibc's two thresholds; says what came of it."""
    if os.environ.get("TORCHSPORE_MALLOC") == "0":
        return "malloc thresholds left alone (TORCHSPORE_MALLOC=0)"
    if platform.libc_ver()[0] != "glibc":
        return "malloc thresholds left alone: the C library is not glibc"
    if any(name in os.environ.get("LD_PRELOAD", "") for name in ("tcmalloc", "jemalloc", "mimalloc")):
        return "malloc thresholds left alone: another allocator is preloaded"
    libc = ctypes.CDLL(None)
    done = libc.mallopt(_M_MMAP_THRESHOLD, 1 << 30) and libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
    return "freed blocks stay in the process (malloc thresholds raised)" if done else "malloc thresholds refused by the C library"
