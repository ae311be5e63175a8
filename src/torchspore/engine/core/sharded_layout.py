"""How a value lies of which each process holds a part."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torchspore.engine.core.device_layout import Layout, Shape, from_matrix
from torchspore.engine.core.device_mesh import Mesh
from torchspore.engine.core.sharded_value import ShardedValue
from torchspore.engine.core.tensor import TensorBase


@dataclass(frozen=True)
class ShardedLayout:
    """How a Tensor lies of which this process holds a part, or nothing: a device matrix, a tensor map, the shape of the whole."""

    matrix: tuple[int, ...]
    tensor_map: tuple[Any, ...]
    shape: Shape
    stage: int | None = None
    """The stage of a pipeline whose devices hold it; None where there are not stages, or all hold it."""

    @property
    def first(self) -> int:
        """The rank of the first device that the matrix stands for."""
        return (self.stage or 0) * math.prod(self.matrix)

    def position(self, rank: int) -> int | None:
        """The number of a process among those that hold it; None where it holds nothing."""
        if self.stage is None:
            return rank % math.prod(self.matrix)
        return rank - self.first if 0 <= rank - self.first < math.prod(self.matrix) else None

    def layout(self, mesh: Mesh) -> Layout:
        """The same in a grid."""
        return from_matrix(mesh, self.matrix, self.tensor_map)


def cut_of(tensor: Any) -> ShardedLayout | None:
    """How a Tensor is cut; None where this process holds all of it."""
    layout = tensor.__dict__.get("_cut") if isinstance(tensor, TensorBase) else None
    if layout is None and isinstance(tensor, TensorBase) and isinstance(tensor._t, ShardedValue):
        return tensor._t.cut                           # computed of a result of a split graph
    return layout if isinstance(layout, ShardedLayout) else None


def note_cut(tensor: TensorBase, mesh: Mesh, layout: Layout, shape: Shape, stage: int | None = None) -> None:
    """Says how a Tensor lies from now on."""
    if layout.is_unsplit and stage is None:
        tensor.__dict__.pop("_cut", None)
    else:
        tensor.__dict__["_cut"] = ShardedLayout(*as_tensor_map(mesh, layout), shape, stage)


def as_tensor_map(mesh: Mesh, layout: Layout) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """A layout as a device matrix and a tensor map."""
    last = len(mesh.sizes) - 1
    tensor_map = tuple(
        -1 if not axes else last - axes[0] if len(axes) == 1 else tuple(last - axis for axis in axes) for axes in layout.cuts
    )
    return mesh.sizes, tensor_map
