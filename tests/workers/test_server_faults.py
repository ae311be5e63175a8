"""Faults of a parameter server job: servers and schedulers that come back, TLS, hostile bytes, and processes that are stopped."""
from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import server_jobs
from support.certificates import write_certificates

pytest.importorskip("grpc")

PROGRAM = """
import os, sys, time
import numpy as np
import mindspore as ms
from mindspore import nn, Tensor
ms.set_context(mode=1, device_target="CPU")
ms.set_ps_context(enable_ps=True, **eval(os.environ.get("OPTIONS", "{}")))
ms.set_seed(1)
node = int(os.environ["MS_NODE_ID"])
print("process", os.getpid(), flush=True)
net = nn.SequentialCell(nn.EmbeddingLookup(50, 4, target="DEVICE", vocab_cache_size=20), nn.Dense(4, 2))
net.set_param_ps()
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.LazyAdam(net.trainable_params(), 0.1))
random = np.random.RandomState(node)
for number in range(int(os.environ["STEPS"])):
    ids, labels = Tensor(random.randint(0, 50, 6).astype(np.int32)), Tensor(random.randn(6, 2).astype(np.float32))
    step(ids, labels)
    print("step", number, flush=True)
    time.sleep(float(os.environ.get("PAUSE", 0)))
print("values", [float(np.abs(p.asnumpy().astype(np.float64)).sum()) for p in net.get_parameters()], flush=True)
"""


