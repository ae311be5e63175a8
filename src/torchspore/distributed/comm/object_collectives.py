"""Python objects between processes: pickled, as torch sends them, after all processes of a group agree to the exchange."""
from __future__ import annotations

import copy
from typing import Any

import torch

from torchspore.distributed.comm import collectives, groups
from torchspore.distributed.comm.groups import Group


def all_gather(value: Any, group: Group) -> list[Any]:
    """The objects of all processes."""
    if group.size == 1:
        return [copy.deepcopy(value)]
    gathered: list[Any] = [None] * group.size
    collectives.meet("an exchange of all objects", group)
    torch.distributed.all_gather_object(gathered, value, groups.process_group(group))
    return gathered


def gather(value: Any, root: int, group: Group) -> list[Any] | None:
    """The objects of all processes for the one at `root`, None for the others."""
    if group.size == 1:
        return [copy.deepcopy(value)]
    gathered: list[Any] | None = [None] * group.size if group.rank == root else None
    collectives.meet(f"an exchange of objects for rank {group.ranks[root]}", group)
    torch.distributed.gather_object(value, gathered, group.ranks[root], groups.process_group(group))
    return gathered


def broadcast(values: list[Any], root: int, group: Group) -> list[Any]:
    """The objects of the process at `root`; the others give as many."""
    received = list(values)
    if group.size > 1:
        collectives.meet(f"an exchange of {len(received)} objects of rank {group.ranks[root]}", group)
        torch.distributed.broadcast_object_list(received, group.ranks[root], groups.process_group(group))
    return received


def scatter(values: list[Any] | None, root: int, group: Group) -> Any:
    """One of the objects at the process at `root`, which has as many as there are processes."""
    if group.size == 1:
        return copy.deepcopy(values[0] if values else None)
    received: list[Any] = [None]
    collectives.meet(f"an exchange that shares out objects of rank {group.ranks[root]}", group)
    torch.distributed.scatter_object_list(received, values if group.rank == root else None, group.ranks[root], groups.process_group(group))
    return received[0]


def send(values: list[Any], target: int, group: Group) -> None:
    """Sends objects to the process at `target`."""
    torch.distributed.send_object_list(values, group.ranks[target], groups.process_group(group))


def receive(values: list[Any], source: int, group: Group) -> list[Any]:
    """As many objects as `values` has, from the process at `source`."""
    received = list(values)
    torch.distributed.recv_object_list(received, group.ranks[source], groups.process_group(group))
    return received
