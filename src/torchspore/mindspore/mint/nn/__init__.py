"""`mindspore.mint.nn`: layers with PyTorch's arguments."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore.mint.nn import functional, layer
from torchspore.mindspore.mint.nn.layer import activation, basic, conv, loss, normalization, padding, pooling
from torchspore.mindspore.nn.cell import Cell


def _layers() -> dict[str, Any]:
    homes = (activation, basic, conv, loss, normalization, padding, pooling)
    return {
        name: value for home in homes for name, value in vars(home).items()
        if isinstance(value, type) and issubclass(value, Cell) and not name.startswith("_") and value is not Cell
        and value.__name__ == name and name != "Parameter"
    }


globals().update(_layers())
F = functional
__all__ = sorted({*_layers(), "Cell", "F", "functional", "layer"})
