"""The groups of `mint.distributed`, on those of `mindspore.communication`."""
from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from torchspore.base.arguments import check_int_type
from torchspore.base.text import list_choices, message, short
from torchspore.distributed.comm import environment
from torchspore.distributed.comm.environment import ALONE, ProcessInfo
from torchspore.mindspore.common import process_groups
from torchspore.mindspore.ops.process_groups.store import TCPStore

_BACKENDS = ("hccl", "nccl", "mccl")
_ADDRESS = re.compile(r"tcp://.+:\d+")


class _Groups:
    """Number of groups that the program has created."""

    def __init__(self) -> None:
        self.count = 0


_GROUPS = _Groups()


def named(group: Any) -> str:
    """Return the name of `group`, a str or None for all processes. Raises TypeError and ValueError for other values."""
    if group is not None and not isinstance(group, str):
        raise TypeError(message(f"group={short(group)}", f"the name of a group or None, got {type(group).__name__}"))
    name = process_groups.GlobalComm.WORLD_COMM_GROUP if group is None else group
    process_groups.get_group_size(name)
    return name


def is_available() -> bool:
    """Return whether mint.distributed can be used."""
    return True


def is_initialized() -> bool:
    """Return whether `init_process_group` was called."""
    return process_groups.GlobalComm.INITED


def _explicit_rank(init_method: str | None, world_size: int, rank: int) -> ProcessInfo | None:
    """Return the rank and address from the arguments, or None if the environment has them."""
    for key, value in (("world_size", world_size), ("rank", rank)):
        check_int_type("init_process_group", key, value)
    if world_size in (-1, 1) and rank in (-1, 0):
        return ALONE if world_size == 1 else None
    from_environment = environment.read()
    if from_environment.size > 1 and world_size in (-1, from_environment.size) and rank in (-1, from_environment.rank):
        return None
    if not 0 <= rank < world_size:
        hint = "write both, or start the processes by `torchspore workers` or msrun, which set the environment"
        raise ValueError(message(
            f"init_process_group(world_size={world_size}, rank={rank})", "a rank among world_size processes", hint=hint,
        ))
    host, _, port = (init_method or f"tcp://{environment.HOST}:{environment.PORT}").removeprefix("tcp://").rpartition(":")
    return ProcessInfo(rank, world_size, -1, -1, host.strip("[]"), int(port), "init_process_group(world_size, rank)")


def init_process_group(
    backend: str = "hccl", init_method: str | None = None, timeout: Any = None, world_size: int = -1, rank: int = -1, store: Any = None,
    group_name: str = "", pg_options: Any = None, device_id: Any = None,
) -> None:
    """Create the group of all processes, which connect at `init_method` ('tcp://host:port'), at `store` or as the environment says.

    Raises ValueError for a rank outside `world_size`, for `pg_options` and for a separate device (`set_device` chooses the device);
    TypeError for a store that is not a TCPStore.
    """
    if backend not in _BACKENDS:
        error = ValueError if isinstance(backend, str) else TypeError
        raise error(message(f"init_process_group({short(backend)})", list_choices(_BACKENDS)))
    if init_method is not None and not (isinstance(init_method, str) and _ADDRESS.fullmatch(init_method)):
        raise ValueError(message(f"init_process_group(init_method={short(init_method)})", "None or a text such as 'tcp://127.0.0.1:8118'"))
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(message(f"init_process_group(timeout={short(timeout)})", "None or a timedelta"))
    for key, value in (("pg_options", pg_options), ("device_id", device_id)):
        if value is not None:
            raise ValueError(message(f"init_process_group({key}={short(value)})", "None: options are not supported"))
    if group_name:
        raise ValueError(message(f"init_process_group(group_name={short(group_name)})", "'': the group has the backend's name"))
    seconds = None if timeout is None else timeout.total_seconds()
    if store is None:
        process_groups.begin(backend, _explicit_rank(init_method, world_size, rank), seconds)
        return
    if not isinstance(store, TCPStore):
        raise TypeError(message(f"init_process_group(store={short(store)})", f"a TCPStore, got {type(store).__name__}"))
    if init_method is not None:
        raise ValueError(message(f"init_process_group(init_method={init_method!r}, store=...)", "one of both"))
    explicit_rank = _explicit_rank(f"tcp://{store.host}:{store.port}", world_size, rank)
    process_groups.begin(backend, explicit_rank, seconds, store._store)


def destroy_process_group(group: str | None = None) -> None:
    """Delete a group; None ends communication."""
    if group is None or named(group) == process_groups.GlobalComm.WORLD_COMM_GROUP:
        process_groups.release()
    else:
        process_groups.destroy_group(group)


def get_rank(group: str | None = None) -> int:
    """Return the rank of this process in the group."""
    return process_groups.get_rank(named(group))


def get_world_size(group: str | None = None) -> int:
    """Return the number of processes in the group."""
    return process_groups.get_group_size(named(group))


def get_backend(group: str | None = None) -> str:
    """Return the backend of the group: 'hccl', 'nccl' or 'mccl', from `init_process_group`."""
    named(group)
    return process_groups.GlobalComm.BACKEND


def new_group(
    ranks: Any = None, timeout: Any = None, backend: str | None = None, pg_options: Any = None, use_local_synchronization: bool = False,
    group_desc: str | None = None,
) -> str:
    """Create a group of `ranks` (None: all) and return its name: `group_desc`, or a generated name.

    Reserved arguments are refused unless they have their defaults.
    """
    reserved = (("timeout", timeout), ("pg_options", pg_options), ("use_local_synchronization", use_local_synchronization or None))
    for key, value in reserved:
        if value is not None:
            raise ValueError(message(f"new_group({key}={short(value)})", "its default: it is reserved"))
    if backend is not None and backend not in _BACKENDS:
        raise ValueError(message(f"new_group(backend={short(backend)})", list_choices(_BACKENDS)))
    if ranks is None:
        return process_groups.GlobalComm.WORLD_COMM_GROUP
    _GROUPS.count += 1
    name = group_desc or f"mint_group_{_GROUPS.count}"
    process_groups.create_group(name, list(ranks))
    return name


def get_global_rank(group: str | None, group_rank: int) -> int:
    """Return the global rank of the process with rank `group_rank` in the group."""
    return process_groups.get_world_rank_from_group_rank(named(group), group_rank)


def get_group_rank(group: str | None, global_rank: int) -> int:
    """Return the rank in the group of the process with the global rank `global_rank`."""
    return process_groups.get_group_rank_from_world_rank(global_rank, named(group))


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """Return the global ranks of the group's processes."""
    return process_groups.get_process_group_ranks(named(group))
