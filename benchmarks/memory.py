#!/usr/bin/env python3
"""Memory and time of a training step: torch eager, and both modes with `memory_optimize_level`, `memory_offload` and `Cell.recompute`.

    python benchmarks/memory.py [--net resnet50] [--mode graph] [--steps 3] [--folder .]

Each row is measured in separate processes, one after the other. Memory is the peak of the process during a step (VmHWM of Linux, reset
before it) without Python and its libraries: weights, optimizer state, gradients and all other values. The allocator returns freed blocks at
once. Time is measured in another process, without this allocator. Numbers are compared by the bits of the losses of two steps. torch eager
is the step as people write it by hand, in a process without torchspore.
"""
from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NETS: dict[str, tuple[str, str, dict[str, int]]] = {
    "resnet50": ("ResNet-50, 16 images of 64 x 64, Momentum", "resnet50", {"size": 64, "batch": 16}),
    "gpt": (
        "GPT-2 small (12 layers, width 768), 4 x 128 tokens of 8,000 words, Adam", "gpt",
        {"layers": 12, "width": 768, "heads": 12, "length": 128, "batch": 4, "words": 8000},
    ),
    "tiny": ("GPT, 2 layers, width 64", "gpt", {"layers": 2, "width": 64, "heads": 4, "length": 64, "batch": 8, "words": 100}),
}
OFFLOAD = {"memory_offload": "ON"}
WAYS: dict[str, dict[str, dict[str, Any]]] = {
    "torch": {"eager": {}},
    "graph": {
        "O0": {}, "O0, no plan": {"TORCHSPORE_MEMORY_PLAN": "0"}, "O1": {"memory_optimize_level": "O1"}, "mem_reuse off": {"reuse": False},
        "memory_offload": OFFLOAD,
        "memory_offload, offload_param": {**OFFLOAD, "state": True}, "recompute": {"recompute": True},
        "all of it": {**OFFLOAD, "state": True, "recompute": True},
    },
    "pynative": {
        "plain": {}, "memory_offload": OFFLOAD, "memory_offload, offload_param": {**OFFLOAD, "state": True},
        "recompute": {"recompute": True}, "all of it": {**OFFLOAD, "state": True, "recompute": True},
    },
}
SELECTED = {"gpt": ("eager", "O0", "O0, no plan", "memory_offload, offload_param", "plain")}
"""The rows of a net that takes long; other nets have all rows."""
HEAD = """| mode | how | MiB | of torch eager | s a step (min .. max) | of torch eager | numbers |
|---|---|---:|---:|---:|---:|---|"""
GIVES_BACK = {"TORCHSPORE_MALLOC": "0", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def read_kib(key: str) -> int:
    """Return one of the figures that Linux stores about this process, in KiB."""
    return int(re.findall(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())[0])


def measure(program: str, sizes: dict[str, int], mode: str, settings: dict[str, Any], steps: int, folder: str) -> dict[str, Any]:
    """Run a training step; return the most MiB in a step, the seconds of each of `steps`, and a digest of two losses."""
    if mode == "torch":
        return measure_torch(program, sizes, steps)
    import mindspore as ms
    from mindspore import nn, ops

    for kind in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):               # lazily loaded libraries do not count as memory of the step
        ms.set_context(mode=kind)
        net = nn.Dense(2, 2)
        nn.TrainOneStepCell(net, nn.Adam(net.trainable_params())).set_train()(ops.ones((2, 2))).asnumpy()
    at_start = read_kib("VmRSS")
    settings = dict(settings)
    is_recomputed, state, reuse = settings.pop("recompute", False), settings.pop("state", False), settings.pop("reuse", True)
    if not reuse:
        path = Path(folder) / f".reuse-{os.getpid()}.json"
        path.write_text('{"sys": {"mem_reuse": false}}')
        settings["env_config_path"] = str(path)
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE, **settings)
    if not reuse:
        path.unlink()
    if "memory_offload" in settings:
        ms.context.set_offload_context({"offload_path": folder, **({"offload_param": "disk"} if state else {})})
    ms.set_seed(1)
    step = importlib.import_module(f"programs.{program}").step(**sizes, **({"is_recomputed": True} if is_recomputed else {}))
    return measure_steps(lambda: step().asnumpy(), steps, at_start)


