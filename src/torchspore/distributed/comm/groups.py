"""The group of all processes, and the groups that a program or the engine makes.

A group has a *key*, by which torch's operators find it: its name, its ranks and a count, the same in all its processes and in each run, so
that a graph with collectives may be kept. A group of one process needs nobody, and torch knows nothing of it.
"""
from __future__ import annotations

import atexit
import functools
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch

from torchspore.base.text import message, short, with_hint
from torchspore.context.store import STORE
from torchspore.distributed.comm import agreement, environment, peer_liveness, rendezvous, watchdog
from torchspore.distributed.comm.environment import ALONE, ProcessPlace
from torchspore.distributed.comm.reduction_terms import EVERY
from torchspore.engine.core import change_counters, device, gpu_kinds, process, torch_private

WORLDS = ("hccl_world_group", "nccl_world_group", "mccl_world_group")
"""The names of the group of all processes, as MindSpore has them for its three backends; here they are one."""
SECONDS = 600.0
"""How long an exchange may take, and how long the others are waited for, where nothing says otherwise."""


@dataclass(frozen=True)
class Group:
    """Some of the processes, by their ranks among all; the place in `ranks` is the rank within the group."""

    name: str
    ranks: tuple[int, ...]
    key: str = ""
    """The name that torch's operators know it by."""

    @property
    def size(self) -> int:
        """How many processes it has."""
        return len(self.ranks)

    @property
    def rank(self) -> int:
        """The place of this process in it; -1 where it is none of them."""
        local_rank = rank()
        return self.ranks.index(local_rank) if local_rank in self.ranks else -1


@dataclass
class _State:
    """The groups and connections that `start` created."""

    process_place: ProcessPlace
    store: Any
    groups: dict[str, Group]
    processes: dict[str, Any]
    """torch's ProcessGroup of each group of several processes, by the group's key."""
    name_counts: dict[str, int]
    """How often a name was used."""
    sockets: frozenset[int] = frozenset()
    """Those that torch's groups talk over."""


_alone = Group(WORLDS[0], (0,))


class _Process:
    """The connection of this process to the others."""

    def __init__(self) -> None:
        self.state: _State | None = None


_PROCESS = _Process()


def start(backend: str | None = None, process_place: ProcessPlace | None = None, seconds: float | None = None, store: Any = None) -> Group:
    """Makes the group of all processes, as the environment (or `place`) says; gives it. A second call changes nothing.

    They meet at `store` where the program has made one.

    `backend` is torch's ('gloo', 'nccl', 'hccl'), by the device that operators run on where it is None. Raises ValueError for an
    environment that does not fit, RuntimeError on Apple's mps, or where the others can't be met within `seconds`, or are not of the same
    program.
    """
    if _PROCESS.state is not None:
        return world()
    process_place = environment.read() if process_place is None else process_place
    if process_place.size == 1 and process_place.role == "worker":
        _PROCESS.state = _State(ALONE, None, {}, {}, {})
        return world()
    if device.current().type == gpu_kinds.MPS:
        raise RuntimeError(with_hint("init(): torch has no communication library for Apple's mps, the GPU of this machine.",
                                     "TORCHSPORE_DEVICE=CPU lets several processes run on the CPU"))
    seconds = seconds or process_place.seconds or SECONDS
    is_initialized = torch.distributed.is_initialized()           # by Ray Train, say, or by a program of torch's
    if is_initialized:
        store, process_place = rendezvous.join(torch_private.adopted_store(_WORLD), process_place)
    else:
        store, process_place = rendezvous.meet(process_place, seconds, store)
    _choose_device(process_place)
    agreement.agree(store, process_place, seconds)
    watchdog.watch = watchdog.Watchdog(store, process_place.rank, process_place.size, seconds, process_place.host)
    before = peer_liveness.connections()
    if not is_initialized:
        try:
            torch_private.start_processes(
                backend or _backend(), store, process_place.rank, process_place.size, timedelta(seconds=seconds), key=_WORLD
            )
        except RuntimeError as error:
            raise _unmet(error, process_place) from None
    watchdog.watch.know()
    rendezvous.say_connected(store, _WORLD)
    everyone = Group(WORLDS[0], tuple(range(process_place.size)), _WORLD)
    _PROCESS.state = _State(process_place, store, {}, {_WORLD: torch.distributed.group.WORLD}, {}, peer_liveness.connections() - before)
    _PROCESS.state.groups.update(dict.fromkeys(WORLDS, everyone))
    process.world = process.World(process_place.rank, process_place.size)
    change_counters.processes += 1
    atexit.register(stop)
    return everyone


