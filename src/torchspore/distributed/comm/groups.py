"""The group of all processes, and the groups that the program or the engine creates.

torch's operators refer to a group by its *key*: its name, its ranks and a count. The key is equal in all processes of the group and in each
run, so that a graph with collectives can be cached. A group of one process has no group in torch.
"""
from __future__ import annotations

import atexit
import functools
import socket
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch

from torchspore.base.lazy_modules import import_lazily
from torchspore.base.text import message, short, with_hint
from torchspore.context.store import STORE
from torchspore.distributed.comm import environment, rank_lists
from torchspore.distributed.comm.environment import ALONE, ProcessInfo
from torchspore.engine import process
from torchspore.engine.devices import device, gpu_kinds
from torchspore.engine.tensors import change_counters
from torchspore.engine.torch_internals import torch_process_groups

if TYPE_CHECKING:
    from torchspore.distributed.comm import agreement, channels, peer_liveness, reduction_terms, rendezvous, torch_diagnosis, watchdog
else:                                     # a single process needs none of them
    import_lazily(globals(), *(f"{__package__}.{name}" for name in (
        "agreement", "channels", "peer_liveness", "reduction_terms", "rendezvous", "torch_diagnosis", "watchdog",
    )))

WORLDS = ("hccl_world_group", "nccl_world_group", "mccl_world_group")
"""The names of the group of all processes in MindSpore's three backends; here they refer to the same group."""
DEFAULT_TIMEOUT = 600.0
"""The default time limit in seconds of an exchange and of the rendezvous."""


@dataclass(frozen=True)
class Group:
    """A group of processes by their global ranks; the index in `ranks` is the rank within the group."""

    name: str
    ranks: tuple[int, ...]
    key: str = ""
    """The name by which torch's operators refer to it."""

    @property
    def size(self) -> int:
        """The number of processes."""
        return len(self.ranks)

    @property
    def rank(self) -> int:
        """The rank of this process within the group; -1 if it is not a member."""
        local_rank = rank()
        return self.ranks.index(local_rank) if local_rank in self.ranks else -1


@dataclass
class _State:
    """The groups and connections that `start` created."""

    process_info: ProcessInfo
    store: Any
    groups: dict[str, Group]
    process_groups: dict[str, Any]
    """torch's ProcessGroup of each group of several processes, by the group's key."""
    name_counts: dict[str, int]
    """The number of groups that had each name."""
    sockets: frozenset[int] = frozenset()
    """The sockets of torch's groups."""
    hosts: dict[str, list[str]] = field(default_factory=dict)
    """The machines of each group's processes by the group's key, filled at the first query."""


_single_process = Group(WORLDS[0], (0,))


class _Process:
    """The connection of this process to the others."""

    def __init__(self) -> None:
        self.state: _State | None = None


_PROCESS = _Process()


