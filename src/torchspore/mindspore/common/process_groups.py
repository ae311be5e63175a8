"""The processes of a program, and groups of them.

`init` reads the environment of torchrun, MindSpore's msrun, mpirun, a rank table or `torchspore workers`, and connects to the other
processes; without information about others, this process is rank 0 of 1. The device determines the backend: gloo for the CPU, NCCL for a
GPU, HCCL for Ascend.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchspore.base.arguments import is_int
from torchspore.base.lazy_modules import import_lazily
from torchspore.base.text import list_choices, message, short
from torchspore.distributed.comm import environment, groups
from torchspore.distributed.comm.environment import ProcessInfo
from torchspore.distributed.comm.groups import Group
from torchspore.distributed.parameter_server import roles as server_roles
from torchspore.engine.devices.device import home

if TYPE_CHECKING:
    from torchspore.distributed.comm import rendezvous
else:
    import_lazily(globals(), "torchspore.distributed.comm.rendezvous")

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_BACKENDS = {"hccl": HCCL_WORLD_COMM_GROUP, "nccl": NCCL_WORLD_COMM_GROUP, "mccl": MCCL_WORLD_COMM_GROUP}
_OF_DEVICES = {"CPU": "mccl", "GPU": "nccl", "Ascend": "hccl"}


class GlobalComm:
    """The state of communication: the backend, the group of all processes, the call of `init`."""

    BACKEND = "hccl"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


def init(backend_name: str | None = None) -> None:
    """Creates the group of all processes; `backend_name` is 'hccl', 'nccl', 'mccl' or None, for that of the device.

    A backend of a device other than the one that operators run on is replaced by that device's. A second call changes nothing.

    Raises TypeError and RuntimeError for other backends, ValueError for an invalid environment, RuntimeError if the other processes
    can't be reached.
    """
    if backend_name is not None and not isinstance(backend_name, str):
        raise TypeError(message(f"init(backend_name={short(backend_name)})", f"a str, got {type(backend_name).__name__}"))
    if backend_name is not None and backend_name not in _BACKENDS:
        raise RuntimeError(message(f"init(backend_name={backend_name!r})", list_choices(_BACKENDS)))
    begin(backend_name)


def begin(backend_name: str | None, location: ProcessInfo | None = None, seconds: float | None = None, store: Any = None) -> None:
    """Run `init` for a location and a torch store from the caller. In a parameter server job, the workers form the group."""
    if server_roles.has_cluster() and location is None:
        location, store = _in_server_job()
    groups.start(process_info=location, seconds=seconds, store=store)
    GlobalComm.BACKEND = backend_name or _OF_DEVICES[home()]
    GlobalComm.WORLD_COMM_GROUP = _BACKENDS[GlobalComm.BACKEND]
    GlobalComm.INITED = True


def _in_server_job() -> tuple[ProcessInfo, Any]:
    """Join the parameter server job; return the location and store of a worker. The scheduler serves the job here and ends its process."""
    from torchspore.mindspore.common import server_session

    cluster = server_roles.read()
    if cluster.role == server_roles.SCHEDULER:
        server_session.run_scheduler(cluster)
    if cluster.role == server_roles.SERVER or cluster.workers == 1:
        return environment.ALONE, None
    membership = server_session.join(cluster)
    rank, port = membership.rank, membership.store_port
    location = ProcessInfo(rank, cluster.workers, rank, -1, cluster.host, port, "MS_ROLE, MS_WORKER_NUM")
    return location, rendezvous.open_store(cluster.host, port, None, False, cluster.timeout, False)


def release() -> None:
    """Ends communication and removes all groups. `init` may be called again."""
    GlobalComm.INITED = False
    groups.stop()
    if server_roles.has_cluster():
        from torchspore.mindspore.common import server_session

        server_session.leave()


def find_group(call: str, group: Any) -> Group:
    """Return the group of that name. Raises TypeError unless it is a name, ValueError for an unknown group, RuntimeError before init()."""
    if not isinstance(group, str):
        raise TypeError(message(f"{call}(group={short(group)})", f"the name of a group, got {type(group).__name__}"))
    if not groups.is_started():
        _expect_single_process(call)
    if group not in groups.WORLDS and group not in groups.names():
        raise ValueError(message(f"{call}(group={group!r})", "a group that create_group made"))
    return groups.find(group)


def _expect_single_process(call: str) -> None:
    """Refuse a query before init() if the environment has several processes."""
    location = environment.read()
    if location.size > 1:
        raise RuntimeError(message(f"{call} in one of {location.size} processes ({location.source})", "init() before it"))


def _member(call: str, group: Any) -> Group:
    named = find_group(call, group)
    if named.rank < 0:
        raise RuntimeError(message(
            f"{call}(group={group!r}) in rank {groups.rank()}", f"one of the group's processes, {list(named.ranks)}",
        ))
    return named


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns the rank of this process in the group."""
    return _member("get_rank", group).rank


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns the rank of this process among those of the group on its machine."""
    return groups.local_rank(_member("get_local_rank", group))


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns the number of processes of the group."""
    return find_group("get_group_size", group).size


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Returns the number of processes of the group on this machine."""
    return groups.local_size(_member("get_local_rank_size", group))


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """Returns the global ranks of the group's processes."""
    return list(find_group("get_process_group_ranks", group).ranks)


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Returns the global rank of the process with rank `group_rank_id` in the group."""
    ranks = find_group("get_world_rank_from_group_rank", group).ranks
    if not is_int(group_rank_id):
        raise TypeError(message(f"get_world_rank_from_group_rank(..., {short(group_rank_id)})", "an int"))
    if not 0 <= group_rank_id < len(ranks):
        raise ValueError(message(f"get_world_rank_from_group_rank({group!r}, {group_rank_id})", f"a rank from 0 to {len(ranks) - 1}"))
    return ranks[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Returns the rank in the group of the process with the global rank `world_rank_id`."""
    ranks = find_group("get_group_rank_from_world_rank", group).ranks
    if not is_int(world_rank_id):
        raise TypeError(message(f"get_group_rank_from_world_rank({short(world_rank_id)}, ...)", "an int"))
    if world_rank_id not in ranks:
        raise ValueError(message(f"get_group_rank_from_world_rank({world_rank_id}, {group!r})", f"one of {list(ranks)}"))
    return ranks.index(world_rank_id)


def create_group(group: str, rank_ids: list[int], options: Any = None) -> None:
    """Creates a group of these processes, each of which calls this; the order of `rank_ids` is that of the group.

    `options` are HCCL's and None elsewhere. Raises TypeError and ValueError for invalid arguments.
    """
    if not isinstance(group, str) or not isinstance(rank_ids, list):
        raise TypeError(message(f"create_group({short(group)}, {short(rank_ids)})", "a name and a list of ranks"))
    if not all(is_int(rank) for rank in rank_ids):
        raise TypeError(message(f"create_group({group!r}, rank_ids={short(rank_ids)})", "a list of ints"))
    if options is not None:
        raise ValueError(message(f"create_group(options={short(options)})", "None: torch manages the buffers of a group"))
    if not groups.is_started():
        _expect_single_process("create_group")
    if not group or not rank_ids:
        raise ValueError(message(f"create_group({group!r}, rank_ids={short(rank_ids)})", "a name and at least one rank"))
    groups.create(group, rank_ids)


def destroy_group(group: str) -> None:
    """Removes a group. Raises ValueError for the group of all processes."""
    find_group("destroy_group", group)
    groups.destroy(group)


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """Returns the name of the group within the backend: the same name."""
    find_group("get_comm_name", group)
    return group
