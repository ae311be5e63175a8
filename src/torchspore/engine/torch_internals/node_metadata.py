"""The keys of torchspore's annotations in the `meta` of a graph's nodes. torch's key "val" contains a fake tensor."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LINE, COLUMNS, STACK, SCOPE, CALLED, GRADIENT = "line", "columns", "stack", "scope", "called", "gradient"
"""The origin of a node (provenance.py): `file:line`, columns, outer lines, Cell, MindSpore operator, True for its gradient."""

CALL = "call"
"""A number that the nodes of one call of an operator share, and those of its gradient (provenance.py)."""

PRIMITIVE = "primitive"
"""The call of a primitive with a strategy: a number of the call, the primitive's name, its attributes, the form of its arguments."""

STAGE, PART = "pipeline_stage", "part"
"""The pipeline stage that runs a node, from its Cell; the part of the batch that it computes, a number for each loop."""

RUNS_IN = "runs_in"
"""The pipeline stage that runs a node (`distributed.shard.pipeline_parallel.stage_assignment`)."""

MARKED = "marked"
"""True for nodes of a Cell that `set_dump` names."""

OFFLOADED = "offloaded"
"""True for nodes of a Cell on which the program called `Cell.offload`."""

BACKWARD = "backward"
"""True for nodes of the backward part of a graph that is split in two."""

OPTIMIZER = "optimizer"
"""True for nodes of an optimizer's step, which keep their dtypes."""

EARLY_UPDATE = "early_update"
"""True for an optimizer's update of one Parameter that runs as soon as its gradient is computed."""

RECOMPUTED = "recomputed"
"""True for inserted nodes that recompute a value; they are not merged with equal nodes."""

SETTLED_GATHER = "settled_gather"
"""True for a gather of a weight in a split graph; later passes do not gather the weight again."""

SCHEDULED_EXCHANGE = "scheduled_exchange"
"""True for an exchange of a split graph whose position `distributed.shard.exchange_schedule` has chosen."""

KEPT_FOR_ERRORS = "kept_for_errors"
"""True for an operator without users that may raise an error (`graph.passes.unused_errors`)."""

IS_KERNEL, FUSED = "is_kernel", "fused"
"""True for the call of a generated kernel; the operators that the kernel computes."""

REFUSING = "refusing"
"""The metadata of the operators of a generated kernel that may raise errors for some values."""


def is_backward(meta: Mapping[str, Any]) -> bool:
    """Return whether a node computes gradients."""
    return bool(meta.get(GRADIENT) or meta.get(BACKWARD))
