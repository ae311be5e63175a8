#!/usr/bin/env python3
"""Memory and time of a step of semi_auto_parallel with the parallel optimizer (ZeRO 1 to 3) beside torch's; the exchanges of each graph.

    python benchmarks/zero.py [--ranks 2,4] [--levels 1,2,3] [--layers 16] [--width 768] [--repeats 1]

Each level has the counterpart of torch that splits the same values: level 1 (states of the optimizer) DDP with ZeroRedundancyOptimizer,
level 2 (also gradients) FSDP2 with reshard_after_forward=False, level 3 (also weights) FSDP2. Each row is a separate run. Memory is the
peak of a process minus its memory after steps of a tiny net: weights, Adam's state, gradients, activations, and the memory that the
compilation takes. The allocator returns freed blocks at once.
"""
from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parallel_memory import read_memory, torch_step

ROWS, STEPS = 64, 3
COUNTERPARTS = {"level1": "DDP.zero", "level2": "FSDP2.keep", "level3": "FSDP2"}
NAMES = {
    "DDP.zero": "DDP, ZeroRedundancyOptimizer", "FSDP2.keep": "FSDP2, reshard_after_forward=False", "FSDP2": "FSDP2",
}


def by_torchspore(layers: int, width: int) -> Any:
    """Return the same step as a Cell in semi_auto_parallel, and its input."""
    import mindspore as ms
    import numpy as np
    from mindspore import nn

    net = nn.SequentialCell([nn.SequentialCell([nn.Dense(width, width, has_bias=False), nn.ReLU()]) for _ in range(layers)])
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-3)).set_train()
    return step, ms.Tensor(np.ones((ROWS, width), np.float32))


def exchanges_of(orders: list[list[str]]) -> str:
    """Return the exchanges and products of the last graph, in the order in which a process begins them; equal ones in a row are counted."""
    parts: list[list[Any]] = []
    for name in orders[-1]:
        if parts and parts[-1][0] == name:
            parts[-1][1] += 1
        else:
            parts.append([name, 1])
    return " ".join(name if count == 1 else f"{count} {name}" for name, count in parts)


def serve(how: str, layers: int, width: int) -> None:
    """Run one rank: print its memory, the seconds of its steps, and the exchanges of its graph."""
    orders: list[list[str]] = []
    if how in NAMES:
        import torch

        torch.distributed.init_process_group("gloo")

        def make(layers: int, width: int) -> Callable[[], float]:
            return torch_step(layers, width, ROWS, how)
    else:
        import torchspore

        torchspore.install()
        import mindspore as ms
        from mindspore.communication import init

        from torchspore.graph import pipeline

        init()
        ms.set_context(mode=ms.GRAPH_MODE)
        ms.set_auto_parallel_context(
            parallel_mode="semi_auto_parallel", dataset_strategy="data_parallel", gradients_mean=True, enable_parallel_optimizer=True,
            parallel_optimizer_config={"optimizer_level": how, "parallel_optimizer_threshold": 0}, init_param_in_compile=True,
        )
        ordered = pipeline.overlap_exchanges
        letters = {"all_gather_into_tensor": "G", "reduce_scatter_tensor": "R", "all_reduce": "A", "mm": "m"}

        def recorded(module: Any) -> Any:
            module = ordered(module)
            names = [getattr(node.target, "_opname", "") for node in module.graph.nodes]
            orders.append([letters[name] for name in names if name in letters])
            return module

        pipeline.overlap_exchanges = recorded

        def make(layers: int, width: int) -> Callable[[], float]:
            step, x = by_torchspore(layers, width)
            return lambda: float(step(x, x).asnumpy())

    small = make(layers, 16)
    for _ in range(STEPS):
        small()
    Path("/proc/self/clear_refs").write_text("5")                 # resets the peak
    before = read_memory("VmRSS")
    step = make(layers, width)
    step()
    seconds, processor = [], time.process_time()
    for _ in range(STEPS):
        started = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - started)
    processor = (time.process_time() - processor) / STEPS
    answer = {
        "memory": read_memory("VmHWM") - before, "seconds": min(seconds), "processor": processor,
        "exchanges": exchanges_of(orders) if orders else "",
    }
    print("answer " + json.dumps(answer), flush=True)


def run(how: str, ranks: int, layers: int, width: int) -> dict[str, Any]:
    """Return the median memory and the time of the slowest rank of a run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    base = {**os.environ, "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
            "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    command = [sys.executable, __file__, "serve", how, str(layers), str(width)]
    started = [
        subprocess.Popen(command, env={**base, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
        for rank in range(ranks)
    ]
    answers = []
    for process in started:
        lines = [line for line in process.communicate()[0].splitlines() if line.startswith("answer ")]
        if not lines:
            raise SystemExit(f"{how} on {ranks} ranks: a rank ended with status {process.returncode}")
        answers.append(json.loads(lines[-1].removeprefix("answer ")))
    return {
        "memory": statistics.median(answer["memory"] for answer in answers), "seconds": max(answer["seconds"] for answer in answers),
        "processor": sum(answer["processor"] for answer in answers), "exchanges": answers[0]["exchanges"],
    }


def best(how: str, ranks: int, options: argparse.Namespace) -> dict[str, Any]:
    """Return the smallest memory and the shortest step of the repeated runs."""
    answers = [run(how, ranks, options.layers, options.width) for _ in range(options.repeats)]
    smallest = {field: min(answer[field] for answer in answers) for field in ("memory", "seconds", "processor")}
    return {**smallest, "exchanges": answers[0]["exchanges"]}


def main() -> None:
    """Print the tables."""
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--repeats", type=int, default=1, help="runs of each row, of which the smallest numbers count")
    options = parser.parse_args()
    size = options.width**2 * 4 / 2**20
    print(f"\n### ZeRO in semi_auto_parallel beside torch's: {options.layers} weights of {size:.3g} MiB with Adam\n")
    print("The median of the ranks' peaks; the fastest of three steps on the slowest rank; the processor's time of all ranks for a step,")
    print("which other programs of the machine hardly change. All ranks share the cores of one machine.")
    print("Each level is compared with torch's counterpart, the row above it.")
    print(f"Load of the machine: {' '.join(f'{load:.1f}' for load in os.getloadavg())}.\n")
    print("| ranks | who | MiB at the peak | to torch's | ms a step | to torch's | processor: ms | to torch's |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    graphs: dict[tuple[str, str], list[str]] = {}
    for ranks in map(int, options.ranks.split(",")):
        for level in (f"level{number}" for number in options.levels.split(",")):
            theirs, ours = best(COUNTERPARTS[level], ranks, options), best(level, ranks, options)
            for name, answer in ((NAMES[COUNTERPARTS[level]], theirs), (level, ours)):
                print(f"| {ranks} | {name} | {answer['memory']:.0f} | {answer['memory'] / theirs['memory']:.2f} "
                      f"| {answer['seconds'] * 1000:.0f} | {answer['seconds'] / theirs['seconds']:.2f} "
                      f"| {answer['processor'] * 1000:.0f} | {answer['processor'] / theirs['processor']:.2f} |", flush=True)
            graphs.setdefault((level, ours["exchanges"]), []).append(str(ranks))
    print("\nThe exchanges of each executed graph in the order in which a process begins them, between its products (m):")
    print("G gathers a weight, R sums a gradient by reduce-scatter, A sums the loss.\n\n| graph | ranks | exchanges |\n|---|---|---|")
    for (how, text), counts in graphs.items():
        print(f"| {how} | {', '.join(counts)} | {text} |")


if __name__ == "__main__":
    main()
