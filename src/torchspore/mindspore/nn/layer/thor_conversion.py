"""Conversion of a network's layers to those with the matrices that the optimizer `thor` needs."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.basic import Dense, Embedding
from torchspore.mindspore.nn.layer.conv import Conv2d
from torchspore.mindspore.nn.layer.embedding import EmbeddingLookup
from torchspore.mindspore.nn.layer.thor_layer import Conv2dThor, DenseThor, EmbeddingLookupThor, EmbeddingThor

_KINDS: dict[type, type] = {Dense: DenseThor, Conv2d: Conv2dThor, Embedding: EmbeddingThor, EmbeddingLookup: EmbeddingLookupThor}


class ConvertNetUtils:
    """Adds the matrices that `thor` needs to a network's dense, convolutional and embedding layers."""

    def convert_to_thor_net(self, net: Cell) -> None:
        """Changes the layers in place; their Parameters stay. Raises TypeError unless the network is a Cell."""
        if not isinstance(net, Cell):
            raise TypeError(message(f"convert_to_thor_net({short(net)})", f"a Cell, got {type(net).__name__}"))
        for name, cell in list(net.cells_and_names()):
            for key, layer in list(cell.name_cells().items()):
                if type(layer) in _KINDS:
                    cell._cells[key] = _to_thor(layer, f"{name}.{key}" if name else key)
                    if hasattr(cell, "cell_list"):
                        cell.cell_list = list(cell.cells())
        net.update_cell_prefix()


def _to_thor(layer: Cell, name: str) -> Any:
    """Return the layer as one with matrices, with the same Parameters."""
    kind = _KINDS[type(layer)]
    thor_layer: Any = kind.__new__(kind)
    thor_layer.__dict__.update(layer.__dict__)
    if isinstance(thor_layer, Conv2dThor):
        thor_layer._pieces = thor_layer.in_channels // thor_layer.group * thor_layer.kernel_size[0] * thor_layer.kernel_size[1]
        thor_layer._keep_([thor_layer._pieces, thor_layer._pieces], thor_layer.out_channels)
    elif isinstance(thor_layer, DenseThor):
        thor_layer._keep_([thor_layer.in_channels, thor_layer.in_channels], thor_layer.out_channels)
    else:
        thor_layer._count, size = thor_layer.embedding_table.shape
        thor_layer._keep_([thor_layer._count], size)
    for matrix in (thor_layer.matrix_a, thor_layer.matrix_g):
        matrix.name = f"{name}.{matrix.name}"
    return thor_layer
