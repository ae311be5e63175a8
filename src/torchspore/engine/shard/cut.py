"""How a value lies of which each process holds a part."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torchspore.engine.shard.layout import Layout, Shape, from_matrix
from torchspore.engine.shard.mesh import Mesh


@dataclass(frozen=True)
class Cut:
    """How a Tensor lies of which this process holds a part, or nothing: a device matrix, a tensor map, the shape of the whole."""

    matrix: tuple[int, ...]
    places: tuple[Any, ...]
    shape: Shape
    stage: int | None = None
    """The stage of a pipeline whose devices hold it; None where there are no stages, or all hold it."""

    @property
    def first(self) -> int:
        """The rank of the first device that the matrix stands for."""
        return (self.stage or 0) * math.prod(self.matrix)

    def place(self, rank: int) -> int | None:
        """The number of a process among those that hold it; None where it holds nothing."""
        if self.stage is None:
            return rank % math.prod(self.matrix)
        return rank - self.first if 0 <= rank - self.first < math.prod(self.matrix) else None

    def layout(self, mesh: Mesh) -> Layout:
        """The same in a grid."""
        return from_matrix(mesh, self.matrix, self.places)