def start(backend: str | None = None, process_info: ProcessInfo | None = None, seconds: float | None = None, store: Any = None) -> Group:
    """Create and return the group of all processes. A second call changes nothing.

    `process_info` is by default read from the environment. `store` is a store that the program created, for the rendezvous. `backend` is
    torch's ('gloo', 'nccl', 'hccl'), by default that of the current device. Raises ValueError for an inconsistent environment, and
    RuntimeError on Apple's mps, if the other processes cannot be reached within `seconds`, or if they run another program.
    """
    if _PROCESS.state is not None:
        return world()
    process_info = environment.read() if process_info is None else process_info
    if process_info.size == 1 and process_info.role == "worker":
        _PROCESS.state = _State(ALONE, None, {}, {}, {})
        return world()
    if device.current().type == gpu_kinds.MPS:
        raise RuntimeError(with_hint("init(): torch has no communication library for Apple's mps, the GPU of this machine.",
                                     "TORCHSPORE_DEVICE=CPU lets several processes run on the CPU"))
    seconds = seconds or process_info.seconds or DEFAULT_TIMEOUT
    is_initialized = torch.distributed.is_initialized()           # by Ray Train or by the program
    if is_initialized:
        store, process_info = rendezvous.join_initialized(torch_process_groups.adopted_store(_WORLD), process_info)
    else:
        store, process_info = rendezvous.join_run(process_info, seconds, store)
    _choose_device(process_info)
    agreement.agree(store, process_info, seconds)
    watchdog.watch = watchdog.Watchdog(store, process_info.rank, process_info.size, seconds, process_info.host)
    before = peer_liveness.connections()
    if has_queue():
        torch_diagnosis.prepare()
    if not is_initialized:
        try:
            torch_process_groups.start_processes(
                backend or _backend(), store, process_info.rank, process_info.size, timedelta(seconds=seconds), key=_WORLD
            )
        except RuntimeError as error:
            raise _connection_error(error, process_info) from None
    watchdog.watch.store_process_ids()
    rendezvous.report_connected(store, _WORLD)
    world_group = Group(WORLDS[0], tuple(range(process_info.size)), _WORLD)
    _PROCESS.state = _State(process_info, store, {}, {_WORLD: torch.distributed.group.WORLD}, {}, peer_liveness.connections() - before)
    _PROCESS.state.groups.update(dict.fromkeys(WORLDS, world_group))
    process.world = process.World(process_info.rank, process_info.size)
    change_counters.processes += 1
    atexit.register(stop)
    return world_group


_WORLD = "world"


def _connection_error(error: Exception, process_info: ProcessInfo) -> Exception:
    """Return the error for a process that left while the connections were made, and end the watchdog."""
    failed_watch, watchdog.watch = watchdog.watch, None
    assert failed_watch is not None
    try:
        return failed_watch.connection_error(error, "init()", _WORLD, tuple(range(process_info.size)))
    finally:
        failed_watch.end()


def _backend() -> str:
    kind = device.current().type
    return {"cuda": "cpu:gloo,cuda:nccl", "xpu": "cpu:gloo,xpu:xccl", "npu": "cpu:gloo,npu:hccl"}.get(kind, "gloo")


def _choose_device(process_info: ProcessInfo) -> None:
    """Assign a separate accelerator to each process of a machine, unless the program sets one."""
    target = STORE.get("device_target")
    if target != "CPU" and 0 <= process_info.local_rank < device.count(target):
        STORE.learn_default("device_id", process_info.local_rank)


def stop() -> None:
    """End the groups. The wait for other processes is limited to seconds."""
    state, _PROCESS.state = _PROCESS.state, None
    process.world = process.World()
    change_counters.processes += 1
    if state is None or state.store is None:
        return
    atexit.unregister(stop)
    is_broken = False
    if watchdog.watch is not None:
        is_broken = watchdog.watch.is_broken
        if is_broken:
            peer_liveness.shut_down_connections(state.sockets)      # a thread may wait in an exchange that never completes
        watchdog.watch.end()
        watchdog.watch = None
    if not is_broken:
        sizes = {key: len(ranks_of(key)) if key != _WORLD else state.process_info.size for key in state.process_groups}
        rendezvous.wait_for_connected(state.store, sizes)
    change_counters.calls_changed()                  # graphs refer to groups by keys, which a later group may have
    rendezvous.leave(state.store, state.process_info, waits=not is_broken)
    if is_broken:
        torch_process_groups.abandon_processes(list(state.process_groups.values()))
    else:
        torch_process_groups.stop_processes([_WORLD])


def is_started() -> bool:
    """Return whether `start` was called without a later `stop`."""
    return _PROCESS.state is not None


def is_distributed() -> bool:
    """Return whether this process is one of several."""
    return _PROCESS.state is not None and _PROCESS.state.store is not None


def world() -> Group:
    """Return the group of all processes; before `start`, of this process alone or of the processes that it simulates."""
    count = environment.simulated_size()
    if count > 1 and (_PROCESS.state is None or _PROCESS.state.store is None):
        return Group(WORLDS[0], tuple(range(count)))
    return _single_process if _PROCESS.state is None or _PROCESS.state.store is None else _PROCESS.state.groups[WORLDS[0]]


