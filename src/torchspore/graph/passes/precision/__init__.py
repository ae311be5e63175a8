"""Precision: which operators of a captured graph compute in another dtype than the program asks for, as switches say.

A graph holds forward pass, gradient and optimizer. Parameters, the optimizer's state and what the program gets keep their dtypes; casts
stand where a value is used in another one.
"""
from __future__ import annotations

import torch

from torchspore.graph.settings import Settings


def is_requested(module: torch.fx.GraphModule, settings: Settings) -> bool:
    """Return whether a switch may change a dtype in this graph."""
    return bool(settings.precision) or any(_is_rare(node) for node in module.graph.nodes)


def apply(module: torch.fx.GraphModule, settings: Settings) -> torch.fx.GraphModule:
    """The graph with the casts that `precision_mode` asks for, and those around operators that the device lacks in their dtype."""
    from torchspore.graph.passes.precision import casts, outcomes, policy, reduce

    rule = policy.named(settings.precision)
    if rule is not None:
        before = outcomes.computed_in(module)
        casts.rewritten(module, rule)
        outcomes.casts(settings, before, outcomes.computed_in(module))
    return reduce.supported(module, settings.reduces)


_COMMON = frozenset({torch.float32, torch.bool, torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16})
"""Dtypes that every device computes with, or for which no wider one would help."""


def _is_rare(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype not in _COMMON
