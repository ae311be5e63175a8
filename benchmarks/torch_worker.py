"""Runs steps of hand-written torch when told how many on standard input, in a process that torchspore has not touched."""
from __future__ import annotations

import importlib
import sys
import time

import torch
from handwritten import torch_step


def main() -> None:
    """The worker's loop; arguments: the benchmark's module, the device."""
    name, device = sys.argv[1:]
    torch.manual_seed(0)
    with torch.device(device):
        step = torch_step(*importlib.import_module(name).make(False))
    step()
    print("answer 0", flush=True)
    for line in sys.stdin:
        started = time.perf_counter()
        for _ in range(int(line)):
            step()
        if device != "cpu":
            torch.accelerator.synchronize()
        print(f"answer {time.perf_counter() - started}", flush=True)


if __name__ == "__main__":
    main()
