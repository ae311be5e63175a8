#!/usr/bin/env python3
"""Wide&Deep with large tables on parameter servers and in one process: `python benchmarks/wide_deep_servers.py [--rows 10000000]`.

Two workers and two servers (`--workers`, `--servers`) train with half of each batch; the other run has one process and the full batches.
Prints the largest difference of the losses and values, whether the rows of a table with exact sums have the same bits, and the peak memory
of each process. Ends with 1 if a value differs by more than 1e-6, or a row that no step used by a bit.
"""
from __future__ import annotations

import argparse
import atexit
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from transports import free_port

BATCH, FIELDS, WIDTH = 64, 4, 8


def report_memory(name: str) -> None:
    """Print the peak memory of this process in MB as a JSON line."""
    print(json.dumps({"process": name, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}), flush=True)


def batch(step: int, rows: int, rank: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return this process's part of the ids and labels of a step."""
    random = np.random.RandomState(step)
    ids = random.randint(0, rows, (BATCH, FIELDS)).astype(np.int32)
    labels = (ids.sum(1, keepdims=True) % 2).astype(np.float32)
    return np.array_split(ids, count)[rank], np.array_split(labels, count)[rank]


def describe(table: Any, used: np.ndarray) -> tuple[np.ndarray, str]:
    """Return the rows that steps have used, and a digest of all others; a table on servers comes in blocks."""
    blocks = (block.asnumpy() for block in table.row_blocks()) if hasattr(table, "row_blocks") else iter([table.asnumpy()])
    digest, rows, start = hashlib.sha256(), [], 0
    for block in blocks:
        here = used[(used >= start) & (used < start + len(block))] - start
        rows.append(block[here].copy())
        block = block.copy()
        block[here] = 0
        digest.update(block.tobytes())
        start += len(block)
    return np.concatenate(rows), digest.hexdigest()


def train(path: str, rows: int, steps: int, count: int) -> None:
    """Run the role of this process; worker 0 and the single process write their results to `path`."""
    import torchspore

    torchspore.install()
    import mindspore as ms
    from mindspore import Tensor, nn

    role, rank = os.environ.get("MS_ROLE", ""), int(os.environ.get("MS_NODE_ID", 0))
    atexit.register(report_memory, f"{role or 'one process'} {rank if role else ''}".strip())
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    if role:
        ms.set_ps_context(enable_ps=True)
    ms.set_seed(1)

    class WideAndDeep(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            size = {"vocab_cache_size": 4 * BATCH * FIELDS} if role else {}
            self.wide = nn.EmbeddingLookup(rows, 1, target="DEVICE", **size)
            self.deep = nn.EmbeddingLookup(rows, WIDTH, target="DEVICE", **size)
            self.dense = nn.SequentialCell(nn.Dense(FIELDS * WIDTH, 16), nn.ReLU(), nn.Dense(16, 1))

        def construct(self, ids: Any) -> Any:
            return self.wide(ids).sum(1) + self.dense(self.deep(ids).reshape(ids.shape[0], -1))

    net, exact = WideAndDeep(), nn.EmbeddingLookup(rows, 2, target="DEVICE")
    exact.embedding_table.name = "exact"
    if role:
        net.set_param_ps()
        exact.set_param_ps(init_in_server=True)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.BCEWithLogitsLoss()), nn.LazyAdam(net.trainable_params(), 0.01))
    optimizer = nn.LazyAdam(exact.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda ids, scale: (exact(ids) * scale).sum(), None, optimizer.parameters)
    losses = []
    for number in range(steps):
        ids, labels = batch(number, rows, rank if role else 0, count)
        losses.append(float(step(Tensor(ids), Tensor(labels)).asnumpy()))
        optimizer(gradient(Tensor(ids), Tensor(np.float32(count * (number + 1))))[1])      # small integers, whose sums are exact
    used = np.unique(np.concatenate([batch(number, rows, 0, 1)[0].ravel() for number in range(steps)]))
    results: dict[str, Any] = {"losses": np.array(losses)}
    for name, table in (("wide", net.wide.embedding_table), ("deep", net.deep.embedding_table), ("exact", exact.embedding_table)):
        results[name], results[f"other rows of {name}"] = describe(table, used)
    results |= {parameter.name: parameter.asnumpy() for parameter in net.dense.get_parameters()}
    if rank == 0 or role:
        np.savez(f"{path}_{rank}.npz", **results)


def run(folder: Path, rows: int, steps: int, workers: int, servers: int) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Run a job, or one process if `servers` is 0; return the results of the workers and the memory of each process."""
    port = free_port()
    base = {name: value for name, value in os.environ.items() if not name.startswith("MS_")} | {"OMP_NUM_THREADS": "1"}
    roles = [("", 0)] if not servers else [
        ("MS_SCHED", 0), *(("MS_PSERVER", rank) for rank in range(servers)), *(("MS_WORKER", rank) for rank in range(workers)),
    ]
    variables = {"MS_WORKER_NUM": str(workers), "MS_SERVER_NUM": str(servers), "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(port)}
    path = str(folder / ("job" if servers else "one"))
    processes = [
        subprocess.Popen(
            [sys.executable, str(Path(__file__)), "--child", path, str(rows), str(steps), str(workers)], stdout=subprocess.PIPE, text=True,
            env=base | (variables | {"MS_ROLE": role, "MS_NODE_ID": str(rank)} if role else {}),
        )
        for role, rank in roles
    ]
    lines = [line for process in processes for line in process.communicate()[0].splitlines() if line.startswith("{")]
    assert all(process.returncode == 0 for process in processes), [process.returncode for process in processes]
    memory = {facts["process"]: facts["memory"] for facts in map(json.loads, lines)}
    return [dict(np.load(f"{path}_{rank}.npz")) for rank in range(workers)], memory


def main() -> int:
    """Run both trainings and compare them; return the exit code."""
    if "--child" in sys.argv:
        train(sys.argv[2], *map(int, sys.argv[3:]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--servers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="torchspore_wide_deep_") as name:
        (alone,), memory = run(Path(name), options.rows, options.steps, 1, 0)
        results, memory_of_job = run(Path(name), options.rows, options.steps, options.workers, options.servers)
    job_losses = np.mean([result["losses"] for result in results], 0)
    worst = float(np.abs(job_losses - alone["losses"]).max())
    is_equal = True
    for result in results:
        for key, value in alone.items():
            if key.startswith("other") or key == "exact":
                is_equal = is_equal and np.array_equal(value, result[key])
            elif key != "losses":
                worst = max(worst, float(np.abs(value - result[key]).max()))
    print(f"{options.rows:,} rows, {options.steps} steps, {options.workers} workers, {options.servers} servers")
    print(f"largest difference of losses and values: {worst:.1e}")
    print(f"rows with exact sums and rows that no step used: {'equal in all bits' if is_equal else 'DIFFERENT'}")
    for process, megabytes in (memory | memory_of_job).items():
        print(f"peak memory of {process}: {megabytes:,.0f} MB")
    return 0 if is_equal and worst <= 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
