"""Passes: functions that take a captured graph and give it back, with equal numbers. None drops a write or a random operator."""
from __future__ import annotations

from collections.abc import Callable

import torch

from torchspore.engine.graph.fx.aliasing import cancel_views
from torchspore.engine.graph.passes.cleanup import drop_dead, drop_idle_states, drop_same, real_constants
from torchspore.engine.graph.passes.in_place import overwrite
from torchspore.engine.graph.passes.layout import pool_channels_last

__all__ = ["clean", "drop_dead", "overwrite", "pool_channels_last"]


_CLEAN = (real_constants, drop_idle_states, drop_same, cancel_views, drop_dead)


def clean(module: torch.fx.GraphModule, after: Callable[[str, torch.fx.GraphModule], None] | None = None) -> torch.fx.GraphModule:
    """The passes that every level runs first; `after` is told the name of each and what it gave.

    `overwrite` comes last of all, when the form of the graph is settled.
    """
    for change in _CLEAN:
        module = change(module)
        if after is not None:
            after(change.__name__, module)
    return module