def find(name: str) -> Group:
    """Return the group of this name. Raises ValueError for an unknown name."""
    if name in WORLDS:
        return world()
    group = None if _PROCESS.state is None else _PROCESS.state.groups.get(name)
    if group is None:
        raise ValueError(message(f"group={short(name)}", "a group that create_group made"))
    return group


def names() -> tuple[str, ...]:
    """Return the names of the created groups."""
    return () if _PROCESS.state is None else tuple(name for name in _PROCESS.state.groups if name not in WORLDS)


def create(name: str, ranks: tuple[int, ...] | list[int]) -> Group:
    """Create a group, or return the existing group with this name and these ranks. Each member must create it; other processes may.

    Raises ValueError for a name that another group has and for invalid ranks, RuntimeError before `start`.
    """
    if _PROCESS.state is None:
        if environment.read().size > 1:
            raise RuntimeError(message(f"create_group({name!r}, ...)", "init() before it"))
        _PROCESS.state = _State(ALONE, None, {}, {}, {})
    members = tuple(ranks)
    if name in WORLDS or name in _PROCESS.state.groups:
        if name not in WORLDS and _PROCESS.state.groups[name].ranks == members:
            return _PROCESS.state.groups[name]
        raise ValueError(message(f"create_group({name!r}, ...)", "a name that is not taken"))
    if not members or len(set(members)) < len(members) or not all(0 <= rank < size() for rank in members):
        raise ValueError(message(f"create_group({name!r}, rank_ids={short(list(ranks))})", f"ranks from 0 to {size() - 1}, each once"))
    _PROCESS.state.name_counts[name] = count = _PROCESS.state.name_counts.get(name, 0) + 1
    key = f"{name}:{rank_lists.to_text(members)}:{count}"
    group = _PROCESS.state.groups[name] = Group(name, members, key)
    if len(members) > 1 and rank() in members:
        _wait_for_members(group)
        before = peer_liveness.connections()
        try:
            _PROCESS.state.process_groups[key] = torch_process_groups.new_processes(members, key)
        except RuntimeError as error:
            assert watchdog.watch is not None
            raise watchdog.watch.connection_error(error, f"create_group({name!r})", key, members) from None
        _PROCESS.state.sockets |= peer_liveness.connections() - before
        rendezvous.report_connected(_PROCESS.state.store, key)
    return group


class _GroupCreation:
    """The creation of a group as an exchange with a wait. gloo would not report which member is missing; the watchdog does."""

    def __init__(self, store: Any, group: Group) -> None:
        self._store, self._key, self._has_ended = store, f"created/{group.key}", False
        if int(store.add(f"creating/{group.key}", 1)) == group.size:
            store.set(self._key, "")

    def wait(self, timeout: timedelta) -> None:
        """Wait until all members have called `create`. Raises RuntimeError."""
        begun = time.monotonic()
        try:
            self._store.wait([self._key], timeout)
        except RuntimeError:
            self._has_ended = time.monotonic() - begun < 0.9 * timeout.total_seconds()     # the store is gone for good
            raise

    def is_completed(self) -> bool:
        """Return whether a further wait is useless."""
        return self._has_ended


def _wait_for_members(group: Group) -> None:
    """Wait until all members create the group. Raises CommunicationError, which names a member that does something else."""
    assert watchdog.watch is not None and _PROCESS.state is not None
    waiting = watchdog.watch.begin(group.key + "/made", f"create_group({group.name!r})", None, group.ranks)
    watchdog.watch.finish(_GroupCreation(_PROCESS.state.store, group), waiting)


def destroy(name: str) -> None:
    """Remove a group. Raises ValueError for an unknown name and for the group of all processes."""
    group = find(name)
    if name in WORLDS or _PROCESS.state is None:
        raise ValueError(message(f"destroy_group({name!r})", "a group that create_group made"))
    del _PROCESS.state.groups[name]
    change_counters.calls_changed()
    torch_group = _PROCESS.state.process_groups.pop(group.key, None)
    if torch_group is not None:
        rendezvous.wait_for_connected(_PROCESS.state.store, {group.key: group.size})       # others may still be connecting to this process
        torch.distributed.destroy_process_group(torch_group)


