"""Passes: functions that take a captured graph and give it back, with equal numbers. None drops a write or a random operator."""
from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from torchspore.graph.fx.modules import copied
from torchspore.graph.passes.cleanup import cancel_views, drop_copies, drop_dead, drop_idle_states, real_constants
from torchspore.graph.passes.in_place import overwrite
from torchspore.graph.passes.layout import pool_channels_last
from torchspore.graph.report import stages

__all__ = ["CLEAN", "FINISH", "Step", "drop_dead", "overwrite", "pool_channels_last", "run"]

Pass = Callable[[torch.fx.GraphModule], torch.fx.GraphModule]
Step = tuple[str, Pass]

CLEAN: tuple[Step, ...] = tuple(
    (change.__name__, change) for change in (real_constants, drop_idle_states, drop_copies, cancel_views, drop_dead)
)
"""The passes that every level runs first."""

FINISH: tuple[Step, ...] = (("pool_channels_last", pool_channels_last), ("overwrite", overwrite))
"""The last passes, when the form of the graph is settled."""


def run(
    steps: Iterable[Step], module: torch.fx.GraphModule, copies: bool = False,
    keep: Callable[[str, torch.fx.GraphModule], None] | None = stages.keep,
) -> torch.fx.GraphModule:
    """Run the steps in order and check the graph at the end; `keep`, if there is one, receives each graph.

    With `copies` the graph that is given stays as it is.
    """
    if copies:
        module = copied(module)
    if stages.now.get() is None:
        keep = None                # nothing is saved
    for name, change in steps:
        module = change(module)
        if keep is not None:
            keep(name, module)
    module.graph.lint()
    return module
