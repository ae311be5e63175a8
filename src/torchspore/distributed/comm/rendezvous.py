"""How the processes of a run find each other: a store of torch's at an address that all of them know, which rank 0 or a launcher serves."""
from __future__ import annotations

import contextlib
import os
import socket
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import torch.distributed

from torchspore.base.text import with_hint
from torchspore.distributed.comm import log_filter, peer_liveness
from torchspore.distributed.comm.environment import ProcessPlace

c10d: Any = torch.distributed                     # torch's types do not know its stores
_PREFIX = "torchspore"
_LOCAL = ("127.0.0.1", "localhost", "::1")


class NotMet(RuntimeError):
    """The other processes could not be reached."""


def opened(host: str, port: int, size: int, serves: bool, seconds: float, waits: bool) -> Any:
    """A store of torch's at that address, which this process serves or reaches. Raises NotMet."""
    try:
        if not serves:
            peer_liveness.waited_for(host, port, seconds)
        with log_filter.unless_it_works():
            return c10d.TCPStore(host, port, size, serves, timedelta(seconds=seconds), wait_for_workers=waits)
    except (RuntimeError, OSError) as error:
        who, error_text = f"TCPStore({host!r}, {port}, is_master={serves})", str(error)
        if serves and ("EADDRINUSE" in error_text or "already in use" in error_text):
            raise NotMet(with_hint(f"{who}: the port is in use.", "another run may still be there; choose another port")) from None
        if serves:
            raise NotMet(f"{who}: not all of {size} processes came within {seconds:g} s, or the host is not of this machine.") from None
        if "Ping failed" in error_text:
            raise NotMet(f"{who}: what listens there is no store.") from None
        raise NotMet(with_hint(f"{who}: nobody is there within {seconds:g} s.", "the process with is_master=True serves it")) from None


def meet(process_place: ProcessPlace, seconds: float, given_store: Any = None) -> tuple[Any, ProcessPlace]:
    """The store that all processes share, and the place of this one, whose rank may be given here.

    `given_store` is a store that the program created. MindSpore's scheduler serves the store, waits for the workers and ends. Raises
    NotMet.
    """
    if process_place.host in _LOCAL and _has_loopback():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")        # gloo would look its own name up, which not every machine knows
    store = _store(process_place, seconds) if given_store is None else c10d.PrefixStore(_PREFIX, given_store)
    if process_place.role == "scheduler":
        _wait_for_workers(store, process_place)
    if process_place.rank < 0:
        process_place = replace(process_place, rank=_assigned_rank(store, process_place))
    store.set(f"host/{process_place.rank}", socket.gethostname())
    if process_place.local_rank < 0:
        process_place = replace(process_place, local_rank=process_place.rank)
    return store, process_place


def join(store: Any, process_place: ProcessPlace) -> tuple[Any, ProcessPlace]:
    """The same where torch's group of all processes is there already, with its store."""
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    local = process_place.local_rank if process_place.rank == rank else rank
    store.set(f"host/{rank}", socket.gethostname())
    return store, replace(process_place, rank=rank, size=size, local_rank=local, source="torch.distributed")


def _has_loopback() -> bool:
    return any(name == "lo" for _, name in socket.if_nameindex())


def _store(process_place: ProcessPlace, seconds: float) -> Any:
    patience = timedelta(seconds=seconds)
    of_launcher = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    serves = not of_launcher and (
        process_place.role == "scheduler" if process_place.source.startswith("MS_ROLE") else process_place.rank == 0
    )
    where = f"{process_place.host}:{process_place.port}"
    try:
        if not serves:
            peer_liveness.waited_for(process_place.host, process_place.port, seconds)
        host = (
            "127.0.0.1" if serves and process_place.host not in _LOCAL else process_place.host
        )  # who serves it is here, whatever others call it
        with log_filter.unless_it_works():
            store = c10d.TCPStore(host, process_place.port, None, serves, patience, wait_for_workers=False)
    except (RuntimeError, OSError) as error:
        raise _not_met(process_place, where, serves, seconds, str(error)) from None
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if of_launcher else "0"
    return c10d.PrefixStore(f"{_PREFIX}/{attempt}", store)