_WORLD = "world"


def _unmet(error: Exception, process_place: ProcessPlace) -> Exception:
    """The error where one of the others left while connections were made; the watch ends."""
    failed_watch, watchdog.watch = watchdog.watch, None
    assert failed_watch is not None
    try:
        return failed_watch.unmet(error, "init()", _WORLD, tuple(range(process_place.size)))
    finally:
        failed_watch.end()


def _backend() -> str:
    kind = device.current().type
    return {"cuda": "cpu:gloo,cuda:nccl", "xpu": "cpu:gloo,xpu:xccl", "npu": "cpu:gloo,npu:hccl"}.get(kind, "gloo")


def _choose_device(process_place: ProcessPlace) -> None:
    """Gives each process of a machine an accelerator of its own, where the program names none."""
    target = STORE.get("device_target")
    if target != "CPU" and 0 <= process_place.local_rank < device.count(target):
        STORE.learn_default("device_id", process_place.local_rank)


def stop() -> None:
    """Ends the groups. Nobody is waited for longer than a moment."""
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
            peer_liveness.hang_up(state.sockets)      # a thread may wait in an exchange that will not end
        watchdog.watch.end()
        watchdog.watch = None
    if not is_broken:
        sizes = {key: len(ranks_of(key)) if key != _WORLD else state.process_place.size for key in state.processes}
        rendezvous.wait_for_connected(state.store, sizes)
    change_counters.calls_changed()                  # graphs name groups by their keys, which may be used again
    rendezvous.part(state.store, state.process_place, waits=not is_broken)
    if is_broken:
        torch_private.abandon_processes(list(state.processes.values()))
    else:
        torch_private.stop_processes([_WORLD])


def is_started() -> bool:
    """Return whether `start` was called, and not `stop` after it."""
    return _PROCESS.state is not None


def is_distributed() -> bool:
    """Return whether this process is one of several."""
    return _PROCESS.state is not None and _PROCESS.state.store is not None


def world() -> Group:
    """The group of all processes; before `start` this process alone, or those that it stands for."""
    count = environment.stands_for()
    if count > 1 and (_PROCESS.state is None or _PROCESS.state.store is None):
        return Group(WORLDS[0], tuple(range(count)))
    return _alone if _PROCESS.state is None or _PROCESS.state.store is None else _PROCESS.state.groups[WORLDS[0]]


def find(name: str) -> Group:
    """The group of that name. Raises ValueError where there is none."""
    if name in WORLDS:
        return world()
    group = None if _PROCESS.state is None else _PROCESS.state.groups.get(name)
    if group is None:
        raise ValueError(message(f"group={short(name)}", "a group that create_group made"))
    return group


def names() -> tuple[str, ...]:
    """The names of the groups that the program made."""
    return () if _PROCESS.state is None else tuple(name for name in _PROCESS.state.groups if name not in WORLDS)


def create(name: str, ranks: tuple[int, ...] | list[int]) -> Group:
    """Makes a group, or gives the one that has this name and these ranks. Every process of it must make it; others may.

    Raises ValueError for a name that is taken and ranks that do not fit, RuntimeError before `start`.
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
    key = f"{name}:{'_'.join(map(str, members))}:{count}"
    group = _PROCESS.state.groups[name] = Group(name, members, key)
    if len(members) > 1 and rank() in members:
        _gather(group)
        before = peer_liveness.connections()
        try:
            _PROCESS.state.processes[key] = torch_private.new_processes(members, key)
        except RuntimeError as error:
            assert watchdog.watch is not None
            raise watchdog.watch.unmet(error, f"create_group({name!r})", key, members) from None
        _PROCESS.state.sockets |= peer_liveness.connections() - before
        rendezvous.say_connected(_PROCESS.state.store, key)
    return group


class _Coming:
    """Members of a group on their way to make it, as an exchange that can be waited for: gloo would name nobody who does not come."""

    def __init__(self, store: Any, group: Group) -> None:
        self._store, self._keys, self._is_over = store, [f"making/{group.key}/{rank}" for rank in group.ranks], False
        store.set(f"making/{group.key}/{rank()}", "1")

    def wait(self, patience: timedelta) -> None:
        """Waits until all are here. Raises RuntimeError."""
        begun = time.monotonic()
        try:
            self._store.wait(self._keys, patience)
        except RuntimeError:
            self._is_over = time.monotonic() - begun < 0.9 * patience.total_seconds()     # the store is gone, and will not come back
            raise

    def is_completed(self) -> bool:
        """Return whether there is nothing to wait for any more."""
        return self._is_over


def _gather(group: Group) -> None:
    """Waits until all members make the group. Raises CommunicationError, which names who does something else."""
    assert watchdog.watch is not None and _PROCESS.state is not None
    waiting = watchdog.watch.begin(group.key + "/made", f"create_group({group.name!r})", None, group.ranks)
    watchdog.watch.finish(_Coming(_PROCESS.state.store, group), waiting)


def destroy(name: str) -> None:
    """Forgets a group of the program's. Raises ValueError where there is none, or it is that of all processes."""
    group = find(name)
    if name in WORLDS or _PROCESS.state is None:
        raise ValueError(message(f"destroy_group({name!r})", "a group that create_group made"))
    del _PROCESS.state.groups[name]
    change_counters.calls_changed()
    torch_group = _PROCESS.state.processes.pop(group.key, None)
    if torch_group is not None:
        torch.distributed.destroy_process_group(torch_group)


