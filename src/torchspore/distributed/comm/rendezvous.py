"""The rendezvous of the processes of a run: a torch store at an address that all processes know; rank 0 or a launcher serves it."""
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
from torchspore.distributed.comm.environment import ProcessInfo
from torchspore.distributed.comm.rank_states import slowed

c10d: Any = torch.distributed                     # torch's type stubs lack the stores
_PREFIX = "torchspore"
_LOCAL = ("127.0.0.1", "localhost", "::1")


class RendezvousError(RuntimeError):
    """This process cannot reach the other processes."""


def open_store(host: str, port: int, size: int, serves: bool, seconds: float, waits: bool) -> Any:
    """Return a torch store at the address. With `serves`, this process serves it; otherwise it connects to it. Raises RendezvousError."""
    try:
        if not serves:
            peer_liveness.wait_until_listening(host, port, seconds)
        with log_filter.unless_it_works():
            return c10d.TCPStore(host, port, size, serves, timedelta(seconds=seconds), wait_for_workers=waits)
    except (RuntimeError, OSError) as error:
        who, error_text = f"TCPStore({host!r}, {port}, is_master={serves})", str(error)
        if serves and ("EADDRINUSE" in error_text or "already in use" in error_text):
            raise RendezvousError(with_hint(f"{who}: the port is in use.", "another run may still be there; choose another port")) from None
        if serves:
            raise RendezvousError(
                f"{who}: not all of {size} processes came within {seconds:g} s, or the host is not of this machine."
            ) from None
        if "Ping failed" in error_text:
            raise RendezvousError(f"{who}: the server there is not a store.") from None
        raise RendezvousError(
            with_hint(f"{who}: no process answered within {seconds:g} s.", "the process with is_master=True serves it")
        ) from None


def join_run(process_info: ProcessInfo, seconds: float, program_store: Any = None) -> tuple[Any, ProcessInfo]:
    """Return the store that all processes share, and this process with its rank, which is assigned here if the environment has none.

    `program_store` is a store that the program created. MindSpore's scheduler serves the store, waits for the workers and ends the process.
    Raises RendezvousError.
    """
    if process_info.host in _LOCAL and _has_loopback():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")        # gloo would resolve the host name, which fails on some machines
    store = _store(process_info, seconds) if program_store is None else c10d.PrefixStore(_PREFIX, program_store)
    if process_info.role == "scheduler":
        _wait_for_workers(store, process_info)
    if process_info.rank < 0:
        process_info = replace(process_info, rank=_assigned_rank(store, process_info))
    store.set(f"host/{process_info.rank}", socket.gethostname())
    if process_info.local_rank < 0:
        process_info = replace(process_info, local_rank=process_info.rank)
    return store, process_info


def join_initialized(store: Any, process_info: ProcessInfo) -> tuple[Any, ProcessInfo]:
    """Return the store and this process if the program has initialized torch's group of all processes, which uses `store`."""
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    local = process_info.local_rank if process_info.rank == rank else rank
    store.set(f"host/{rank}", socket.gethostname())
    return store, replace(process_info, rank=rank, size=size, local_rank=local, source="torch.distributed")


def _has_loopback() -> bool:
    return any(name == "lo" for _, name in socket.if_nameindex())


def _store(process_info: ProcessInfo, seconds: float) -> Any:
    timeout = timedelta(seconds=seconds)
    of_launcher = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    serves = not of_launcher and (
        process_info.role == "scheduler" if process_info.source.startswith("MS_ROLE") else process_info.rank == 0
    )
    where = f"{process_info.host}:{process_info.port}"
    try:
        if not serves:
            peer_liveness.wait_until_listening(process_info.host, process_info.port, seconds)
        host = (
            "127.0.0.1" if serves and process_info.host not in _LOCAL else process_info.host
        )  # the serving process is on this machine, whatever name others use
        with log_filter.unless_it_works():
            store = c10d.TCPStore(host, process_info.port, None, serves, timeout, wait_for_workers=False)
    except (RuntimeError, OSError) as error:
        raise _rendezvous_error(process_info, where, serves, seconds, str(error)) from None
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if of_launcher else "0"
    return c10d.PrefixStore(f"{_PREFIX}/{attempt}", store)


