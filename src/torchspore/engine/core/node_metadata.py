"""The names of what torchspore notes in the `meta` of a graph's nodes, beside torch's own "val" (a stand-in for the value)."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LINE, COLUMNS, STACK, SCOPE, CALLED, GRADIENT = "line", "columns", "stack", "scope", "called", "gradient"
"""Where a node comes from (provenance.py): `file:line`, columns in it, outer lines, Cell, operator of mindspore, whether its gradient."""

CALL = "call"
"""A number that the nodes of one call of an operator share, and those of its gradient (provenance.py)."""

STAGE, PART = "pipeline_stage", "part"
"""The pipeline stage that runs a node, from its Cell; the part of the batch that it computes, a number for each loop."""

RUNS_IN = "runs_in"
"""The stage that was found to run a node (`distributed.shard.pipelines.stage_assignment`)."""

MARKED = "marked"
"""Lies in a Cell that `set_dump` names."""

OFFLOADED = "offloaded"
"""Lies in a Cell whose values move out of memory; `Cell.offload`."""

BACKWARD = "backward"
"""Belongs to the backward half of a graph that is cut in two."""

OPTIMIZER = "optimizer"
"""Belongs to an optimizer's step, which keeps its dtypes."""

RECOMPUTED = "recomputed"
"""Was put in to compute a value again: equal nodes stay apart."""

SETTLED_GATHER = "settled_gather"
"""An exchange of a graph that is split: how often a weight is gathered is decided by its level, and is not changed later."""

IS_KERNEL, FUSED = "is_kernel", "fused"
"""A generated kernel; the operators that it computes."""

REFUSING = "refusing"
"""What is known of those operators of a generated kernel that may refuse values."""


def is_backward(meta: Mapping[str, Any]) -> bool:
    """Return whether a node computes gradients."""
    return bool(meta.get(GRADIENT) or meta.get(BACKWARD))
