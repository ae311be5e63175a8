"""One process of `torchspore calibrate`: measures while the other processes do the same; process 0 prints the machine as JSON."""
from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from torchspore.base.host_memory import total_memory
from torchspore.engine.devices import gpu_kinds

_LIBRARIES = {gpu_kinds.CUDA: "nccl", gpu_kinds.XPU: "xccl"}
"""torch's library of collectives for each type of GPU that has one."""
_SIZES = (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)
"""Bytes of a sum."""
_ROUNDS = 7


def median_seconds(run: Callable[[], object], rounds: int = _ROUNDS, calls: int = 1) -> float:
    """Return the median duration of a call, after one call that does not count. The processes begin each round together."""
    run()
    times = []
    for _ in range(rounds):
        dist.barrier()
        started = time.perf_counter()
        for _ in range(calls):
            run()
        _wait_for_device()
        times.append((time.perf_counter() - started) / calls)
    return statistics.median(times)


def _wait_for_device() -> None:
    if torch.accelerator.is_available():
        torch.accelerator.synchronize()


def fitted_line(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Return latency in seconds and bytes per second of seconds = latency + size / bandwidth, by least squares of relative errors."""
    weights = [1 / value for value in seconds]
    rows = torch.tensor([[weight, size * weight] for size, weight in zip(sizes, weights)], dtype=torch.float64)
    scale = rows.norm(dim=0)
    solution = torch.linalg.lstsq(rows / scale, torch.ones(len(sizes), 1, dtype=torch.float64)).solution[:, 0] / scale
    latency, slope = solution.tolist()
    return max(latency, 1e-9), 1 / max(slope, 1e-15)


def library_of_gpus(count: int) -> str:
    """Return torch's library of collectives where each process has a GPU; an empty text where they measure the CPU."""
    module = gpu_kinds.module()
    return _LIBRARIES.get(gpu_kinds.device_type(), "") if gpu_kinds.is_available() and module.device_count() >= count else ""


def main(rank: int, count: int, folder: str) -> None:
    """Measure, and print the result in process 0."""
    library = library_of_gpus(count)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // count))
    dist.init_process_group(library or "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count)
    device = torch.device(gpu_kinds.device_type(), rank) if library else torch.device("cpu")
    if library:
        torch.accelerator.set_device_index(rank)
    side = 4096 if library else 512
    matrix, flat = torch.randn(side, side, device=device), torch.randn(1 << (26 if library else 23), device=device)
    small, target = torch.randn(4, device=device), torch.empty_like(flat)
    operations = 2 * side**3 / median_seconds(lambda: matrix @ matrix, calls=5)
    memory = 2 * flat.numel() * flat.element_size() / median_seconds(lambda: target.copy_(flat))
    launch = median_seconds(lambda: small + small, calls=1000)
    buffers = [torch.zeros(size // 4, device=device) for size in _SIZES]
    seconds = [median_seconds(lambda buffer=buffer: dist.all_reduce(buffer), calls=5) for buffer in buffers]  # type: ignore[misc]
    latency, bandwidth = fitted_line([2 * size * (count - 1) / count for size in _SIZES], seconds)
    if library:
        capacity = gpu_kinds.module().get_device_properties(device).total_memory
    else:
        capacity = total_memory() // count
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        speeds = {"bandwidth": bandwidth, "latency": latency, "operations": operations, "memory": memory, "launch": launch}
        print(json.dumps({**speeds, "capacity": float(capacity)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
