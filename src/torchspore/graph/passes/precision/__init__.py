"""Precision passes: options let operators of a captured graph compute in another dtype than the program requests.

A graph contains the forward pass, gradients and the optimizer. Parameters, optimizer states and results keep their dtypes. A cast is
inserted where an operator uses a value in another dtype.
"""
from __future__ import annotations

import torch

from torchspore.graph.settings import Settings


def is_requested(module: torch.fx.GraphModule, settings: Settings) -> bool:
    """Return whether an option may change a dtype in this graph."""
    return bool(settings.precision) or any(_is_rare(node) for node in module.graph.nodes)


def apply(module: torch.fx.GraphModule, settings: Settings) -> torch.fx.GraphModule:
    """Insert the casts of `precision_mode`, and casts around operators that the device lacks in their dtype, in place."""
    from torchspore.graph.passes.precision import casts, outcomes, policy, reduce

    rule = policy.policy_named(settings.precision)
    if rule is not None:
        before = outcomes.count_dtypes(module)
        casts.insert_casts(module, rule)
        outcomes.report_casts(settings, before, outcomes.count_dtypes(module))
    return reduce.cast_unsupported(module, settings.reduces)


_COMMON = frozenset({torch.float32, torch.bool, torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16})
"""Dtypes that every device supports, or for which a wider dtype would not help."""


def _is_rare(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype not in _COMMON
