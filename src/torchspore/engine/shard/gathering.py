"""The whole of a Tensor of which each process holds a part, and the part of a whole."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from torchspore.engine.comm import collectives, groups
from torchspore.engine.parallel import shares
from torchspore.engine.shard import devices, redistribution
from torchspore.engine.shard.layout import whole
from torchspore.engine.shard.mesh import Mesh
from torchspore.engine.shard.spread import Cut, cut_of
from torchspore.engine.tensor import TensorBase


def whole_of(t: torch.Tensor, cut: Cut) -> torch.Tensor:
    """What all processes hold together; each of them must ask for it."""
    mesh, rank = Mesh(cut.matrix), devices.rank()
    for step in redistribution.steps(mesh, cut.shape, t.element_size(), cut.layout(mesh), whole(len(cut.shape))):
        t = collectives.all_gather(t.detach(), groups.of_ranks(mesh.group(rank, step.axes)), step.dim)
    return t


def meet(call: str, values: Iterable[Any]) -> None:
    """Waits until all processes are here that hold parts of the values; a process that never comes is named, with what it does instead."""
    ranks: set[int] = set()
    for value in values:
        share, cut = getattr(value, "__dict__", {}).get(shares.MARK), cut_of(value)
        if share is not None:
            ranks |= set(share.group.ranks)
        elif cut is not None:
            mesh = Mesh(cut.matrix)
            ranks |= set(mesh.group(devices.rank(), range(len(mesh.sizes))))
    if ranks:
        what = f"{call} of Tensors whose parts processes hold, which each of them must call"
        collectives.meet(what, groups.of_ranks(tuple(sorted(ranks))))


def part_of(t: torch.Tensor, cut: Cut) -> torch.Tensor:
    """This process's part of a whole value."""
    mesh = Mesh(cut.matrix)
    return t[cut.layout(mesh).part(mesh, cut.shape, devices.rank())].clone()


def refitted(tensor: TensorBase, t: torch.Tensor, cut: Cut) -> torch.Tensor:
    """What a Tensor that is cut takes over of new values: its part of a whole; of another shape all, and it is cut no more."""
    if tuple(t.shape) == cut.shape:
        return part_of(t, cut)
    tensor.__dict__.pop("_cut", None)
    return t
