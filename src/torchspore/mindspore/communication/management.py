"""Which processes there are, and groups of them.

`init` reads the environment as torchrun, MindSpore's msrun, mpirun, a table of ranks or `torchspore workers` leave it, and meets the
others; where it says nothing of others, this process is rank 0 of 1. What carries the bytes follows from the device: gloo for the CPU, NCCL
for a GPU, HCCL for Ascend.
"""
from __future__ import annotations

from typing import Any

from torchspore.base.text import list_choices, message, short
from torchspore.distributed.comm import environment, groups
from torchspore.distributed.comm.environment import ProcessPlace
from torchspore.distributed.comm.groups import Group
from torchspore.engine.core.device import home

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_BACKENDS = {"hccl": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP, "mccl": MCCL_WORLD_COMM_GROUP}
_OF_DEVICES = {"CPU": "mccl", "GPU": "nccl", "Ascend": "hccl"}


class GlobalComm:
    """The state of communication: the backend, the group of all processes, whether `init` was called."""

    BACKEND = "hccl"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


def init(backend_name: str | None = None) -> None:
    """Makes the group of all processes; `backend_name` is 'hccl', 'nccl', 'mccl' or None, for that of the device.

    A backend of another device than the one that operators run on is taken for that device's. A second call changes nothing.

    Raises TypeError and RuntimeError for other backends, ValueError for an environment that does not fit, RuntimeError where the other
    processes can't be met.
    """
    if backend_name is not None and not isinstance(backend_name, str):
        raise TypeError(message(f"init(backend_name={short(backend_name)})", f"a str, got {type(backend_name).__name__}"))
    if backend_name is not None and backend_name not in _BACKENDS:
        raise RuntimeError(message(f"init(backend_name={backend_name!r})", list_choices(_BACKENDS)))
    begin(backend_name)


def begin(backend_name: str | None, place: ProcessPlace | None = None, seconds: float | None = None, store: Any = None) -> None:
    """What `init` does, for a place that the caller knows, at a store of torch's that it has made."""
    groups.start(process_place=place, seconds=seconds, store=store)
    GlobalComm.BACKEND = backend_name or _OF_DEVICES[home()]
    GlobalComm.WORLD_COMM_GROUP = _BACKENDS[GlobalComm.BACKEND]
    GlobalComm.INITED = True


def release() -> None:
    """Ends communication: all groups are gone. `init` may be called again."""
    GlobalComm.INITED = False
    groups.stop()


def found(call: str, group: Any) -> Group:
    """The group of that name. Raises TypeError for no name, ValueError for no group, RuntimeError where init() is still to come."""
    if not isinstance(group, str):
        raise TypeError(message(f"{call}(group={short(group)})", f"the name of a group, got {type(group).__name__}"))
    if not groups.is_started():
        _expect_one(call)
    if group not in groups.WORLDS and group not in groups.names():
        raise ValueError(message(f"{call}(group={group!r})", "a group that create_group made"))
    return groups.find(group)


def _expect_one(call: str) -> None:
    """Refuses to answer for one process where the environment says that there are more."""
    place = environment.read()
    if place.size > 1:
        raise RuntimeError(message(f"{call} in one of {place.size} processes ({place.source})", "init() before it"))


def _member(call: str, group: Any) -> Group:
    named = found(call, group)
    if named.rank < 0:
        raise RuntimeError(message(
            f"{call}(group={group!r}) in rank {groups.rank()}", f"one of the group's processes, {list(named.ranks)}",
        ))
    return named


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The number of this process in the group."""
    return _member("get_rank", group).rank


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The number of this process among those of the group that run on its machine."""
    return groups.local_rank(_member("get_local_rank", group))


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes the group has."""
    return found("get_group_size", group).size


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes of the group run on this machine."""
    return groups.local_size(_member("get_local_rank_size", group))


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """The numbers of the group's processes among all."""
    return list(found("get_process_group_ranks", group).ranks)


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The number among all processes of the one that has `group_rank_id` in the group."""
    ranks = found("get_world_rank_from_group_rank", group).ranks
    if isinstance(group_rank_id, bool) or not isinstance(group_rank_id, int):
        raise TypeError(message(f"get_world_rank_from_group_rank(..., {short(group_rank_id)})", "an int"))
    if not 0 <= group_rank_id < len(ranks):
        raise ValueError(message(f"get_world_rank_from_group_rank({group!r}, {group_rank_id})", f"a rank from 0 to {len(ranks) - 1}"))
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The number in the group of the process that is `world_rank_id` among all."""
    ranks = found("get_group_rank_from_world_rank", group).ranks
    if isinstance(world_rank_id, bool) or not isinstance(world_rank_id, int):
        raise TypeError(message(f"get_group_rank_from_world_rank({short(world_rank_id)}, ...)", "an int"))
    if world_rank_id not in ranks:
        raise ValueError(message(f"get_group_rank_from_world_rank({world_rank_id}, {group!r})", f"one of {list(ranks)}"))
    return ranks.index(world_rank_id)


def create_group(group: str, rank_ids: list[int], options: Any = None) -> None:
    """Makes a group of the given processes, each of which calls this; the order of `rank_ids` is that of the group.

    `options` are HCCL's own and None elsewhere. Raises TypeError and ValueError for arguments that do not fit.
    """
    if not isinstance(group, str) or not isinstance(rank_ids, list):
        raise TypeError(message(f"create_group({short(group)}, {short(rank_ids)})", "a name and a list of ranks"))
    if not all(isinstance(rank, int) and not isinstance(rank, bool) for rank in rank_ids):
        raise TypeError(message(f"create_group({group!r}, rank_ids={short(rank_ids)})", "a list of ints"))
    if options is not None:
        raise ValueError(message(f"create_group(options={short(options)})", "None: the buffers of a group are torch's own"))
    if not groups.is_started():
        _expect_one("create_group")
    if not group or not rank_ids:
        raise ValueError(message(f"create_group({group!r}, rank_ids={short(rank_ids)})", "a name and at least one rank"))
    groups.create(group, rank_ids)


def destroy_group(group: str) -> None:
    """Forgets a group. Raises ValueError for the group of all processes."""
    found("destroy_group", group)
    groups.destroy(group)


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """The name of the group within the backend: the group's own."""
    found("get_comm_name", group)
    return group
