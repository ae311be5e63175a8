"""The layout of a value that is split among processes."""
from __future__ import annotations

import math
from typing import Any

from torchspore.base.lazy_dataclasses import dataclass
from torchspore.engine.split_layouts.device_layout import Layout, Shape, from_matrix
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.split_layouts.sharded_value import ShardedValue
from torchspore.engine.tensors.tensor import TensorBase


@dataclass(frozen=True)
class ShardedLayout:
    """The layout of a split Tensor, of which this process stores one part or none: a device matrix, a tensor map, the full shape."""

    matrix: tuple[int, ...]
    tensor_map: tuple[Any, ...]
    shape: Shape
    stage: int | None = None
    """The pipeline stage whose devices store it; None without stages, or if all stages store it."""

    @property
    def first(self) -> int:
        """The rank of the first device of the matrix."""
        return (self.stage or 0) * math.prod(self.matrix)

    def position(self, rank: int) -> int | None:
        """Return the index of a process among those that store the value; None if it stores no part."""
        if self.stage is None:
            return rank % math.prod(self.matrix)
        return rank - self.first if 0 <= rank - self.first < math.prod(self.matrix) else None

    def layout(self, mesh: Mesh) -> Layout:
        """Return the layout as splits along the axes of a grid."""
        return from_matrix(mesh, self.matrix, self.tensor_map)


def sharded_layout_of(tensor: Any) -> ShardedLayout | None:
    """Return the layout of a split Tensor; None if this process stores the full value."""
    layout = tensor.__dict__.get("_sharded_layout") if isinstance(tensor, TensorBase) else None
    if layout is None and isinstance(tensor, TensorBase) and isinstance(tensor._t, ShardedValue):
        return tensor._t.sharded_layout                           # computed from a result of a split graph
    return layout if isinstance(layout, ShardedLayout) else None


def set_sharded_layout(tensor: TensorBase, mesh: Mesh, layout: Layout, shape: Shape, stage: int | None = None) -> None:
    """Set the layout of a Tensor."""
    if layout.is_unsplit and stage is None:
        tensor.__dict__.pop("_sharded_layout", None)
    else:
        tensor.__dict__["_sharded_layout"] = ShardedLayout(*as_tensor_map(mesh, layout), shape, stage)


def as_tensor_map(mesh: Mesh, layout: Layout) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """Return a layout as a device matrix and a tensor map."""
    last = len(mesh.sizes) - 1
    tensor_map = tuple(
        -1 if not axes else last - axes[0] if len(axes) == 1 else tuple(last - axis for axis in axes) for axes in layout.dim_axes
    )
    return mesh.sizes, tensor_map