class Job:
    """The processes of a job, by name: worker0, server0, scheduler."""

    def __init__(self, folder: Path, workers: int, servers: int, **variables: str) -> None:
        self.folder, self.processes = folder, dict[str, subprocess.Popen[bytes]]()
        (folder / "program.py").write_text(PROGRAM)
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("TORCHSPORE_", "MS_", "GLOG_", "GRPC"))}
        self.port = server_jobs.free_port()
        self.variables = plain | {
            "MS_WORKER_NUM": str(workers), "MS_SERVER_NUM": str(servers), "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(self.port),
            "MS_TOPO_TIMEOUT": "90", "STEPS": "30", **variables,
        }
        self.start("scheduler", "MS_SCHED", 0)
        for node in range(servers):
            self.start(f"server{node}", "MS_PSERVER", node)
        for node in range(workers):
            self.start(f"worker{node}", "MS_WORKER", node)

    def start(self, name: str, role: str, node: int, **variables: str) -> None:
        """Start a process, whose output goes to NAME.log; a second one of that name continues the log."""
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "torchspore", "run", "program.py"], cwd=self.folder, stdout=log, stderr=log,
                env=self.variables | {"MS_ROLE": role, "MS_NODE_ID": str(node), **variables},
            )

    def log(self, name: str) -> str:
        """Return the output of a process so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait_for(self, name: str, text: str, seconds: float = 90.0) -> None:
        """Wait until a process has printed a text."""
        until = time.monotonic() + seconds
        while text not in self.log(name):
            assert time.monotonic() < until, (name, text, self.log(name))
            assert self.processes[name].poll() is None or text in self.log(name), (name, text, self.log(name))
            time.sleep(0.05)

    def end(self, seconds: float = 90.0) -> dict[str, int]:
        """Wait for all processes; return their exit codes."""
        until = time.monotonic() + seconds
        return {name: process.wait(max(0.1, until - time.monotonic())) for name, process in self.processes.items()}

    def close(self) -> None:
        """Kill the processes that still run."""
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def values(self, name: str) -> str:
        """Return the line with the final values of a worker."""
        return next(line for line in self.log(name).splitlines() if line.startswith("values"))


@pytest.fixture
def start(tmp_path: Path) -> Any:
    jobs: list[Job] = []

    def begin(workers: int, servers: int, **variables: str) -> Job:
        folder = tmp_path / f"job{len(jobs)}"
        folder.mkdir()
        jobs.append(Job(folder, workers, servers, **variables))
        return jobs[-1]

    yield begin
    for job in jobs:
        job.close()


def recovery(folder: Path, steps: int) -> str:
    """Return the OPTIONS of a job with recovery."""
    path = folder / "recovery.json"
    path.write_text(json.dumps({"recovery": {"storage_type": 1, "storage_file_path": "snapshots", "save_steps": steps}}))
    return repr({"config_file_path": str(path)})


@pytest.mark.slow
@pytest.mark.parametrize(("victim", "role"), [("server1", "MS_PSERVER"), ("scheduler", "MS_SCHED")])
def test_a_process_that_comes_back_changes_no_number(start: Callable[..., Job], tmp_path: Path, victim: str, role: str) -> None:
    undisturbed = start(2, 2)
    assert set(undisturbed.end().values()) == {0}
    job = start(2, 2, OPTIONS=recovery(tmp_path, 4), PAUSE="0.05")
    job.wait_for("worker0", "step 13")
    job.processes[victim].kill()
    job.processes[victim].wait()
    job.start(victim, role, 1 if victim == "server1" else 0)
    assert set(job.end().values()) == {0}, [job.log(name) for name in job.processes]
    assert job.values("worker0") == undisturbed.values("worker0") == job.values("worker1")
    assert not list((tmp_path / "snapshots").glob("*.safetensors"))


@pytest.mark.slow
def test_random_kills_leave_no_process_and_no_hang(start: Callable[..., Job]) -> None:
    generator = random.Random(time.time_ns())
    for _ in range(6):
        job = start(2, 2, STEPS="100000", MS_TOPO_TIMEOUT="30")
        victim = generator.choice(list(job.processes))
        time.sleep(generator.uniform(1.0, 12.0))
        job.processes[victim].kill()
        codes = job.end()
        assert codes.pop(victim) == -signal.SIGKILL and 0 not in codes.values(), (victim, codes)
        kind, number = (victim[:-1], victim[-1]) if victim != "scheduler" else ("scheduler", "")
        if all("step 3" in job.log(f"worker{node}") for node in range(2)):
            for name in codes:
                assert f"{kind} {number}".strip() + " is lost" in job.log(name), (victim, name, job.log(name))


@pytest.mark.slow
def test_a_stopped_server_is_named_within_seconds(start: Callable[..., Job]) -> None:
    job = start(2, 2, STEPS="100000")
    job.wait_for("worker1", "step 3")
    os.kill(job.processes["server0"].pid, signal.SIGSTOP)
    begun = time.monotonic()
    assert job.processes["worker0"].wait(30) == 1
    assert time.monotonic() - begun < 10 * max(1.0, os.getloadavg()[0] / 2) and "server 0 is lost" in job.log("worker0")


def ssl_options(folder: Path, **passwords: str) -> str:
    return repr({"config_file_path": str(folder / "tls.json"), "enable_ssl": True, "client_password": "client", "server_password": "server",
                 **passwords})


@pytest.mark.slow
def test_tls_lets_certified_processes_in_and_refuses_others(start: Callable[..., Job], tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    folders = [tmp_path / name for name in ("ours", "theirs", "revoked")]
    for folder in folders:
        write_certificates(folder)
    (folders[2] / "tls.json").write_text(json.dumps(
        json.loads((folders[0] / "tls.json").read_text()) | {
            name: str(folders[0] / file) for name, file in (
                ("server_cert_path", "server.p12"), ("client_cert_path", "client.p12"), ("ca_cert_path", "ca.crt"),
                ("crl_path", "revoked.pem"),
            )
        }
    ))
    job = start(1, 1, OPTIONS=ssl_options(folders[0]), STEPS="5")
    assert set(job.end().values()) == {0}, [job.log(name) for name in job.processes]
    job = start(1, 1, OPTIONS=ssl_options(folders[0]), STEPS="5")
    job.wait_for("worker0", "process")
    job.processes["worker0"].kill()
    job.processes.pop("worker0").wait()
    for name, options, text in (
        ("stranger", ssl_options(folders[1]), "was refused"),
        ("password", ssl_options(folders[0], client_password="x"), "does not open it"),
        ("plain", "{}", "no connection to the scheduler"),
    ):
        job.start(name, "MS_WORKER", 0, OPTIONS=options, MS_TOPO_TIMEOUT="15")
        assert job.processes.pop(name).wait(90) == 1 and text in job.log(name), (name, job.log(name))
    revoked = start(1, 1, OPTIONS=ssl_options(folders[2]), STEPS="5", MS_TOPO_TIMEOUT="20")
    assert 0 not in set(revoked.end().values()) and "the certificate of the listener is revoked" in revoked.log("worker0")


def _attack(port: int, data: bytes, is_slow: bool = False) -> None:
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.settimeout(0.2)
            for start in range(0, len(data), 7 if is_slow else len(data) or 1):
                connection.sendall(data[start:start + (7 if is_slow else len(data))])
            connection.recv(1 << 16)
    except OSError:
        pass


def _frames(payload: bytes) -> bytes:
    """An HTTP/2 connection that calls Join with a payload, in frames of RFC 9113."""
    def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
        return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body

    fields = {":method": "POST", ":scheme": "http", ":path": "/torchspore.ParameterServer/Join", ":authority": "x", "te": "trailers",
              "content-type": "application/grpc"}
    block = b"".join(b"\x00" + bytes([len(k)]) + k.encode() + bytes([len(v)]) + v.encode() for k, v in fields.items())
    return (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, block)
            + frame(0, 0, 1, b"\x00" + len(payload).to_bytes(4, "big") + payload))


@pytest.mark.slow
def test_hostile_bytes_on_all_ports_change_nothing(start: Callable[..., Job]) -> None:
    undisturbed = start(1, 1)
    assert set(undisturbed.end().values()) == {0}
    job = start(1, 1, PAUSE="0.3")
    job.wait_for("worker0", "step 1")
    ports = {job.port, *_listening(job.processes["server0"].pid)}
    assert len(ports) >= 2
    before = _memory(job)
    generator = random.Random(3)
    for port in ports:
        headers = (b"\xc1", b"\x80", b"x" * 4000, b"\xdf\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\x81\xa4role\xa6worker")
        for data in (
            b"", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 5000, b"\xff" * 5000, *map(_frames, headers),
            *(generator.randbytes(2000) for _ in range(20)), *(_frames(generator.randbytes(300)) for _ in range(20)),
        ):
            _attack(port, data)
        _attack(port, _frames(b"abc"), is_slow=True)
    assert _memory(job) < before + 64 * 2**20
    assert set(job.end().values()) == {0}, [job.log(name) for name in job.processes]
    assert job.values("worker0") == undisturbed.values("worker0")


def _listening(process: int) -> list[int]:
    """The ports that a process listens at."""
    links = [os.readlink(path) for path in Path(f"/proc/{process}/fd").iterdir()]
    inodes = {link.partition("[")[2].rstrip("]") for link in links if link.startswith("socket")}
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]]
    return [int(fields[1].rpartition(":")[2], 16) for fields in lines if fields[3] == "0A" and fields[9] in inodes]


def _memory(job: Job) -> int:
    """The resident bytes of scheduler and server."""
    total = 0
    for name in ("scheduler", "server0"):
        lines = Path(f"/proc/{job.processes[name].pid}/status").read_text().splitlines()
        total += 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])
    return total
