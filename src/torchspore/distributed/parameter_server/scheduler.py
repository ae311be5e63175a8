"""The scheduler: it numbers the processes, tells each the addresses of the servers, and reports a lost process to all others.

Every other process has one call to the scheduler for as long as it lives. The end of that call without a last word means that the process
is lost. If recovery is configured, a server may be replaced: its rank stays free for a time, and the processes get the new address.
"""
from __future__ import annotations

import queue
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torchspore.base.text import with_hint
from torchspore.distributed.parameter_server import status_page
from torchspore.distributed.parameter_server.configuration import Configuration, Credentials
from torchspore.distributed.parameter_server.messages import MalformedMessage, Message, encode, unpack
from torchspore.distributed.parameter_server.roles import SERVER, WORKER, Cluster
from torchspore.distributed.parameter_server.transport import Listener
from torchspore.errors import CommunicationError

DONE, FAILED, LOST = "done", "failed", "lost"
REJOIN = 30.0
"""The seconds that a lost process has to come back if recovery is configured: MindSpore's MS_NODE_TIMEOUT."""


@dataclass
class _Node:
    """A process that has joined."""

    role: str
    rank: int
    address: str
    outbox: queue.SimpleQueue[bytes | None] = field(default_factory=queue.SimpleQueue)
    state: str = "running"

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"{self.role} {self.rank}"


