"""Prints as JSON what a program sees that takes more memory than it may, and what the figures of memory say: `memory_limit.py MODE LATE`."""
from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torchspore

torchspore.install()

# ruff: noqa: E402
import mindspore as ms
import stand_in
from mindspore import hal, nn, ops, runtime

stand_in.begin()
MIB = 2**20


def figures() -> dict[str, float]:
    """Return the figures of memory in MiB."""
    gc.collect()
    return {
        "allocated": runtime.memory_allocated() / MIB, "reserved": runtime.memory_reserved() / MIB,
        "peak": runtime.max_memory_allocated() / MIB, "peak of reserved": runtime.max_memory_reserved() / MIB,
    }


def error_of(act: Callable[[], Any]) -> list[Any]:
    """Return the class of the error of a call, whether it is a MemoryError and a RuntimeError, and its text."""
    try:
        act()
        hal.synchronize()
    except (MemoryError, RuntimeError) as error:
        return [type(error).__name__, isinstance(error, MemoryError) and isinstance(error, RuntimeError), str(error)]
    return []


def main(mode: str, is_late: str) -> None:
    results: dict[str, Any] = {}
    ms.set_context(device_target="GPU", mode=int(mode))
    runtime.set_memory(max_size="0.0625GB")                              # 64 MiB
    with stand_in.late_execution() if is_late == "1" else nullcontext():
        weight = ops.ones((4, 1024, 1024))
        results["one tensor"] = figures()
        results["an operator"] = error_of(lambda: ops.ones((16, 1024, 1024)))
        results["after it"] = figures()
        net = nn.SequentialCell(nn.Dense(256, 256), nn.ReLU(), nn.Dense(256, 256))
        gradient = ms.value_and_grad(lambda x: (net(x) ** 2).sum(), None, net.trainable_params())
        x = ops.ones((16000, 256))
        results["a training step"] = error_of(lambda: gradient(x))
        del x
        results["after the step"] = figures()
        runtime.empty_cache()
        runtime.reset_peak_memory_stats()
        results["emptied"] = figures()
        results["a small step"] = error_of(lambda: gradient(ops.ones((100, 256))))
        del weight
        results["released"] = figures()
        stats, summary = runtime.memory_stats(), runtime.memory_summary()
        results["stats"] = stats["total_allocated_memory"] == runtime.memory_allocated() and f"{stats['max_allocated_memory']:,} B" in summary
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
