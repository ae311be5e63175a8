"""The group of processes of this training: one process, rank 0 of 1.

A program that was started as one of several processes is told that this is not built yet, instead of training alone without a word.
"""
from __future__ import annotations

import os
from typing import Any

from torchspore.base.text import message, one_of, short

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_WORLDS = (HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP)
_BACKENDS = {"hccl": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP, "mccl": MCCL_WORLD_COMM_GROUP}
_SIZES = ("RANK_SIZE", "MS_WORKER_NUM", "OMPI_COMM_WORLD_SIZE")

_groups: dict[str, list[int]] = {}


class GlobalComm:
    """The state of communication: the backend, the group of all processes, whether `init` was called."""

    BACKEND = "hccl"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


def _processes() -> int:
    for name in _SIZES:
        value = os.environ.get(name)
        if value is not None:
            if not value.isdigit() or int(value) < 1:
                raise ValueError(message(f"{name}={value!r}", "the number of processes"))
            if int(value) > 1:
                return int(value)
    return 1


def init(backend_name: str | None = None) -> None:
    """Makes the group of all processes; `backend_name` is 'hccl', 'nccl', 'mccl' or None.

    Raises TypeError and RuntimeError for other backends, RuntimeError where the environment says that there are several processes: that is
    not built yet.
    """
    if backend_name is not None and not isinstance(backend_name, str):
        raise TypeError(message(f"init(backend_name={short(backend_name)})", f"a str, got {type(backend_name).__name__}"))
    if backend_name is not None and backend_name not in _BACKENDS:
        raise RuntimeError(message(f"init(backend_name={backend_name!r})", one_of(_BACKENDS)))
    count = _processes()
    if count > 1:
        name = next(name for name in _SIZES if os.environ.get(name, "1") != "1")
        raise RuntimeError(
            message(
                f"init() with {name}={count}",
                "one process: several are not in torchspore yet",
                hint=f"unset {name} to train in one process",
            )
        )
    GlobalComm.BACKEND = backend_name or "mccl"
    GlobalComm.WORLD_COMM_GROUP = _BACKENDS[GlobalComm.BACKEND]
    GlobalComm.INITED = True


def release() -> None:
    """Ends communication."""
    GlobalComm.INITED = False
    _groups.clear()


def _ranks(call: str, group: Any) -> list[int]:
    if not isinstance(group, str):
        raise TypeError(message(f"{call}(group={short(group)})", f"the name of a group, got {type(group).__name__}"))
    if group in _WORLDS:
        return [0]
    if group not in _groups:
        raise ValueError(message(f"{call}(group={group!r})", "a group that create_group made"))
    return _groups[group]


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The number of this process in the group: 0."""
    return _ranks("get_rank", group).index(0)


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The number of this process among those of its machine: 0."""
    return _ranks("get_local_rank", group).index(0)


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes the group has: 1."""
    return len(_ranks("get_group_size", group))


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes of the group run on this machine: 1."""
    return len(_ranks("get_local_rank_size", group))


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """The numbers of the group's processes among all: [0]."""
    return list(_ranks("get_process_group_ranks", group))


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The number among all processes of the one that has `group_rank_id` in the group."""
    ranks = _ranks("get_world_rank_from_group_rank", group)
    if not isinstance(group_rank_id, int):
        raise TypeError(message(f"get_world_rank_from_group_rank(..., {short(group_rank_id)})", "an int"))
    if not 0 <= group_rank_id < len(ranks):
        raise ValueError(message(f"get_world_rank_from_group_rank({group!r}, {group_rank_id})", f"a rank from 0 to {len(ranks) - 1}"))
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The number in the group of the process that is `world_rank_id` among all."""
    ranks = _ranks("get_group_rank_from_world_rank", group)
    if not isinstance(world_rank_id, int):
        raise TypeError(message(f"get_group_rank_from_world_rank({short(world_rank_id)}, ...)", "an int"))
    if world_rank_id not in ranks:
        raise ValueError(message(f"get_group_rank_from_world_rank({world_rank_id}, {group!r})", f"one of {ranks}"))
    return ranks.index(world_rank_id)


def create_group(group: str, rank_ids: list[int], options: Any = None) -> None:
    """Makes a group of the given processes; with one process, [0]. Raises TypeError and ValueError for arguments that do not fit."""
    if not isinstance(group, str) or not isinstance(rank_ids, list):
        raise TypeError(message(f"create_group({short(group)}, {short(rank_ids)})", "a name and a list of ranks"))
    if not group or rank_ids != [0]:
        raise ValueError(message(f"create_group({group!r}, rank_ids={short(rank_ids)})", "a name and [0], the one process there is"))
    if group in _groups or group in _WORLDS:
        raise ValueError(message(f"create_group({group!r}, ...)", "a name that is not taken"))
    _groups[group] = list(rank_ids)


def destroy_group(group: str) -> None:
    """Forgets a group. Raises ValueError for the group of all processes."""
    if group in _WORLDS:
        raise ValueError(message(f"destroy_group({group!r})", "a group that create_group made"))
    _ranks("destroy_group", group)
    del _groups[group]


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """The name of the group within the backend: the group's own."""
    _ranks("get_comm_name", group)
    return group
