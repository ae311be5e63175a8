#!/usr/bin/env python3
"""Training with the parameter server, DDP and torch.distributed.rpc: `python benchmarks/server.py [--sizes 0.08,30] [--steps 20]`.

Two workers train a dense network with Momentum; `--sizes` sets the approximate MB of its parameters. DDP has only the two workers; the
others have one server. The table has the time of a step in ms, the ratio to DDP, and the peak memory of a worker and of the server in MB.
"""
from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from transports import free_port

WORKERS, LAYERS, BATCH, RATE, MOMENTUM = 2, 4, 16, 0.01, 0.9
NAMES = {"server": "torchspore, one server", "ddp": "torch DDP", "rpc": "torch.distributed.rpc, one server"}


def width_of(megabytes: float) -> int:
    """Return the width of LAYERS square layers with this many MB of float32."""
    return int((megabytes * 1e6 / 4 / LAYERS) ** 0.5)


def batch(width: int, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a worker's part of the data."""
    random = np.random.RandomState(rank)
    return random.randn(BATCH, width).astype(np.float32), random.randn(BATCH, width).astype(np.float32)


def report(role: str, times: list[float] | None = None, loss: float = 0.0) -> None:
    """Print the facts of a process as a JSON line."""
    facts: dict[str, Any] = {"role": role, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}
    if times is not None:
        facts |= {"milliseconds": 1e3 * statistics.median(times[3:]), "loss": loss}
    print(json.dumps(facts), flush=True)


def run_server_job(width: int, steps: int) -> None:
    """Run the role of this process in a job of torchspore."""
    import atexit

    import torchspore

    torchspore.install()
    import mindspore as ms
    from mindspore import Tensor, nn

    role = os.environ["MS_ROLE"]
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    ms.set_ps_context(enable_ps=True)
    ms.set_seed(0)
    if role != "MS_WORKER":
        atexit.register(report, role)
    net = nn.SequentialCell([nn.Dense(width, width, has_bias=False) for _ in range(LAYERS)])
    net.set_param_ps()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), RATE, MOMENTUM))
    x, y = map(Tensor, batch(width, int(os.environ["MS_NODE_ID"])))
    times = []
    for _ in range(steps + 3):
        begun = time.perf_counter()
        loss = float(step(x, y).asnumpy())
        times.append(time.perf_counter() - begun)
    report(role, times, loss)


def run_torch(contender: str, rank: int, port: int, width: int, steps: int) -> None:
    """Run a rank of DDP or of RPC; rank WORKERS is the server of RPC."""
    import torch
    import torch.distributed as dist

    torch.manual_seed(0)
    net = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(LAYERS)))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if contender == "rpc":
        from torch.distributed import rpc

        if rank == WORKERS:
            _SERVER.start(net)
        options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=8, rpc_timeout=120)
        rpc.init_rpc(f"process{rank}", rank=rank, world_size=WORKERS + 1, rpc_backend_options=options)
        if rank == WORKERS:
            rpc.shutdown()
            report("MS_PSERVER")
            return
        model, optimizer = net, None
    else:
        dist.init_process_group("gloo", rank=rank, world_size=WORKERS)
        model = torch.nn.parallel.DistributedDataParallel(net)
        optimizer = torch.optim.SGD(net.parameters(), RATE, MOMENTUM)
    x, y = map(torch.from_numpy, batch(width, rank))
    times = []
    for _ in range(steps + 3):
        begun = time.perf_counter()
        loss = torch.nn.functional.mse_loss(model(x), y)
        net.zero_grad()
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        else:
            values = rpc.rpc_sync(f"process{WORKERS}", push, ([p.grad for p in net.parameters()],))
            with torch.no_grad():
                for parameter, value in zip(net.parameters(), values):
                    parameter.copy_(value)
        times.append(time.perf_counter() - begun)
    report("MS_WORKER", times, float(loss.detach()))
    if contender == "rpc":
        rpc.shutdown()
    else:
        dist.destroy_process_group()


class _Server:
    """The state of the server of RPC."""

    def start(self, net: Any) -> None:
        """Take the parameters of a network."""
        import torch

        self.parameters = list(net.parameters())
        self.optimizer = torch.optim.SGD(self.parameters, RATE, MOMENTUM)
        self.changed, self.pushed, self.step = threading.Condition(), 0, 0


_SERVER = _Server()


def push(gradients: list[Any]) -> list[Any]:
    """Add a worker's gradients on the server; return the new parameters when all workers have pushed."""
    with _SERVER.changed:
        step = _SERVER.step
        for parameter, gradient in zip(_SERVER.parameters, gradients):
            gradient = gradient / WORKERS
            parameter.grad = gradient if _SERVER.pushed == 0 else parameter.grad + gradient
        _SERVER.pushed += 1
        if _SERVER.pushed == WORKERS:
            _SERVER.optimizer.step()
            _SERVER.pushed, _SERVER.step = 0, step + 1
            _SERVER.changed.notify_all()
        else:
            _SERVER.changed.wait_for(lambda: _SERVER.step > step)
        return [parameter.detach() for parameter in _SERVER.parameters]


def measure(contender: str, megabytes: float, steps: int) -> dict[str, float]:
    """Run a contender; return the time of its slowest worker in ms, and the peak memory of a worker and of the server in MB."""
    port, width = free_port(), width_of(megabytes)
    variables = {"MS_WORKER_NUM": str(WORKERS), "MS_SERVER_NUM": "1", "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(port),
                 "OMP_NUM_THREADS": "1"}
    roles = [("MS_WORKER", rank) for rank in range(WORKERS)]
    if contender != "ddp":
        roles.append(("MS_PSERVER", 0 if contender == "server" else WORKERS))
    if contender == "server":
        roles.append(("MS_SCHED", 0))
    processes = [
        subprocess.Popen([sys.executable, str(Path(__file__)), "--child", contender, str(rank), str(port), str(width), str(steps)],
                         env={**os.environ, **variables, "MS_ROLE": role, "MS_NODE_ID": str(rank)}, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
        for role, rank in roles
    ]
    lines = [json.loads(line) for process in processes for line in process.communicate()[0].splitlines() if line.startswith("{")]
    workers = [line for line in lines if line["role"] == "MS_WORKER"]
    assert len(workers) == WORKERS, (contender, lines)
    return {"time": max(line["milliseconds"] for line in workers), "worker": max(line["memory"] for line in workers),
            "server": max([line["memory"] for line in lines if line["role"] == "MS_PSERVER"], default=0.0)}


def main() -> None:
    """Print the table."""
    if "--child" in sys.argv:
        contender, rank, port, width, steps = sys.argv[2], *map(int, sys.argv[3:])
        if contender == "server":
            run_server_job(width, steps)
        else:
            run_torch(contender, rank, port, width, steps)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="0.08,30")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    print("| parameters | training | step: ms | ratio to DDP | worker: MB | server: MB |\n|---|---|---|---|---|---|")
    for size in map(float, options.sizes.split(",")):
        results = {contender: measure(contender, size, options.steps) for contender in ("ddp", "rpc", "server")}
        for contender, result in results.items():
            server = f"{result['server']:.0f}" if result["server"] else "none"
            print(f"| {size:g} MB | {NAMES[contender]} | {result['time']:.1f} | {result['time'] / results['ddp']['time']:.2f} | "
                  f"{result['worker']:.0f} | {server} |", flush=True)


if __name__ == "__main__":
    main()
