"""Counters of changes: a captured graph checks Cells, Tensors and weights again only if one of these counters has increased.

Each is increased after the change, so that a reader of the new count also reads the new value.
"""
from __future__ import annotations

cells = 0
"""Attributes, Parameters and Cells that were set on Cells."""

SETTINGS_CHANGED_AT = "_settings_changed_at_"
"""The attribute of a Cell with the count of its last change apart from `training`, which graphs of torch.compile depend on."""

generation = 0
"""Counts events that make all graphs void: hooks, another dtype to compute in."""

rebinds = 0
"""Tensors that were given another torch tensor (new shape, dtype, storage) or another property that graphs look at."""

batch_norms = 0
"""Steps of batch norms in training, whose writes into running statistics torch does not count in the tensors' `_version`."""


def cell_changed() -> None:
    """Called when an attribute, a Parameter or a Cell has been set on a Cell."""
    global cells
    cells += 1


def calls_changed() -> None:
    """Called when the way of calling Cells changes (hooks, another dtype to compute in): no earlier graph is used again."""
    global cells, generation
    cells += 1
    generation += 1

processes = 0
"""Raised when groups of processes are made or end: what graphs are split over is another one."""
