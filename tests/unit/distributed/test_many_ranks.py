"""Many ranks at one real TCPStore: each makes as many calls as in a job of 8, and a rank that has ended is named.

`make test` runs 80 ranks, `make test-all` 512. torch looks up the name of each client's address; where no name server answers, some of
these queries take 5 s.
"""
from __future__ import annotations

import collections
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import torch.distributed

from torchspore.distributed.comm import agreement, groups, watchdog
from torchspore.distributed.comm.environment import ProcessInfo
from torchspore.distributed.comm.handshake import Handshake
from torchspore.distributed.comm.pending_collectives import Waiting
from torchspore.distributed.comm.rank_states import RankStates

FEW = 8
MANY = [80, pytest.param(512, marks=pytest.mark.slow)]
CALLS = ("add", "set", "get", "check", "wait", "multi_get", "multi_set")
STACK = 1 << 19


class CountedStore:
    """A client of a store that counts its calls."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.counts: collections.Counter[str] = collections.Counter()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in CALLS:
            return method

        def call(*arguments: Any) -> Any:
            self.counts[name] += 1
            return method(*arguments)

        return call


class Job:
    """Ranks in threads of this process. All jobs use the same clients of a store, which this process serves."""

    def __init__(self) -> None:
        self._server = torch.distributed.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60), wait_for_workers=False)
        self._clients: list[Any] = []

    def client(self) -> Any:
        """Return a new client of the store."""
        return torch.distributed.TCPStore("127.0.0.1", self._server.port, None, False, timedelta(seconds=60), wait_for_workers=False)

    def run(self, name: str, size: int, function: Callable[[Any, int, int], Any]) -> tuple[list[Any], list[CountedStore]]:
        """Call a function with the store, the rank and the size of a job as each rank; return the results and the stores."""
        while len(self._clients) < size:
            self._clients.append(self.client())
        stores = [CountedStore(torch.distributed.PrefixStore(f"{name}/{size}", client)) for client in self._clients[:size]]
        results: list[Any] = [None] * size

        def run(rank: int) -> None:
            try:
                results[rank] = function(stores[rank], rank, size)
            except Exception as error:
                results[rank] = error

        before = threading.stack_size(STACK)
        try:
            threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
        finally:
            threading.stack_size(before)
        return results, stores


@pytest.fixture(scope="module")
def job() -> Job:
    return Job()


def _calls_without_waits(store: CountedStore) -> int:
    """The calls of a store, without the repeated checks of a wait."""
    return sum(count for name, count in store.counts.items() if name != "check")


def _start_up(store: Any, rank: int, size: int) -> Any:
    agreement.agree(store, ProcessInfo(rank, size, rank, size, host="127.0.0.1", port=1), 60.0)
    states = RankStates(store, rank, size, ("127.0.0.1", 0))
    states.collect_processes()
    return states.processes


@pytest.mark.parametrize("size", MANY)
def test_the_calls_of_a_rank_at_the_start_do_not_depend_on_the_number_of_ranks(job: Job, size: int) -> None:
    counts = {}
    for ranks in (FEW, size):
        processes, stores = job.run("start", ranks, _start_up)
        assert all(process == (socket.gethostname(), os.getpid()) for each in processes for process in each.values())
        assert all(len(each) == ranks for each in processes)
        counts[ranks] = max(map(_calls_without_waits, stores[1:]))
    assert counts[size] <= counts[FEW] + 1


@pytest.mark.parametrize("size", MANY)
def test_the_states_of_many_ranks_are_one_call(job: Job, size: int) -> None:
    def publish(store: Any, rank: int, size: int) -> Any:
        states = RankStates(store, rank, size, ("", 0))
        if rank % 20 == 3:
            states.publish({"what": "AllReduce", "line": f"train.py:{rank}"})
        return states

    states, stores = job.run("states", size, publish)
    before = sum(stores[7].counts.values())
    read = states[7].of(range(size))
    assert {rank: state["line"] for rank, state in read.items()} == {rank: f"train.py:{rank}" for rank in range(3, size, 20)}
    assert sum(stores[7].counts.values()) == before + 1


@pytest.mark.parametrize("size", MANY)
def test_a_new_exchange_starts_when_all_ranks_have_come(job: Job, size: int) -> None:
    released = threading.Event()

    class Work:
        def wait(self, patience: Any = None) -> None:
            pass

        def is_completed(self) -> bool:
            return True

    def exchange(store: Any, rank: int, size: int) -> Any:
        handshake = Handshake(store, rank, size)
        waiting = Waiting("world", 1, "AllReduce(sum)", None, tuple(range(size)))
        handshake.collect_claims(waiting)
        if rank == size - 1:
            released.wait(60)
        else:
            started_before = rank == 0 and not released.is_set()
        pending = handshake.start("world", waiting.claims, Work)
        if rank == 0:
            time.sleep(1.0)
            assert started_before and not pending.has_begun
            released.set()
        pending.wait(timedelta(seconds=60))
        handshake.end()
        return pending.has_begun

    for ranks in (FEW, size):
        released.clear()
        results, stores = job.run("exchange", ranks, exchange)
        assert results == [True] * ranks
        assert max(map(_calls_without_waits, stores)) <= 2
    checks = sum(store.counts["check"] for store in stores)
    assert checks < 1.5 * (64 * 50 + 12 * size)              # in a second: 50 of each of 64 ranks, after 12 quick checks of each rank


@pytest.mark.parametrize("size", MANY)
def test_a_group_is_created_with_one_key(job: Job, size: int) -> None:
    group = groups.Group("all", tuple(range(size)), f"all:{size}")

    def create(store: Any, rank: int, size: int) -> None:
        groups._GroupCreation(store, group).wait(timedelta(seconds=60))

    results, stores = job.run("group", size, create)
    assert results == [None] * size and max(map(_calls_without_waits, stores)) <= 3


@pytest.mark.parametrize("size", MANY)
def test_a_process_that_has_ended_is_named_among_many(job: Job, size: int) -> None:
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    os.kill(child, 9)
    os.waitpid(child, 0)
    _, stores = job.run("lost", size, lambda store, rank, size: RankStates(store, rank, size, ("", 0)))
    stores[70].set("process/70", json.dumps([socket.gethostname(), child, "", 0]))
    watch = watchdog.Watchdog(torch.distributed.PrefixStore(f"lost/{size}", job.client()), 0, size, 60.0)
    try:
        watch.store_process_ids()
        error = watch.lost(Waiting("world", 1, "AllReduce(sum)", None, tuple(range(size))), RuntimeError("Connection closed"))
        assert "rank 70 is gone" in str(error)
    finally:
        watch.end()
