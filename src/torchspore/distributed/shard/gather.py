"""Gathers the full value of a split Tensor, and extracts a process's part of a full value."""
from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import torch

from torchspore.distributed import device_count
from torchspore.distributed.comm import collectives, groups
from torchspore.distributed.data_parallel import optimizer_shards
from torchspore.distributed.shard import redistribution
from torchspore.distributed.shard.pipeline_parallel.remote_tensors import RemoteTensor
from torchspore.engine.split_layouts.device_layout import unsplit
from torchspore.engine.split_layouts.device_mesh import Mesh
from torchspore.engine.split_layouts.sharded_layout import ShardedLayout, sharded_layout_of
from torchspore.engine.split_layouts.sharded_value import ShardedValue, local_part
from torchspore.engine.tensors.delayed_values import DelayedValue, is_delayed
from torchspore.engine.tensors.tensor import TensorBase, raw, wrap


def full_value(t: torch.Tensor, sharded_layout: ShardedLayout) -> torch.Tensor:
    """Gather the full value from all processes, each of which must call this function."""
    t = local_part(t)
    mesh, position = Mesh(sharded_layout.matrix), sharded_layout.position(device_count.rank())
    if position is not None:
        for step in redistribution.steps(
            mesh, sharded_layout.shape, t.element_size(), sharded_layout.layout(mesh), unsplit(len(sharded_layout.shape))
        ):
            members = tuple(sharded_layout.first + member for member in mesh.group(position, step.axes))
            t = collectives.all_gather(t.detach(), groups.of_ranks(members), step.dim)
    if sharded_layout.stage is None:
        return t
    contiguous = t.detach().contiguous() if position is not None else torch.empty(sharded_layout.shape, dtype=t.dtype, device=t.device)
    return collectives.broadcast(contiguous, sharded_layout.first, groups.world())


def local_value(value: TensorBase) -> TensorBase:
    """Return this process's part of a value as an ordinary Tensor."""
    return wrap(local_part(raw(value)))


def is_elsewhere(value: TensorBase) -> bool:
    """Return whether another stage of a pipeline holds a value, and this process nothing of it."""
    return isinstance(raw(value), RemoteTensor)


def is_absent(sharded_layout: ShardedLayout) -> bool:
    """Return whether this process stores no part of a value with this layout."""
    return sharded_layout.position(device_count.rank()) is None


def remote_value(t: torch.Tensor, sharded_layout: ShardedLayout) -> torch.Tensor:
    """Return a placeholder for a value of this shape and dtype that another stage stores."""
    return RemoteTensor(torch.empty(t.shape, dtype=t.dtype, device="meta"), t.device, sharded_layout.stage or 0)


def broadcast_from_stage(value: Any) -> Any:
    """Return the value; if one stage of a pipeline stores it, that stage sends it to all stages. Each process must call this function."""
    sharded_layout = sharded_layout_of(value)
    if sharded_layout is None or sharded_layout.stage is None:
        return value
    count = prod(sharded_layout.matrix)
    position = device_count.rank() % count
    group = groups.of_ranks(tuple(position + at * count for at in range(groups.size() // count)))
    t = local_part(raw(value))
    contiguous = torch.empty(t.shape, dtype=t.dtype, device=t.device) if isinstance(t, RemoteTensor) else t
    return wrap(collectives.broadcast(contiguous.detach().contiguous(), sharded_layout.stage, group))


def wait_for_holders(call: str, values: Iterable[Any]) -> None:
    """Wait until all processes that store parts of the values make this call. The error names a process that does something else."""
    ranks: set[int] = set()
    for value in values:
        share, sharded_layout = getattr(value, "__dict__", {}).get(optimizer_shards.MARK), sharded_layout_of(value)
        if share is not None:
            ranks |= set(share.group.ranks)
        elif sharded_layout is not None:
            ranks |= set(range(groups.size() if sharded_layout.stage is not None else Mesh(sharded_layout.matrix).count))
    if ranks:
        what = f"{call} of Tensors whose parts processes hold, which each of them must call"
        collectives.meet(what, groups.of_ranks(tuple(sorted(ranks))))


def part_of(t: torch.Tensor, sharded_layout: ShardedLayout) -> torch.Tensor:
    """Return this process's part of a full value."""
    mesh, position = Mesh(sharded_layout.matrix), sharded_layout.position(device_count.rank())
    if position is None:
        return remote_value(t, sharded_layout)
    part = sharded_layout.layout(mesh).part(mesh, sharded_layout.shape, position)
    return t.initial.draw(part) if isinstance(t, DelayedValue) and is_delayed(t) else t[part].clone()


def stored_value(t: torch.Tensor, sharded_layout: ShardedLayout) -> torch.Tensor:
    """Return the storage of a split Tensor: this process's part, on which only elementwise operators work, or another stage's value
    unchanged."""
    is_plain = isinstance(t, (ShardedValue, RemoteTensor)) or sharded_layout.layout(Mesh(sharded_layout.matrix)).is_unsplit
    return t if is_plain else ShardedValue(t, sharded_layout)


def equally_split_part(t: ShardedValue, sharded_layout: ShardedLayout) -> torch.Tensor:
    """Return this process's part of a value with the layout of a Parameter. Raises ValueElsewhere for another layout."""
    if t.sharded_layout != sharded_layout:
        raise t.error_for_operator("set_data of a Parameter that is split in another way, by values")
    return t.part


def local_part_of_data(tensor: TensorBase, t: torch.Tensor, sharded_layout: ShardedLayout) -> torch.Tensor:
    """Return the part of new values that a split Tensor stores; values of another shape are stored in full, without a split."""
    if tuple(t.shape) == sharded_layout.shape:
        return part_of(t, sharded_layout)
    tensor.__dict__.pop("_sharded_layout", None)
    return t