def measure_torch(program: str, sizes: dict[str, int], steps: int) -> dict[str, Any]:
    """Measure the step of the same net written by hand in torch."""
    import torch
    from handwritten import torch_step

    warm = torch.nn.Linear(2, 2)
    torch_step(warm, torch.nn.CrossEntropyLoss(), torch.optim.Adam(warm.parameters()), (torch.ones(2, 2), torch.tensor([0, 1])))()
    at_start = read_kib("VmRSS")
    torch.manual_seed(1)
    step = torch_step(*importlib.import_module(program).make(False, **sizes))
    return measure_steps(lambda: step().detach().numpy(), steps, at_start)


def measure_steps(step: Callable[[], Any], steps: int, at_start: int) -> dict[str, Any]:
    """Run `step`, which returns a loss as an array, twice for the digest and then `steps` times."""
    digest = hashlib.sha256(step().tobytes())
    digest.update(step().tobytes())
    Path("/proc/self/clear_refs").write_text("5")
    seconds = []
    for _ in range(steps):
        started = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - started)
    return {"memory": (read_kib("VmHWM") - at_start) / 1024, "seconds": seconds, "digest": digest.hexdigest()}


def measure_in_child(arguments: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    """Call `measure` in a new process."""
    process = subprocess.run(
        [sys.executable, __file__, "serve", json.dumps(arguments)], capture_output=True, text=True,
        env={**os.environ, "TORCHSPORE_WAIT": "1", **environment},
    )
    if process.returncode:
        raise SystemExit(process.stderr)
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def table(net: str, modes: list[str], steps: int, folder: str) -> None:
    """Print the rows of one net."""
    title, program, sizes = NETS[net]
    print(f"\n### {title}\n\n{HEAD}", flush=True)
    eager: dict[str, Any] = {}
    for mode in ("torch", *modes):
        digest = ""
        for how, settings in WAYS[mode].items():
            if how not in SELECTED.get(net, WAYS[mode]):
                continue
            result = measure_row(mode, settings, program, sizes, steps, folder)
            eager, digest = eager or result, digest or result["digest"]
            median, base = statistics.median(result["seconds"]), statistics.median(eager["seconds"])
            verdict = "" if mode == "torch" else "equal" if result["digest"] == digest else "DIFFERENT"
            print(f"| {mode} | {how} | {result['memory']:.0f} | {result['memory'] / eager['memory']:.2f} | {median:.2f} "
                  f"({min(result['seconds']):.2f} .. {max(result['seconds']):.2f}) | {median / base:.2f} | {verdict} |", flush=True)


def measure_row(mode: str, settings: dict[str, Any], program: str, sizes: dict[str, int], steps: int, folder: str) -> dict[str, Any]:
    """Measure the memory of a step and, if `steps` is not 0, the time of several steps in a second process."""
    variables = {name: value for name, value in settings.items() if name.isupper()}
    options = {name: value for name, value in settings.items() if name not in variables}
    arguments = {"program": program, "sizes": sizes, "mode": mode, "settings": options, "steps": 1, "folder": folder}
    result = measure_in_child(arguments, {**GIVES_BACK, **variables})
    if steps:
        result["seconds"] = measure_in_child({**arguments, "steps": steps}, variables)["seconds"]
    return result


def main() -> None:
    """Print the tables."""
    if sys.argv[1:2] == ["serve"]:
        arguments = json.loads(sys.argv[2])
        if arguments["mode"] != "torch":
            import torchspore

            torchspore.install()
        print(json.dumps(measure(**arguments)))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", choices=[*NETS, "both"], default="both")
    parser.add_argument("--mode", choices=["graph", "pynative", "both"], default="both")
    parser.add_argument("--steps", type=int, default=3, help="timed steps; 0: time one step in the process whose memory is measured")
    parser.add_argument("--folder", default=".", help="a folder on the disk to which values move")
    options = parser.parse_args()
    for net in ("resnet50", "gpt") if options.net == "both" else (options.net,):
        table(net, ["graph", "pynative"] if options.mode == "both" else [options.mode], options.steps, str(Path(options.folder).resolve()))
    print(f"\n{os.cpu_count()} cores, load {' '.join(f'{load:.1f}' for load in os.getloadavg())} in the last 1, 5 and 15 minutes")


if __name__ == "__main__":
    main()
