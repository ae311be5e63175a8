"""The call of a worker or server to the scheduler: its rank, the addresses of the servers, and the news of a lost process."""
from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from torchspore.base.frames import user_line
from torchspore.base.text import with_hint
from torchspore.distributed.parameter_server.configuration import Configuration, Credentials
from torchspore.distributed.parameter_server.messages import MalformedMessage, Message, encode, unpack
from torchspore.distributed.parameter_server.roles import Cluster
from torchspore.distributed.parameter_server.transport import CallRefused, Channel, ConnectionLost
from torchspore.errors import CommunicationError

RECONNECT = 30.0
"""The seconds that a new scheduler has to come if recovery is configured."""


class Membership:
    """Joins the job and stays in touch with the scheduler.

    `address` is where this process listens, for a server. In another thread, `lost_listeners` are called if the job is lost, and
    `ended_listeners` if the program of a worker ends. Raises CommunicationError if the job does not start.
    """

    def __init__(
        self, cluster: Cluster, configuration: Configuration, credentials: Credentials | None, address: str = "",
    ) -> None:
        self.cluster, self._configuration, self._credentials, self._address = cluster, configuration, credentials, address
        self.rank = cluster.node
        self.servers: list[str] = []
        self.store_port = 0
        self.job = ""
        """The identity of the job, which the scheduler chooses."""
        self.lost = ""
        """Why the job is lost; empty while it runs."""
        self.has_ended = False
        self.lost_listeners: list[Callable[[], None]] = []
        self.ended_workers: set[int] = set()
        """The workers whose programs have ended, as servers learn."""
        self.ended_listeners: list[Callable[[], None]] = []
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._is_leaving = self._is_connected = self._was_connected = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="torchspore membership")
        self._thread.start()
        self._wait_for_start()

    def _wait_for_start(self) -> None:
        until = time.monotonic() + self.cluster.timeout + 5.0
        with self._changed:
            while not self.servers and not self.lost and time.monotonic() < until:
                self._changed.wait(0.2)
        self.check()
        if not self.servers:
            raise CommunicationError(f"{user_line()}: the parameter server job did not start within {self.cluster.timeout:g} s.")

    def check(self, line: str | None = None) -> None:
        """Raise CommunicationError if the job is lost; `line` is the line of the program, by default that of this thread."""
        if self.lost:
            raise CommunicationError(f"{line or user_line()}: {self.name}: {self.lost}")

    @property
    def name(self) -> str:
        """The name of this process in messages."""
        return self.cluster.role if self.rank < 0 else f"{self.cluster.role} {self.rank}"

    def leave(self, kind: str, text: str = "") -> None:
        """Report that this process is done, or has failed, and end the call."""
        if self._is_leaving:
            return
        until = time.monotonic() + RECONNECT
        while kind == "done" and not (self._is_connected or self.lost or self.has_ended) and time.monotonic() < until:
            time.sleep(0.05)                               # a restarted scheduler waits for this word
        self._is_leaving = True
        self._outbox.put(b"".join(encode(Message({"kind": kind, "text": text}))))
        self._outbox.put(None)
        self._thread.join(2.0)

    # ---- the thread

    def _run(self) -> None:
        until = time.monotonic() + self.cluster.timeout
        while True:
            self._was_connected = False
            reason = self._talk(until)
            if self.has_ended or self._is_leaving or self.lost:
                return
            if self._was_connected:
                until = time.monotonic() + RECONNECT
            if self._configuration.recovery is None or not self.servers or time.monotonic() >= until:
                self._lose(f"the scheduler is lost: {reason}." if self.servers else with_hint(
                    f"no connection to the scheduler at {self.cluster.host}:{self.cluster.port} ({reason}).",
                    "start it with MS_ROLE=MS_SCHED; MS_SCHED_HOST, MS_SCHED_PORT and enable_ssl must be equal in all processes",
                ))
                return
            time.sleep(0.05)

    def _talk(self, until: float) -> str:
        """Join and read the scheduler's messages until the connection ends; return why it ended."""
        try:
            channel = Channel(self.cluster.host, self.cluster.port, self._credentials, self._configuration.heartbeat,
                              max(1.0, until - time.monotonic()))
        except CommunicationError as error:
            self._lose(str(error))
            return ""
        self._outbox.put(None)                             # ends the requests of an earlier connection
        outbox = self._outbox = queue.SimpleQueue()
        try:
            channel.wait_until_ready(max(0.1, until - time.monotonic()))
            for data in channel.call("Join", self._requests(outbox)):
                self._receive(unpack(data))
            return "it has closed the connection"
        except CallRefused as error:
            self._lose(f"the scheduler refused this process: {error}")
            return ""
        except (ConnectionLost, MalformedMessage) as error:
            return str(error)
        finally:
            self._is_connected = False
            channel.close()

    def _requests(self, outbox: queue.SimpleQueue[bytes | None]) -> Iterator[bytes]:
        size = [self.cluster.workers, self.cluster.servers]
        facts = {"role": self.cluster.role, "rank": self.rank, "address": self._address, "size": size, "job": self.job}
        yield b"".join(encode(Message(facts)))
        while (data := outbox.get()) is not None:
            yield data

    def _receive(self, facts: dict[str, Any]) -> None:
        kind = facts.get("kind")
        with self._changed:
            if kind == "cluster":
                self.rank, self.store_port = int(facts["rank"]), int(facts["store_port"])
                self.job = str(facts["job"])
                self.servers = [str(address) for address in facts["servers"]]
                self._is_connected = self._was_connected = True
            elif kind == "end":
                self.has_ended = True
            self._changed.notify_all()
        if kind == "lost":
            self._lose(str(facts.get("text", "")))
        elif kind == "worker ended":
            self.ended_workers.add(int(facts["rank"]))
            for listener in self.ended_listeners:
                listener()

    def _lose(self, text: str) -> None:
        with self._changed:
            self.lost = self.lost or text
            self._changed.notify_all()
        for listener in self.lost_listeners:
            listener()
