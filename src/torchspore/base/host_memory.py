"""The memory of this machine."""
from __future__ import annotations

import ctypes
import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""The limit of a container in bytes, in versions 2 and 1 of Linux's control groups; another text or a huge number means no limit."""


class _Status(ctypes.Structure):
    """MEMORYSTATUSEX of Windows (learn.microsoft.com, sysinfoapi.h)."""

    _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong), *((name, ctypes.c_ulonglong) for name in (
        "total", "available", "total_page_file", "available_page_file", "total_virtual", "available_virtual", "available_extended"))]


def total_memory() -> int:
    """Return the bytes of memory that this process can use: the machine's, or those of its container; 0 if they are unknown."""
    present = _memory_of_machine()
    return min([present, *(limit for limit in map(_read_limit, _LIMITS) if limit)]) if present else 0


def _read_limit(path: str) -> int:
    """Return the number in a file; 0 if there is none."""
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _memory_of_machine() -> int:
    """Return the bytes of the machine's memory; 0 if the system does not report them."""
    try:
        if os.name == "nt":
            status = _Status(length=ctypes.sizeof(_Status))
            return status.total if ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else 0  # type: ignore[attr-defined]
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0
