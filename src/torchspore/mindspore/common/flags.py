"""Flags that programs set on Cells and functions by `add_flags`."""
from __future__ import annotations

from typing import Any

from torchspore.context import effects
from torchspore.engine.tensors import dtypes

PRECISION_FLAGS = {"fp16": dtypes.float16, "fp32": dtypes.float32, "bf16": dtypes.bfloat16}
"""Flags that select the dtype a Cell computes in. The last true flag of a call wins, as in MindSpore 2.10."""

_COMPILER_FLAGS = {
    "defer_inline": "a captured graph contains no calls to inline",
    "no_inline": "a captured graph contains no calls to inline",
    "loop_can_unroll": "loops over Python values are always unrolled, loops over Tensors never",
    "ignore_values": "the values of constants are always part of a graph's key",
    "has_effect": "every write and every print keeps its position in a graph",
    "output_no_recompute": "recompute() decides which values are computed again",
    "skip_auto_parallel_compile": "each graph decides whether it is split among devices",
}
"""Hints for MindSpore's compiler that change no result, each with the reason why a captured graph does not need the hint."""


def precision_flag(flags: dict[str, Any]) -> Any:
    """Return the dtype that precision flags select, or None if none of them is true."""
    selected = [dtype for name, dtype in PRECISION_FLAGS.items() if flags.get(name)]
    return selected[-1] if selected else None


def report_compiler_flags(owner: str, flags: dict[str, Any]) -> None:
    """Add a line to `torchspore explain` for each flag that only MindSpore's compiler reads."""
    for name in flags:
        if name in _COMPILER_FLAGS:
            effects.note("flags", f"{owner}: {name} has no effect here, because {_COMPILER_FLAGS[name]}")