def _rendezvous_error(process_info: ProcessInfo, where: str, serves: bool, seconds: float, error_text: str) -> RendezvousError:
    who = "the scheduler" if process_info.role == "scheduler" else f"rank {process_info.rank}" if process_info.rank >= 0 else "a worker"
    if serves and ("EADDRINUSE" in error_text or "already in use" in error_text):
        return RendezvousError(with_hint(
            f"init(): {who} can't listen at {where}: the port is in use.",
            "another run may still be there; choose another port (MASTER_PORT, --master_port)",
        ))
    if serves:
        return RendezvousError(with_hint(
            f"init(): {who} can't listen at {where}: {error_text.splitlines()[0] if error_text else 'no reason given'}.",
            "the host must be a name of the machine that rank 0 runs on",
        ))
    if "Ping failed" in error_text:
        hint = "choose another port (MASTER_PORT, --master_port)"
        return RendezvousError(with_hint(f"init(): {where} is in use by another program than a torchspore run.", hint))
    return RendezvousError(with_hint(
        f"init(): {who} found no process at {where} within {seconds:g} s.",
        f"{'the scheduler' if process_info.source.startswith('MS_ROLE') else 'rank 0'} must run and be reachable there; "
        "MS_TOPO_TIMEOUT, or --cluster_time_out, says how many seconds to wait",
    ))


def _wait_for_workers(store: Any, process_info: ProcessInfo) -> None:
    """Wait until the workers have ended, as MindSpore's scheduler does in `init`; the process ends with them."""
    while int(store.add("left", 0)) < process_info.size:
        time.sleep(0.2)
    raise SystemExit(0)


def _assigned_rank(store: Any, process_info: ProcessInfo) -> int:
    """Return the next free rank. Raises RendezvousError if more workers start than the run has."""
    rank = int(store.add("rank", 1)) - 1
    if rank >= process_info.size:
        raise RendezvousError(
            with_hint(f"init(): this is worker {rank + 1} of {process_info.size}.", "start as many as MS_WORKER_NUM says")
        )
    return rank


def hosts(store: Any, ranks: tuple[int, ...]) -> list[str]:
    """Return the names of the machines on which these ranks run."""
    return [name.decode() for name in store.multi_get([f"host/{rank}" for rank in ranks])]


def report_connected(store: Any, key: str) -> None:
    """Report that this process has all connections of a group."""
    with contextlib.suppress(RuntimeError):
        store.add(f"connected/{key}", 1)


def wait_for_connected(store: Any, sizes: dict[str, int], seconds: float = 2.0) -> None:
    """Wait up to `seconds` until all processes have their connections. If a process leaves earlier, gloo fails in the others."""
    until = time.monotonic() + seconds
    with contextlib.suppress(RuntimeError):
        for key, size in sizes.items():
            while int(store.add(f"connected/{key}", 0)) < size and time.monotonic() < until:
                time.sleep(slowed(0.005, size))


def _report_departure(store: Any, process_info: ProcessInfo) -> int:
    """Report that this process leaves; return the number of processes that have left."""
    store.set(f"left/{process_info.rank}", "1")
    return int(store.add("left", 1))


def leave(store: Any, process_info: ProcessInfo, waits: bool) -> None:
    """Report that this process leaves. With `waits`, rank 0 waits up to 5 s for the other processes, which may still need the store."""
    if not waits:
        with contextlib.suppress(RuntimeError, OSError):
            peer_liveness.BackgroundCall(lambda: _report_departure(store, process_info)).result()     # the network may be lost
        return
    try:
        num_departed = _report_departure(store, process_info)
        if process_info.rank == 0:
            until = time.monotonic() + 5
            while num_departed < process_info.size and time.monotonic() < until:
                time.sleep(0.01)
                num_departed = int(store.add("left", 0))
    except (RuntimeError, OSError):
        pass                                   # the process that served the store has left
