"""Passes: functions from a captured graph to a graph that computes equal numbers. No pass removes a write or a random operator."""
from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from torchspore.graph.fx.modules import copy_module
from torchspore.graph.passes.cleanup import cancel_views, drop_copies, drop_dead, drop_idle_states, real_constants
from torchspore.graph.passes.composite_calls import call_composites
from torchspore.graph.passes.in_place import overwrite
from torchspore.graph.passes.layout import pool_channels_last
from torchspore.graph.passes.repeated_values import share_small_values
from torchspore.graph.passes.unused_errors import keep_errors
from torchspore.graph.report import stages

__all__ = ["CLEAN", "FINISH", "Step", "drop_dead", "pool_channels_last", "run", "with_fewest_calls"]

Pass = Callable[[torch.fx.GraphModule], torch.fx.GraphModule]
Step = tuple[str, Pass]

CLEAN: tuple[Step, ...] = tuple(
    (change.__name__, change) for change in (keep_errors, real_constants, drop_idle_states, drop_copies, cancel_views, drop_dead)
)
"""The passes that every level runs first."""

FINISH: tuple[Step, ...] = tuple(
    (change.__name__, change) for change in (share_small_values, pool_channels_last, call_composites, overwrite)
)
"""The last passes: later steps do not change the graph."""


def with_fewest_calls(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Run the last passes on a graph whose layouts are settled, in place."""
    return overwrite(call_composites(module))


def run(
    steps: Iterable[Step], module: torch.fx.GraphModule, copies: bool = False,
    keep: Callable[[str, torch.fx.GraphModule], None] | None = stages.keep,
) -> torch.fx.GraphModule:
    """Run the steps in order, check the graph at the end and return it.

    `keep`, if not None, receives the name of each step and its result. With `copies` the passes change a copy of `module`.
    """
    if copies:
        module = copy_module(module)
    if stages.now.get() is None:
        keep = None                # nothing is saved
    for name, change in steps:
        module = change(module)
        if keep is not None:
            keep(name, module)
    module.graph.lint()
    return module
