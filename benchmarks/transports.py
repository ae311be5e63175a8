#!/usr/bin/env python3
"""Compares transports for the parameter server: `python benchmarks/transports.py [--sizes 0.08,30,300] [--steps 10]`.

One server and two workers. In each step every worker sends float32 values, the server adds them, and every worker receives the sums. Then
one worker is killed: the table shows after how long the server's side learns it, and what happens if the worker starts again. Needs the
packages grpcio and ray: install them with torch in an environment for this program only.
"""
from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

WORKERS = 2
CANDIDATES = ("grpc", "ray", "rpc", "c10d")
NAMES = {"grpc": "gRPC streams (grpcio)", "ray": "Ray actors", "rpc": "torch.distributed.rpc", "c10d": "torch.distributed (gloo)"}
WAIT = 40.0
"""Seconds after which a loss counts as not detected."""


class Sum:
    """Adds the values of all workers; the last one of a step completes it."""

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._total: Any = None
        self._count = self._step = 0

    def add(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of the step, in each worker's thread."""
        with self._ready:
            step = self._step
            self._total = values.copy() if self._total is None else np.add(self._total, values, out=self._total)
            self._count += 1
            if self._count == WORKERS:
                self._result, self._total, self._count, self._step = self._total, None, 0, step + 1
                self._ready.notify_all()
            else:
                self._ready.wait_for(lambda: self._step > step)
            return self._result


def report(**facts: Any) -> None:
    """Print facts as a JSON line for the parent process."""
    print(json.dumps(facts), flush=True)


def run_steps(exchange: Any, megabytes: float, steps: int, rank: int) -> None:
    """Time the steps of a worker; then wait, so that the parent can kill one worker."""
    values = np.ones(int(megabytes * 1e6 / 4), np.float32)
    times = []
    for _ in range(steps + 2):
        begun = time.perf_counter()
        result = exchange(values)
        times.append(time.perf_counter() - begun)
        assert result[0] == WORKERS == result[-1]
    report(rank=rank, milliseconds=1e3 * statistics.median(times[2:]))


# ---- gRPC

CHUNK = 1 << 21


def grpc_server(port: int, **_: Any) -> None:
    """Serve bidirectional streams of raw bytes; the end of a stream is the sign of a lost worker."""
    from concurrent import futures

    import grpc

    total = Sum()

    def serve(requests: Any, context: Any) -> Any:
        context.add_callback(lambda: report(lost_at=time.time()))
        buffer = bytearray()
        for message in requests:
            if message:
                buffer += message
                continue
            result = memoryview(total.add(np.frombuffer(bytes(buffer), np.float32))).cast("B")
            buffer.clear()
            for start in range(0, len(result), CHUNK):
                yield bytes(result[start:start + CHUNK])
            yield b""

    server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", 2 * CHUNK)])
    handler = grpc.stream_stream_rpc_method_handler(serve)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench", {"Step": handler}),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    report(ready=True)
    server.wait_for_termination()


def grpc_worker(port: int, rank: int, megabytes: float, steps: int, **_: Any) -> None:
    import queue

    import grpc

    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", 2 * CHUNK)])
    grpc.channel_ready_future(channel).result(30)
    outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    replies = channel.stream_stream("/bench/Step")(iter(outgoing.get, None))

    def exchange(values: np.ndarray) -> np.ndarray:
        data = memoryview(values).cast("B")
        for start in range(0, len(data), CHUNK):
            outgoing.put(bytes(data[start:start + CHUNK]))
        outgoing.put(b"")
        received = bytearray()
        while message := next(replies):
            received += message
        return np.frombuffer(received, np.float32)

    run_steps(exchange, megabytes, steps, rank)
    time.sleep(WAIT)


# ---- Ray


def ray_main(megabytes: float, steps: int, **_: Any) -> None:
    """Run server and workers as actors of a local Ray cluster; the driver observes the killed actor."""
    import ray

    ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR", log_to_driver=False, object_store_memory=3_000_000_000)

    @ray.remote(max_concurrency=4)
    class Server:
        def __init__(self) -> None:
            self.total = Sum()

        def add(self, values: Any) -> Any:
            return self.total.add(values)

    @ray.remote
    class Worker:
        def run(self, server: Any, megabytes: float, steps: int) -> float:
            values = np.ones(int(megabytes * 1e6 / 4), np.float32)
            times = []
            for _ in range(steps + 2):
                begun = time.perf_counter()
                result = ray.get(server.add.remote(values))
                times.append(time.perf_counter() - begun)
                assert result[0] == WORKERS
            return 1e3 * statistics.median(times[2:])

        def process(self) -> int:
            return os.getpid()

        def wait(self) -> None:
            time.sleep(WAIT)

    server, workers = Server.remote(), [Worker.remote() for _ in range(WORKERS)]
    for rank, milliseconds in enumerate(ray.get([worker.run.remote(server, megabytes, steps) for worker in workers])):
        report(rank=rank, milliseconds=milliseconds)
    process = ray.get(workers[1].process.remote())
    waiting = workers[1].wait.remote()
    os.kill(process, signal.SIGKILL)
    killed = time.time()
    try:
        ray.get(waiting)
    except ray.exceptions.RayActorError:
        report(lost_after=time.time() - killed)
    ray.shutdown()


# ---- torch.distributed.rpc

_TOTAL = Sum()


def rpc_add(values: Any) -> Any:
    """Add values on the server."""
    import torch

    return torch.from_numpy(_TOTAL.add(values.numpy()))


def rpc_process(port: int, rank: int, megabytes: float, steps: int, **_: Any) -> None:
    """Join the RPC group; rank 0 is the server."""
    import torch
    from torch.distributed import rpc

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=WAIT)
    rpc.init_rpc(f"process{rank}", rank=rank, world_size=WORKERS + 1, rpc_backend_options=options)
    if rank:
        def exchange(values: np.ndarray) -> Any:
            return rpc.rpc_sync("process0", rpc_add, (torch.from_numpy(values),)).numpy()

        run_steps(exchange, megabytes, steps, rank - 1)
        time.sleep(WAIT)
        return
    report(ready=True)
    while True:                                           # the server asks worker 1: its layer does not report a lost process
        time.sleep(0.1)
        try:
            rpc.rpc_sync("process2", time.time, timeout=5)
        except RuntimeError:
            report(lost_at=time.time())
            time.sleep(WAIT)


