"""The groups of counters of Ascend's cores on this machine: their equivalents, or that there are none."""
from __future__ import annotations

from torchspore.observe.profiling.totals import Total

_NONE = "these counters do not exist here; nothing is written for it"
MEANINGS = {
    "ArithmeticUtilization": "mac_ratio is the operations of products and convolutions a second, as a share of the peak measured here",
    "Memory": "main_mem_read_bw(GB/s) is the bytes of an operator's inputs over its time, which caches may have answered",
    "MemoryAccess": "main_mem_read_bw(GB/s) is the bytes of an operator's inputs over its time, which caches may have answered",
    "PipeUtilization": f"of the pipes of a core {_NONE}",
    "MemoryL0": f"of the buffers of a core {_NONE}",
    "MemoryUB": f"of the buffers of a core {_NONE}",
    "ResourceConflictRatio": f"of conflicts in a core {_NONE}",
    "L2Cache": f"of the cache {_NONE}",
}


def meaning(group: str) -> str:
    """Return the equivalent of a group of counters here, as one line."""
    return f"{group}: {MEANINGS[group]}"


def column(group: str) -> str | None:
    """Return the column that a group adds to a table of operators; None if it has no counterpart."""
    return "mac_ratio" if group == "ArithmeticUtilization" else "main_mem_read_bw(GB/s)" if group in ("Memory", "MemoryAccess") else None


def value(group: str, row: Total, peak: float) -> str:
    """Return an operator's figure in that column; empty if it has none."""
    if group == "ArithmeticUtilization":
        return f"{row.rate() / peak:.4f}" if row.flops and peak else ""
    return f"{row.read / row.span:.3f}" if row.read and row.span else ""
