"""Host memory: keeps freed blocks in the process instead of returning them to the kernel at once.

glibc returns large freed blocks immediately, which costs thousands of page faults per training step. `mallopt` takes
C ints, so the thresholds are the largest that fit. `TORCHSPORE_MALLOC=0` changes nothing, and a user's settings of glibc take precedence.

Kept blocks have a price: glibc's `posix_memalign` requests more than it keeps, so that a freed block of one size is never reused for
another of that size. Work that happens once (an optimizer, a compiled graph) therefore returns its freed memory.
"""
from __future__ import annotations

import ctypes
import os
import platform

from torchspore.translations import translatable, translate

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_GLIBC = {"MALLOC_MMAP_THRESHOLD_": "", "MALLOC_TRIM_THRESHOLD_": "", "GLIBC_TUNABLES": "glibc.malloc."}
"""The variables by which a user configures glibc's allocator, and the values that mean the default."""


class _Library:
    """glibc, once it is loaded."""

    def __init__(self) -> None:
        self.libc: ctypes.CDLL | None = None
        """The C library, where freed blocks are kept."""


_LIBRARY = _Library()


def keep_freed_blocks() -> str:
    """Raises glibc's two thresholds; says what came of it."""
    if os.environ.get("TORCHSPORE_MALLOC") == "0":
        return translatable("malloc thresholds unchanged (TORCHSPORE_MALLOC=0)")
    if platform.libc_ver()[0] != "glibc":
        return translatable("malloc thresholds unchanged: the C library is not glibc")
    if any(name in os.environ.get("LD_PRELOAD", "") for name in ("tcmalloc", "jemalloc", "mimalloc")):
        return translatable("malloc thresholds unchanged: another allocator is preloaded")
    configured = [name for name, word in _GLIBC.items() if name in os.environ and word in os.environ[name]]
    if configured:
        return translate("malloc thresholds unchanged: {variable} is set").format(variable=configured[0])
    libc = ctypes.CDLL(None)
    if not (libc.mallopt(_M_MMAP_THRESHOLD, 1 << 30) and libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)):
        return translatable("malloc thresholds refused by the C library")
    _LIBRARY.libc = libc
    return translatable("freed blocks stay in the process (malloc thresholds raised)")


def give_back() -> None:
    """Return the free part of the kept blocks to the kernel: after work that happens once."""
    if _LIBRARY.libc is not None:
        _LIBRARY.libc.malloc_trim(0)
