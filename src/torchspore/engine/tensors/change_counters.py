"""Counts of what changes: a captured graph looks at Cells, Tensors and weights again only where one of these has moved on.

Each is raised after the change, so that who sees the new count sees the new value too.
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
    """Is told when an attribute, a Parameter or a Cell has been set on a Cell."""
    global cells
    cells += 1


def calls_changed() -> None:
    """Is told when Cells are called in another way (hooks, another dtype to compute in): no graph captured before is used again."""
    global cells, generation
    cells += 1
    generation += 1

processes = 0
"""Raised when groups of processes are made or end: what graphs are split over is another one."""
