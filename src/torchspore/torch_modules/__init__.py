"""Cells as torch Modules, and torch Modules as Cells: `torchspore.as_module` and `torchspore.as_cell`."""
