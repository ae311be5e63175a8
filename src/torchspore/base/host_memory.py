"""The memory of this machine."""
from __future__ import annotations

import ctypes
import os


class _Status(ctypes.Structure):
    """MEMORYSTATUSEX of Windows (learn.microsoft.com, sysinfoapi.h)."""

    _fields_ = [("length", ctypes.c_ulong), ("load", ctypes.c_ulong), *((name, ctypes.c_ulonglong) for name in (
        "total", "available", "total_page_file", "available_page_file", "total_virtual", "available_virtual", "available_extended"))]


def total_memory() -> int:
    """Return the bytes of the machine's memory; 0 if the system does not report them."""
    try:
        if os.name == "nt":
            status = _Status(length=ctypes.sizeof(_Status))
            return status.total if ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else 0  # type: ignore[attr-defined]
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0
