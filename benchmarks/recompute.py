#!/usr/bin/env python3
"""`Cell.recompute`: memory and time of a training step with and without it, in both modes, each in a separate process.

    python benchmarks/recompute.py
"""
from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

BLOCKS, WIDTH, BATCH, STEPS = 12, 256, 2048, 7


def measure(mode: str, is_recomputed: bool) -> dict[str, float]:
    """Return the peak memory of a step's tensors (MiB), its median time (ms) and the last loss."""
    import mindspore as ms
    import numpy as np
    from mindspore import nn, ops

    class Block(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)
            self.norm, self.drop = nn.LayerNorm((WIDTH,)), nn.Dropout(p=0.1)

        def construct(self, x):  # type: ignore[no-untyped-def]
            return x + self.drop(self.second(ops.gelu(self.first(self.norm(x)))))

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.SequentialCell(*[Block() for _ in range(BLOCKS)])
            for block in self.blocks if is_recomputed else []:
                block.recompute()

        def construct(self, x):  # type: ignore[no-untyped-def]
            return (self.blocks(x) ** 2).mean()

    ms.set_context(mode=getattr(ms, mode))
    ms.set_seed(1)
    net = Net()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.01)).set_train()
    x = ms.Tensor(np.random.RandomState(0).randn(BATCH, WIDTH).astype(np.float32))
    times, losses = [], []
    for _ in range(STEPS):
        started = time.perf_counter()
        losses.append(float(step(x)))
        times.append(1000 * (time.perf_counter() - started))
    return {"memory": peak(lambda: step(x)), "time": statistics.median(times[2:]), "loss": losses[-1]}


def peak(call: Callable[[], object]) -> float:
    """Return the peak memory (MiB) of the tensors that the call creates, as torch's profiler counts it."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        call()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profiled.export_chrome_trace(file.name)
        events = json.loads(Path(file.name).read_text())["traceEvents"]
    return max(event["args"]["Total Allocated"] for event in events if event.get("name") == "[memory]") / 2**20


def main() -> None:
    if len(sys.argv) > 1:
        import torchspore

        torchspore.install()
        print(json.dumps(measure(sys.argv[1], sys.argv[2] == "recomputed")))
        return
    print(f"{BLOCKS} blocks of a transformer's MLP, width {WIDTH}, {BATCH} rows; median of {STEPS - 2} steps")
    for mode in ("PYNATIVE_MODE", "GRAPH_MODE"):
        results = [
            json.loads(subprocess.run([sys.executable, __file__, mode, how], capture_output=True, text=True, check=True).stdout)
            for how in ("plain", "recomputed")
        ]
        plain, recomputed = results
        verdict = "equal" if plain["loss"] == recomputed["loss"] else "DIFFERENT"
        print(
            f"{mode:14} kept {plain['memory']:5.0f} MiB {plain['time']:6.1f} ms   "
            f"recomputed {recomputed['memory']:5.0f} MiB {recomputed['time']:6.1f} ms"
            f"   {recomputed['memory'] / plain['memory']:.2f}x memory, {recomputed['time'] / plain['time']:.2f}x time, numbers {verdict}"
        )


if __name__ == "__main__":
    main()