def of_ranks(ranks: tuple[int, ...]) -> Group:
    """Return the engine's group of these processes, created at the first call. All members must create their groups in the same order."""
    members = tuple(ranks)
    if members == world().ranks:
        return world()
    if len(members) == 1:
        return Group(f"rank_{members[0]}", members)
    name = "ranks_" + rank_lists.to_text(members)
    if _PROCESS.state is not None and name in _PROCESS.state.groups:
        return _PROCESS.state.groups[name]
    return create(name, members)


def process_group(group: Group) -> Any:
    """Return torch's ProcessGroup of a group. Raises ValueError if this process is not a member, or if the group has ended."""
    torch_group = None if _PROCESS.state is None else _PROCESS.state.process_groups.get(group.key)
    if torch_group is None:
        if group.rank < 0:
            raise ValueError(message(
                f"group {group.name!r} of the ranks {list(group.ranks)}, used by rank {rank()}", "a process of the group",
            ))
        if not group.key:
            raise ValueError(message(
                f"an exchange of the program's own over group {group.name!r}, in one process that simulates {group.size}",
                "exchanges that strategies make", hint=f"torchspore workers -n {group.size} SCRIPT runs the others too",
            ))
        raise ValueError(message(f"group {group.name!r}", "a group that is still there: destroy_group or release has ended it"))
    return torch_group


def ranks_of(key: str) -> tuple[int, ...]:
    """Return the ranks of the group with this key."""
    return world().ranks if key in (_WORLD, f"{_WORLD}/pairs") else _ranks_in(key)


@functools.cache
def _ranks_in(key: str) -> tuple[int, ...]:
    return rank_lists.from_text(key.split(":")[-2])


def shares_channel(key: str) -> bool:
    """Return whether the exchanges of a group run in sequence with those of other groups; see `channels`."""
    state = _PROCESS.state
    if state is None or state.store is None:
        return False
    if key not in state.hosts:
        state.hosts[key] = rendezvous.hosts(state.store, ranks_of(key))
    return channels.channel_of(key, state.hosts[key]) != key


def report_terms(group: Group | None, subject: str, statement: str, line: str | None = None) -> None:
    """Record a setting that changes the sums of a group's exchanges (None: of every group); see `reduction_terms`."""
    if is_distributed() and watchdog.watch is not None:
        watchdog.watch.terms.report(reduction_terms.EVERY if group is None or group.key == _WORLD else group.key, subject, statement, line)


def has_queue() -> bool:
    """Return whether exchanges run on a device queue, so that the device waits for them instead of Python."""
    return device.current().type != "cpu"


def current_process() -> ProcessInfo:
    """Return the rank and address of this process."""
    return ALONE if _PROCESS.state is None else _PROCESS.state.process_info


def store() -> Any:
    """Return the torch store that all processes share; None for a single process."""
    return None if _PROCESS.state is None else _PROCESS.state.store


def rank() -> int:
    """Return the global rank of this process."""
    return 0 if _PROCESS.state is None else _PROCESS.state.process_info.rank


def size() -> int:
    """Return the number of processes."""
    return 1 if _PROCESS.state is None else _PROCESS.state.process_info.size


def local_rank(group: Group | None = None) -> int:
    """Return the rank of this process among the group's processes on this machine; -1 if it is not a member."""
    here = _local_members(world() if group is None else group)
    return here.index(rank()) if rank() in here else -1


def local_size(group: Group | None = None) -> int:
    """Return the number of the group's processes on this machine."""
    return len(_local_members(world() if group is None else group))


def _local_members(group: Group) -> list[int]:
    if group.size == 1 or _PROCESS.state is None:
        return list(group.ranks)
    host_name = socket.gethostname()
    return [member for member, host in zip(group.ranks, rendezvous.hosts(_PROCESS.state.store, group.ranks)) if host == host_name]