# ---- torch.distributed


def c10d_process(port: int, rank: int, megabytes: float, steps: int, **_: Any) -> None:
    """Join a gloo group; rank 0 is the server: a reduction to it, and a broadcast from it."""
    from datetime import timedelta

    import torch
    import torch.distributed as dist

    address, patience = f"tcp://127.0.0.1:{port}", timedelta(seconds=WAIT)
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=WORKERS + 1, timeout=patience)

    def exchange(values: np.ndarray) -> np.ndarray:
        buffer = torch.from_numpy(values.copy())
        dist.reduce(buffer, 0)
        dist.broadcast(buffer, 0)
        return buffer.numpy()

    if rank:
        run_steps(exchange, megabytes, steps, rank - 1)
        time.sleep(WAIT)
        return
    report(ready=True)
    values = np.zeros(int(megabytes * 1e6 / 4), np.float32)
    for _ in range(steps + 2):
        exchange(values)
    try:
        dist.recv(torch.zeros(1), 2)
    except RuntimeError:
        report(lost_at=time.time())
    time.sleep(WAIT)


# ---- the parent


def free_port() -> int:
    """Return a port that no process uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def measure(candidate: str, megabytes: float, steps: int) -> tuple[float, float | None]:
    """Return the step time in ms, and the seconds until the loss of worker 1 was detected."""
    roles = {"grpc": ["server", "0", "1"], "ray": ["main"], "rpc": ["0", "1", "2"], "c10d": ["0", "1", "2"]}[candidate]
    port = free_port()
    processes = [
        subprocess.Popen([sys.executable, __file__, "--child", candidate, role, str(port), str(megabytes), str(steps)],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
        for role in roles
    ]
    lines: list[dict[str, Any]] = []

    def read(process: Any) -> None:
        for line in process.stdout:
            if line.startswith("{"):
                lines.append(json.loads(line))

    for process in processes:
        threading.Thread(target=read, args=(process,), daemon=True).start()
    try:
        until = time.time() + 240
        while sum("milliseconds" in line for line in list(lines)) < WORKERS and time.time() < until:
            time.sleep(0.05)
        times = [line["milliseconds"] for line in lines if "milliseconds" in line]
        if candidate == "ray":
            processes[0].wait(60)
            return max(times), next((line["lost_after"] for line in lines if "lost_after" in line), None)
        time.sleep(0.5)
        lines[:] = [line for line in lines if "lost_at" not in line]
        killed = time.time()
        processes[-1].kill()
        while time.time() < killed + WAIT and not any("lost_at" in line for line in list(lines)):
            time.sleep(0.01)
        return max(times), next((line["lost_at"] - killed for line in lines if "lost_at" in line), None)
    finally:
        for process in processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def installed_megabytes(name: str) -> float:
    """Return the size of the files of an installed package."""
    files = metadata.distribution(name).files or []
    return sum(Path(str(file.locate())).stat().st_size for file in files if Path(str(file.locate())).is_file()) / 1e6


FACTS = {
    "grpc": ("the stream of the new process is accepted", "both sides, in the library"),
    "ray": ("a new actor replaces the lost one", "between processes of the cluster, not per role"),
    "rpc": ("refused: the number of processes is fixed", "none"),
    "c10d": ("refused: all processes must form a new group", "none"),
}


def main() -> None:
    """Measure each candidate at each size and print a table."""
    if "--child" in sys.argv:
        candidate, role, port, megabytes, steps = sys.argv[2:]
        arguments = {"port": int(port), "megabytes": float(megabytes), "steps": int(steps)}
        if candidate == "grpc":
            grpc_server(**arguments) if role == "server" else grpc_worker(rank=int(role), **arguments)
        elif candidate == "ray":
            ray_main(**arguments)
        else:
            {"rpc": rpc_process, "c10d": c10d_process}[candidate](rank=int(role), **arguments)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="0.08,30,300")
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    sizes = [float(size) for size in options.sizes.split(",")]
    print("| transport | " + " | ".join(f"{size:g} MB: ms" for size in sizes)
          + " | loss detected after: s | a worker starts again | TLS | installed: MB |\n|" + "---|" * (len(sizes) + 5))
    for candidate in CANDIDATES:
        measured = [measure(candidate, size, options.steps if size < 100 else max(3, options.steps // 3)) for size in sizes]
        detection = ["more than 40" if seconds is None else f"{seconds:.2f}" for _, seconds in measured]
        package = {"grpc": "grpcio", "ray": "ray"}.get(candidate)
        size_text = f"{installed_megabytes(package):.0f}" if package else "0 (part of torch)"
        print(f"| {NAMES[candidate]} | " + " | ".join(f"{milliseconds:.1f}" for milliseconds, _ in measured)
              + f" | {detection[0]} | {FACTS[candidate][0]} | {FACTS[candidate][1]} | {size_text} |", flush=True)


if __name__ == "__main__":
    main()
