"""The whole of a Tensor of which each process holds a part, and the part of a whole."""
from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import torch

from torchspore.distributed import device_count
from torchspore.distributed.comm import collectives, groups
from torchspore.distributed.parallel import optimizer_shards
from torchspore.distributed.shard import redistribution
from torchspore.distributed.shard.pipelines.remote_tensors import RemoteTensor
from torchspore.engine.core.device_layout import unsplit
from torchspore.engine.core.device_mesh import Mesh
from torchspore.engine.core.sharded_layout import ShardedLayout, cut_of
from torchspore.engine.core.sharded_value import ShardedValue, local_part
from torchspore.engine.core.tensor import TensorBase, raw, wrap


def full_value(t: torch.Tensor, cut: ShardedLayout) -> torch.Tensor:
    """Return the full value of all processes; each of them must ask for it."""
    t = local_part(t)
    mesh, position = Mesh(cut.matrix), cut.position(device_count.rank())
    if position is not None:
        for step in redistribution.steps(mesh, cut.shape, t.element_size(), cut.layout(mesh), unsplit(len(cut.shape))):
            members = tuple(cut.first + member for member in mesh.group(position, step.axes))
            t = collectives.all_gather(t.detach(), groups.of_ranks(members), step.dim)
    if cut.stage is None:
        return t
    contiguous = t.detach().contiguous() if position is not None else torch.empty(cut.shape, dtype=t.dtype, device=t.device)
    return collectives.broadcast(contiguous, cut.first, groups.world())


def local_value(value: TensorBase) -> TensorBase:
    """Return this process's part of a value as an ordinary Tensor."""
    return wrap(local_part(raw(value)))


def is_elsewhere(value: TensorBase) -> bool:
    """Return whether another stage of a pipeline holds a value, and this process nothing of it."""
    return isinstance(raw(value), RemoteTensor)


def is_absent(cut: ShardedLayout) -> bool:
    """Return whether this process holds nothing of what is cut so."""
    return cut.position(device_count.rank()) is None


def elsewhere(t: torch.Tensor, cut: ShardedLayout) -> torch.Tensor:
    """Return a stand-in for a value of this form that another stage stores."""
    return RemoteTensor(torch.empty(t.shape, dtype=t.dtype, device="meta"), t.device, cut.stage or 0)


def from_its_stage(value: Any) -> Any:
    """The same Tensors, those that one stage holds given to all stages; each process must call it."""
    cut = cut_of(value)
    if cut is None or cut.stage is None:
        return value
    count = prod(cut.matrix)
    position = device_count.rank() % count
    group = groups.of_ranks(tuple(position + at * count for at in range(groups.size() // count)))
    t = local_part(raw(value))
    contiguous = torch.empty(t.shape, dtype=t.dtype, device=t.device) if isinstance(t, RemoteTensor) else t
    return wrap(collectives.broadcast(contiguous.detach().contiguous(), cut.stage, group))


def meet(call: str, values: Iterable[Any]) -> None:
    """Waits until all processes are here that hold parts of the values; a process that never comes is named, with what it does instead."""
    ranks: set[int] = set()
    for value in values:
        share, cut = getattr(value, "__dict__", {}).get(optimizer_shards.MARK), cut_of(value)
        if share is not None:
            ranks |= set(share.group.ranks)
        elif cut is not None:
            ranks |= set(range(groups.size() if cut.stage is not None else Mesh(cut.matrix).count))
    if ranks:
        what = f"{call} of Tensors whose parts processes hold, which each of them must call"
        collectives.meet(what, groups.of_ranks(tuple(sorted(ranks))))


def part_of(t: torch.Tensor, cut: ShardedLayout) -> torch.Tensor:
    """This process's part of a whole value."""
    mesh, position = Mesh(cut.matrix), cut.position(device_count.rank())
    if position is None:
        return elsewhere(t, cut)
    return t[cut.layout(mesh).part(mesh, cut.shape, position)].clone()


def stored_value(t: torch.Tensor, cut: ShardedLayout) -> torch.Tensor:
    """Return the storage of a split Tensor: this process's part, which computes by elements alone; another stage's values unchanged."""
    is_plain = isinstance(t, (ShardedValue, RemoteTensor)) or cut.layout(Mesh(cut.matrix)).is_unsplit
    return t if is_plain else ShardedValue(t, cut)


def alike(t: ShardedValue, cut: ShardedLayout) -> torch.Tensor:
    """This process's part of what is cut as a Parameter is; raises ValueElsewhere for what is cut otherwise."""
    if t.cut != cut:
        raise t.refused("set_data of a Parameter that is cut otherwise, by values")
    return t.part


def refitted(tensor: TensorBase, t: torch.Tensor, cut: ShardedLayout) -> torch.Tensor:
    """Return the part of new values that a split Tensor stores; values of another shape are stored in full, without a split."""
    if tuple(t.shape) == cut.shape:
        return part_of(t, cut)
    tensor.__dict__.pop("_cut", None)
    return t