def of_ranks(ranks: tuple[int, ...]) -> Group:
    """The engine's own group of these processes, made once. Every one of them must ask for its groups in the same order."""
    members = tuple(ranks)
    if members == world().ranks:
        return world()
    if len(members) == 1:
        return Group(f"rank_{members[0]}", members)
    name = "ranks_" + "_".join(map(str, members))
    if _PROCESS.state is not None and name in _PROCESS.state.groups:
        return _PROCESS.state.groups[name]
    return create(name, members)


def processes(group: Group) -> Any:
    """torch's ProcessGroup of a group of several processes. Raises ValueError where this process is none of them, or the group is gone."""
    torch_group = None if _PROCESS.state is None else _PROCESS.state.processes.get(group.key)
    if torch_group is None:
        if group.rank < 0:
            raise ValueError(message(
                f"group {group.name!r} of the ranks {list(group.ranks)}, used by rank {rank()}", "a process of the group",
            ))
        if not group.key:
            raise ValueError(message(
                f"an exchange of the program's own over group {group.name!r}, in one process that stands for {group.size}",
                "exchanges that strategies make", hint=f"torchspore workers -n {group.size} SCRIPT runs the others too",
            ))
        raise ValueError(message(f"group {group.name!r}", "a group that is still there: destroy_group or release has ended it"))
    return torch_group


def ranks_of(key: str) -> tuple[int, ...]:
    """The ranks of the group that has this key."""
    return world().ranks if key in (_WORLD, f"{_WORLD}/pairs") else _ranks_in(key)


@functools.cache
def _ranks_in(key: str) -> tuple[int, ...]:
    return tuple(map(int, key.split(":")[-2].split("_")))


def say(group: Group | None, subject: str, statement: str, line: str | None = None) -> None:
    """Says what the numbers of a group's exchanges (of every group, where it is that of all or None) are made with; see `terms`."""
    if watchdog.watch is not None:
        watchdog.watch.terms.say(EVERY if group is None or group.key == _WORLD else group.key, subject, statement, line)


def has_queue() -> bool:
    """Return whether exchanges run on a device of their own, so that waiting for one means to let the device wait."""
    return device.current().type != "cpu"


def place_of_process() -> ProcessPlace:
    """Where this process stands."""
    return ALONE if _PROCESS.state is None else _PROCESS.state.process_place


def store() -> Any:
    """torch's store that all processes share, or None where this one is alone."""
    return None if _PROCESS.state is None else _PROCESS.state.store


def rank() -> int:
    """The rank of this process among all."""
    return 0 if _PROCESS.state is None else _PROCESS.state.process_place.rank


def size() -> int:
    """How many processes there are."""
    return 1 if _PROCESS.state is None else _PROCESS.state.process_place.size


def local_rank(group: Group | None = None) -> int:
    """The place of this process among those of the group that run on its machine; -1 where it is none of them."""
    here = _here(world() if group is None else group)
    return here.index(rank()) if rank() in here else -1


def local_size(group: Group | None = None) -> int:
    """How many processes of the group run on this process's machine."""
    return len(_here(world() if group is None else group))


def _here(group: Group) -> list[int]:
    if group.size == 1 or _PROCESS.state is None:
        return list(group.ranks)
    host_name = socket.gethostname()
    return [member for member, host in zip(group.ranks, rendezvous.hosts(_PROCESS.state.store, group.ranks)) if host == host_name]
