"""The flags of graph kernels as they act: what the text says, and where it says nothing what the `opt_level` means."""
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from torchspore.context.store import STORE

Names = tuple[str, ...]
_IN = "graph_kernel_flags."


@dataclass(frozen=True)
class Flags:
    """What the passes of this room look at. All values are plain, so that the same flags have the same text in the next process."""

    level: int
    dump: bool = False
    stitch: bool = False
    recompute: bool = False
    parallel: bool = False
    horizontal: bool = False
    exact: bool = False
    vectors: bool = True
    measured: bool = False
    depth: int = -1
    """How many operators before a reduction go with it; -1 is any number."""
    limit: int = 200
    """The greatest number of operators in one kernel."""
    threads: int | None = None
    moves: bool = False
    kept_longer: int = 0
    smallest: int = 0
    expand: Names = ()
    expand_only: Names = ()
    expand_not: Names = ()
    cluster: Names = ()
    cluster_only: Names = ()
    cluster_not: Names = ()
    rules_only: Names = ()
    rules_not: Names = ()
    on: Names = ()
    off: Names = ()
    blocking: tuple[tuple[str, Any], ...] = ()
    """Settings of Inductor's that the tuner tries."""

    def runs(self, name: str, from_level: int) -> bool:
        """Whether a pass runs: `disable_pass` wins over `enable_pass`, and that over the level."""
        return name not in self.off and (name in self.on or self.level >= from_level)


def flags() -> Flags | None:
    """The flags that act for this thread; None where nothing is to be fused."""
    level = STORE.get(_IN + "opt_level")
    if level is None:
        level = 2 if STORE.get("enable_graph_kernel") else 0
    return _made(level, tuple(_given(name) for name in _READ)) if level else None


_READ = (
    "dump_as_text", "enable_stitch_fusion", "enable_recompute_fusion", "enable_parallel_fusion", "enable_horizontal_fusion",
    "exact_precision_mode", "enable_vectorization", "online_tuning", "reduce_fuse_depth", "composite_op_limit_size",
    "cpu_refer_thread_num", "fusion_ops_level", "recompute_increment_threshold", "recompute_peak_threshold", "enable_expand_ops",
    "enable_expand_ops_only", "disable_expand_ops", "enable_cluster_ops", "enable_cluster_ops_only", "disable_cluster_ops",
    "enable_simplify_exprs_only", "disable_simplify_exprs", "enable_pass", "disable_pass",
)


def _given(name: str) -> Any:
    value = STORE.get(_IN + name)
    return tuple(value) if isinstance(value, list) else value


@functools.cache
def _made(level: int, values: tuple[Any, ...]) -> Flags:
    given = dict(zip(_READ, values))
    on, off = given["enable_pass"], given["disable_pass"]

    def runs(flag: str, name: str, from_level: int) -> bool:
        wanted = given[flag] if given[flag] is not None else name in on or level >= from_level
        return bool(wanted) and name not in off

    return Flags(
        level, given["dump_as_text"], runs("enable_stitch_fusion", "stitch_fusion", 3),
        runs("enable_recompute_fusion", "graph_kernel_recompute", 2), runs("enable_parallel_fusion", "parallel_fusion", 3),
        runs("enable_horizontal_fusion", "horizontal_fusion", 3), given["exact_precision_mode"], given["enable_vectorization"],
        given["online_tuning"] > 0, given["reduce_fuse_depth"], given["composite_op_limit_size"], given["cpu_refer_thread_num"],
        (given["fusion_ops_level"] if given["fusion_ops_level"] is not None else int(level == 3)) >= 1,
        given["recompute_increment_threshold"], given["recompute_peak_threshold"], given["enable_expand_ops"],
        given["enable_expand_ops_only"], given["disable_expand_ops"], given["enable_cluster_ops"], given["enable_cluster_ops_only"],
        given["disable_cluster_ops"], given["enable_simplify_exprs_only"], given["disable_simplify_exprs"], on, off,
    )