class Scheduler:
    """Serves one job. `run` returns when all workers are done. Raises CommunicationError if a process is lost or does not come."""

    def __init__(self, cluster: Cluster, configuration: Configuration, credentials: Credentials | None, store_port: int = 0) -> None:
        self._cluster, self._configuration, self._store_port = cluster, configuration, store_port
        self._changed = threading.Condition()
        self._nodes: dict[tuple[str, int], _Node] = {}
        self._error = ""
        self._has_started = False
        self._job = uuid.uuid4().hex
        """The identity of the job, by which a restarted server recognizes its snapshot."""
        self._vacant: dict[tuple[str, int], float] = {}
        """The processes that may come back, with the time until which they may."""
        threads = 2 * (cluster.workers + cluster.servers) + 8
        self._listener = Listener({"Join": self._join}, cluster.host, cluster.port, threads, credentials, configuration.heartbeat,
                                  frozenset({"Join"}))

    def run(self) -> None:
        """Wait until the job ends."""
        until = time.monotonic() + self._cluster.timeout
        try:
            with status_page.serving(self._cluster.host, self.describe), self._changed:
                while not self._is_over():
                    self._check_limits(until)
                    self._changed.wait(0.1)
            if self._error:
                raise CommunicationError(f"scheduler: {self._error}")
        finally:
            self._broadcast({"kind": "lost", "text": self._error} if self._error else {"kind": "end"})
            self._wait_for_outboxes()
            self._listener.stop()

    def describe(self) -> dict[str, Any]:
        """Return the state of the job and its processes, with MindSpore's names of the states."""
        nodes = [{"role": node.role, "rank": node.rank, "address": node.address, "state": node.state} for node in self._nodes.values()]
        state = "CLUSTER_READY" if self._has_started and not self._vacant else "CLUSTER_STARTING"
        return {"state": "CLUSTER_EXIT" if self._is_over() else state, "nodes": nodes}

    def _is_over(self) -> bool:
        workers = [node for node in self._nodes.values() if node.role == WORKER]
        return bool(self._error) or (len(workers) == self._cluster.workers and all(node.state == DONE for node in workers))

    def _check_limits(self, until: float) -> None:
        """Fail the job if processes did not come in time."""
        now = time.monotonic()
        if not self._has_started and now > until:
            absent = [f"{role} {rank}" for role, count in self._counts() for rank in range(count) if (role, rank) not in self._nodes]
            text = f"{', '.join(absent)} did not come within {self._cluster.timeout:g} s."
            self._error = with_hint(text, "MS_TOPO_TIMEOUT sets another limit")
        for (role, rank), limit in self._vacant.items():
            if now > limit:
                self._error = f"{role} {rank} is lost and did not come back within {REJOIN:g} s."

    def _counts(self) -> tuple[tuple[str, int], tuple[str, int]]:
        return (WORKER, self._cluster.workers), (SERVER, self._cluster.servers)

    # ---- calls, each in a thread

    def _join(self, requests: Iterator[bytes]) -> Iterator[bytes]:
        facts = unpack(next(requests, b""))
        node = self._register(facts)
        threading.Thread(target=self._listen, args=(node, requests), daemon=True, name="torchspore scheduler").start()
        while (data := node.outbox.get()) is not None:
            yield data

    def _register(self, facts: dict[str, Any]) -> _Node:
        """Number a process. Raises ValueError for one more than the job has, or a rank that is in use."""
        role, wanted_rank, address = facts.get("role"), facts.get("rank"), facts.get("address")
        if role not in (WORKER, SERVER) or type(wanted_rank) is not int or not isinstance(address, str) or len(address) > 300:
            raise MalformedMessage("a join without role, rank and address")
        count = dict(self._counts())[role]
        with self._changed:
            if not self._has_started and isinstance(facts.get("job"), str) and facts["job"]:
                self._job = facts["job"]                   # this scheduler replaces one that was lost
            if self._configuration.recovery is not None:   # a process that is started again at once comes before its loss is noticed
                self._changed.wait_for(lambda: self._is_free(role, wanted_rank), self._configuration.heartbeat + 1.0)
            free = [rank for rank in range(count) if self._is_free(role, rank)]
            rank = wanted_rank if wanted_rank >= 0 else min(free, default=-1)
            if rank not in free:
                raise ValueError(f"the job has {count} {role} process{'es' if count > 1 else ''} already, or {role} {rank} is running.")
            if facts.get("size") != [self._cluster.workers, self._cluster.servers]:
                expected = f"{self._cluster.workers} workers and {self._cluster.servers} servers"
                raise ValueError(f"{role} {rank} expects {facts.get('size')} workers and servers; the scheduler expects {expected}.")
            node = self._nodes[role, rank] = _Node(role, rank, address)
            was_vacant = self._vacant.pop((role, rank), None) is not None
            if len(self._nodes) == sum(count for _, count in self._counts()) and not self._vacant:
                self._has_started = True
                self._broadcast_cluster()
            if was_vacant:
                _print(f"{node.name} is back")
            for worker in self._nodes.values():
                if worker.role == WORKER and worker.state == DONE:
                    self._report_end(worker)
            self._changed.notify_all()
        return node

    def _is_free(self, role: str, rank: int) -> bool:
        """Return whether a process can take a rank; -1 is any rank."""
        return rank < 0 or (role, rank) not in self._nodes or (role, rank) in self._vacant

    def _broadcast_cluster(self) -> None:
        servers = [self._nodes[SERVER, rank].address for rank in range(self._cluster.servers)]
        for node in self._nodes.values():
            _send(node, {"kind": "cluster", "rank": node.rank, "servers": servers, "store_port": self._store_port, "job": self._job})

    def _listen(self, node: _Node, requests: Iterator[bytes]) -> None:
        """Read what a process reports until its call ends."""
        text = ""
        try:
            for data in requests:
                facts = unpack(data)
                if facts.get("kind") in (DONE, FAILED):
                    node.state, text = facts["kind"], str(facts.get("text", ""))[:2000]
        except Exception as error:                         # gRPC's own classes, by which a lost connection is reported
            text = text or (str(error) if isinstance(error, MalformedMessage) else "")
        with self._changed:
            if self._nodes.get((node.role, node.rank)) is node and node.state != DONE:
                self._lose(node, text)
            elif node.state == DONE and node.role == WORKER:
                self._report_end(node)
            self._changed.notify_all()
        node.outbox.put(None)

    def _report_end(self, worker: _Node) -> None:
        """Report the end of a worker's program to the servers, which then refuse steps that would wait for it."""
        for node in self._nodes.values():
            if node.role == SERVER:
                _send(node, {"kind": "worker ended", "rank": worker.rank})

    def _lose(self, node: _Node, text: str) -> None:
        """Record that a process is lost. With recovery, a server may come back."""
        if self._is_over():
            return
        if node.state == FAILED:
            self._error = self._error or f"{node.name} failed: {text}"
        elif node.role == SERVER and self._configuration.recovery is not None and self._has_started:
            self._vacant[node.role, node.rank] = time.monotonic() + REJOIN
            _print(f"{node.name} is lost; the job waits {REJOIN:g} s for it to come back")
        else:
            self._error = self._error or f"{node.name} is lost: its process has ended or does not answer."

    def _broadcast(self, facts: dict[str, Any]) -> None:
        for node in list(self._nodes.values()):
            _send(node, facts)
            node.outbox.put(None)

    def _wait_for_outboxes(self) -> None:
        until = time.monotonic() + 1.0
        while time.monotonic() < until and any(not node.outbox.empty() for node in self._nodes.values()):
            time.sleep(0.01)
        time.sleep(0.1)                                    # gRPC sends the last chunk after it has left the queue


def _send(node: _Node, facts: dict[str, Any]) -> None:
    node.outbox.put(b"".join(encode(Message(facts))))


def _print(text: str) -> None:
    print(f"torchspore scheduler: {text}.", file=sys.stderr, flush=True)