def _not_met(process_place: ProcessPlace, where: str, serves: bool, seconds: float, error_text: str) -> NotMet:
    who = "the scheduler" if process_place.role == "scheduler" else f"rank {process_place.rank}" if process_place.rank >= 0 else "a worker"
    if serves and ("EADDRINUSE" in error_text or "already in use" in error_text):
        return NotMet(with_hint(
            f"init(): {who} can't listen at {where}: the port is in use.",
            "another run may still be there; choose another port (MASTER_PORT, --master_port)",
        ))
    if serves:
        return NotMet(with_hint(
            f"init(): {who} can't listen at {where}: {error_text.splitlines()[0] if error_text else 'no reason given'}.",
            "the host must be a name of the machine that rank 0 runs on",
        ))
    if "Ping failed" in error_text:
        hint = "choose another port (MASTER_PORT, --master_port)"
        return NotMet(with_hint(f"init(): what listens at {where} is no run of this kind.", hint))
    return NotMet(with_hint(
        f"init(): {who} found nobody at {where} within {seconds:g} s.",
        f"{'the scheduler' if process_place.source.startswith('MS_ROLE') else 'rank 0'} must run and be reachable there; "
        "MS_TOPO_TIMEOUT, or --cluster_time_out, says how many seconds to wait",
    ))


def _wait_for_workers(store: Any, process_place: ProcessPlace) -> None:
    """Wait until the workers have ended, as MindSpore's scheduler does in `init`; the process ends with them."""
    while int(store.add("left", 0)) < process_place.size:
        time.sleep(0.2)
    raise SystemExit(0)


def _assigned_rank(store: Any, process_place: ProcessPlace) -> int:
    """The next rank that nobody has. Raises NotMet where there are more workers than the run wants."""
    rank = int(store.add("rank", 1)) - 1
    if rank >= process_place.size:
        raise NotMet(with_hint(f"init(): this is worker {rank + 1} of {process_place.size}.", "start as many as MS_WORKER_NUM says"))
    return rank


def hosts(store: Any, ranks: tuple[int, ...]) -> list[str]:
    """On which machines these ranks run."""
    return [name.decode() for name in store.multi_get([f"host/{rank}" for rank in ranks])]


def say_connected(store: Any, key: str) -> None:
    """Says that this process has all its connections of a group."""
    with contextlib.suppress(RuntimeError):
        store.add(f"connected/{key}", 1)


def wait_for_connected(store: Any, sizes: dict[str, int], seconds: float = 2.0) -> None:
    """Waits a moment until all have their connections: where one leaves before, gloo lets the others fail."""
    until = time.monotonic() + seconds
    with contextlib.suppress(RuntimeError):
        for key, size in sizes.items():
            while int(store.add(f"connected/{key}", 0)) < size and time.monotonic() < until:
                time.sleep(0.005)


def _report_departure(store: Any, process_place: ProcessPlace) -> int:
    """Says that this process leaves; how many have left by then."""
    store.set(f"left/{process_place.rank}", "1")
    return int(store.add("left", 1))


def part(store: Any, process_place: ProcessPlace, waits: bool) -> None:
    """Says that this process leaves. Who serves the store waits a moment for the others, which may still need it, if all is well."""
    if not waits:
        with contextlib.suppress(RuntimeError, OSError):
            peer_liveness.Errand(lambda: _report_departure(store, process_place)).result()     # the network may be lost
        return
    try:
        gone = _report_departure(store, process_place)
        if process_place.rank == 0:
            until = time.monotonic() + 5
            while gone < process_place.size and time.monotonic() < until:
                time.sleep(0.01)
                gone = int(store.add("left", 0))
    except (RuntimeError, OSError):
        pass                                   # the one who served it is gone already
