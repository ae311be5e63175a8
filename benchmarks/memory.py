"""Memory and time of a training step: `memory_optimize_level`, `memory_offload`, `Cell.recompute` and together, in both modes.

    python benchmarks/memory.py [--net resnet50] [--mode graph] [--steps 3] [--folder .]

Each row is measured in processes of its own, one after the other. Memory is what the process holds beyond Python and its libraries at most
during a step (VmHWM of Linux, set back before it): weights, optimizer state, gradients and all other values, with an allocator that gives
freed blocks back at once. Time is measured in another process, without that. Numbers are compared by the bits of the losses of two steps.
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
    "graph": {
        "O0": {}, "O1": {"memory_optimize_level": "O1"}, "mem_reuse off": {"reuse": False}, "memory_offload": OFFLOAD,
        "memory_offload, offload_param": {**OFFLOAD, "state": True}, "recompute": {"again": True},
        "recompute, O1": {"again": True, "memory_optimize_level": "O1"}, "all of it": {**OFFLOAD, "state": True, "again": True},
    },
    "pynative": {
        "plain": {}, "memory_offload": OFFLOAD, "memory_offload, offload_param": {**OFFLOAD, "state": True}, "recompute": {"again": True},
        "all of it": {**OFFLOAD, "state": True, "again": True},
    },
}
HEAD = """| mode | how | MiB | of the first | s a step (min .. max) | of the first | numbers |
|---|---|---:|---:|---:|---:|---|"""
GIVES_BACK = {"TORCHSPORE_MALLOC": "0", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def kib(key: str) -> int:
    """One of the figures that Linux keeps of this process."""
    return int(re.findall(rf"{key}:\s+(\d+)", Path("/proc/self/status").read_text())[0])


def measured(program: str, sizes: dict[str, int], mode: str, wanted: dict[str, Any], steps: int, folder: str) -> dict[str, Any]:
    """What a process tells: the most MiB in a step, the seconds of each of `steps`, the bits of two losses."""
    import mindspore as ms
    from mindspore import nn, ops

    for kind in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):               # what is loaded at first use counts as Python's and its libraries'
        ms.set_context(mode=kind)
        net = nn.Dense(2, 2)
        nn.TrainOneStepCell(net, nn.Adam(net.trainable_params())).set_train()(ops.ones((2, 2))).asnumpy()
    at_start = kib("VmRSS")
    wanted = dict(wanted)
    again, state, reuse = wanted.pop("again", False), wanted.pop("state", False), wanted.pop("reuse", True)
    if not reuse:
        path = Path(folder) / f".reuse-{os.getpid()}.json"
        path.write_text('{"sys": {"mem_reuse": false}}')
        wanted["env_config_path"] = str(path)
    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE, **wanted)
    if not reuse:
        path.unlink()
    if "memory_offload" in wanted:
        ms.context.set_offload_context({"offload_path": folder, **({"offload_param": "disk"} if state else {})})
    ms.set_seed(1)
    step = importlib.import_module(f"programs.{program}").step(**sizes, **({"again": True} if again else {}))
    digest = hashlib.sha256(step().asnumpy().tobytes())
    digest.update(step().asnumpy().tobytes())
    Path("/proc/self/clear_refs").write_text("5")
    seconds = []
    for _ in range(steps):
        started = time.perf_counter()
        step().asnumpy()
        seconds.append(time.perf_counter() - started)
    return {"memory": (kib("VmHWM") - at_start) / 1024, "seconds": seconds, "digest": digest.hexdigest()}


def elsewhere(told: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    """`measured` in a new process."""
    ran = subprocess.run(
        [sys.executable, __file__, "serve", json.dumps(told)], capture_output=True, text=True,
        env={**os.environ, "TORCHSPORE_WAIT": "1", **environment},
    )
    if ran.returncode:
        raise SystemExit(ran.stderr)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def table(net: str, modes: list[str], steps: int, folder: str) -> None:
    """Prints the rows of one net."""
    title, program, sizes = NETS[net]
    print(f"\n### {title}\n\n{HEAD}", flush=True)
    for mode in modes:
        first: dict[str, Any] = {}
        for how, wanted in WAYS[mode].items():
            told = {"program": program, "sizes": sizes, "mode": mode, "wanted": wanted, "steps": 1, "folder": folder}
            found = elsewhere(told, GIVES_BACK)
            if steps:
                found["seconds"] = elsewhere({**told, "steps": steps}, {})["seconds"]
            first = first or found
            took, base = statistics.median(found["seconds"]), statistics.median(first["seconds"])
            same = "equal" if found["digest"] == first["digest"] else "DIFFERENT"
            print(f"| {mode} | {how} | {found['memory']:.0f} | {found['memory'] / first['memory']:.2f} | {took:.2f} "
                  f"({min(found['seconds']):.2f} .. {max(found['seconds']):.2f}) | {took / base:.2f} | {same} |", flush=True)


def main() -> None:
    """Prints the tables."""
    if sys.argv[1:2] == ["serve"]:
        import torchspore

        torchspore.install()
        print(json.dumps(measured(**json.loads(sys.argv[2]))))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--net", choices=[*NETS, "both"], default="both")
    parser.add_argument("--mode", choices=[*WAYS, "both"], default="both")
    parser.add_argument("--steps", type=int, default=3, help="steps whose time is taken; 0: one, of the process whose memory is measured")
    parser.add_argument("--folder", default=".", help="a folder on the disk that values move to")
    given = parser.parse_args()
    for net in ("resnet50", "gpt") if given.net == "both" else (given.net,):
        table(net, list(WAYS) if given.mode == "both" else [given.mode], given.steps, str(Path(given.folder).resolve()))
    print(f"\n{os.cpu_count()} cores, load {' '.join(f'{load:.1f}' for load in os.getloadavg())} in the last 1, 5 and 15 minutes")


if __name__ == "__main__":
    main()
