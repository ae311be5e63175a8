"""The scheduler and the processes of a job, as threads of this process: what happens if one of them is lost."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")
from torchspore.distributed.parameter_server import membership as membership_module
from torchspore.distributed.parameter_server.configuration import Configuration, Recovery
from torchspore.distributed.parameter_server.membership import Membership
from torchspore.distributed.parameter_server.messages import Message, encode
from torchspore.distributed.parameter_server.roles import SCHEDULER, SERVER, WORKER, Cluster
from torchspore.distributed.parameter_server.scheduler import Scheduler
from torchspore.distributed.parameter_server.transport import Channel
from torchspore.errors import CommunicationError

RECOVERY = Configuration({"heartbeat_interval_in_second": 1.0}, Path(), Recovery(Path(), 1))


class _Job:
    """A scheduler in a thread, for one worker and one server."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(self.cluster(SCHEDULER, 0, 0), RECOVERY, None)
        self.port = self.scheduler._listener.port
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @staticmethod
    def cluster(role: str, node: int, port: int) -> Cluster:
        return Cluster(role, 1, 1, "127.0.0.1", port, node, 20.0)

    def _run(self) -> None:
        try:
            self.scheduler.run()
        except CommunicationError:
            pass

    def join(self, role: str) -> Membership:
        return Membership(self.cluster(role, 0, self.port), RECOVERY, None, f"{role}:1")

    def join_in_thread(self, role: str) -> tuple[threading.Thread, list[Membership]]:
        members: list[Membership] = []
        thread = threading.Thread(target=lambda: members.append(self.join(role)), daemon=True)
        thread.start()
        return thread, members


@pytest.fixture
def job() -> Iterator[_Job]:
    job = _Job()
    yield job
    job.scheduler._error = "the test has ended"


def _wait_until(condition: Any, seconds: float = 15.0) -> bool:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return bool(condition())


def test_a_scheduler_that_does_not_come_back_ends_the_job(job: _Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership_module, "RECONNECT", 1.0)
    thread, servers = job.join_in_thread(SERVER)
    worker = job.join(WORKER)
    thread.join(15)
    job.scheduler._listener.stop()
    assert _wait_until(lambda: worker.lost and servers[0].lost)
    assert worker.lost.startswith("the scheduler is lost: no answer within")
    with pytest.raises(CommunicationError, match="worker 0: the scheduler is lost"):
        worker.check()


def test_a_server_that_is_started_again_at_once_is_accepted(job: _Job) -> None:
    channel = Channel("127.0.0.1", job.port, None, 1.0, 5.0)
    channel.wait_until_ready(5.0)
    facts = {"role": SERVER, "rank": 0, "address": "server:1", "size": [1, 1], "job": ""}
    end = threading.Event()

    def requests() -> Iterator[bytes]:
        yield b"".join(encode(Message(facts)))
        end.wait()

    call = channel.call("Join", requests())
    worker = job.join(WORKER)
    assert worker.servers == ["server:1"]
    threading.Timer(0.5, channel.close).start()           # the loss is noticed after the new process has come
    server = job.join(SERVER)
    end.set()
    assert server.rank == 0 and _wait_until(lambda: worker.servers == ["server:1"]) and not worker.lost
    del call
    worker.leave("done")
    server.leave("done")
