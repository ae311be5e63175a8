"""`memory_optimize_level` and `sys.mem_reuse`: memory and time of a training step, each in a process of its own.

    python benchmarks/memory.py [--size 64] [--batch 8]

Memory is the most that tensors made in a step take at a time (Parameters and optimizer state are there before), as torch's profiler
counts it. Numbers are compared by the bits of the losses of six steps. The processes take turns for the times.
"""
from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import recompute
import turns

STEPS = 6
WAYS: dict[str, dict[str, str]] = {"O0": {}, "O1": {"memory_optimize_level": "O1"}, "O0, mem_reuse off": {"env_config_path": "off"}}
HEAD = """| net | how | MiB | of O0 | ms a step | of O0 (median, min .. max) | first call s | numbers |
|---|---|---:|---:|---:|---|---:|---|"""


def serve(program: str, sizes: dict[str, int], context: dict[str, str], told: Path) -> None:
    """Writes what memory (MiB), first call (s) and numbers are to a file, then does steps when it is asked to."""
    import mindspore as ms

    if "env_config_path" in context:
        path = told.with_suffix(".config.json")
        path.write_text('{"sys": {"mem_reuse": false}}')
        context = {"env_config_path": str(path)}
    ms.set_context(mode=ms.GRAPH_MODE, **context)
    ms.set_seed(1)
    step = importlib.import_module(f"programs.{program}").step(**sizes)
    started = time.perf_counter()
    digest = hashlib.sha256(step().asnumpy().tobytes())
    first = time.perf_counter() - started
    for _ in range(STEPS - 1):
        digest.update(step().asnumpy().tobytes())
    told.write_text(json.dumps({"memory": recompute.peak(step), "first": first, "digest": digest.hexdigest()}))
    turns.serve(step, lambda out: out.asnumpy())


def table(name: str, program: str, sizes: dict[str, int], rounds: int, seconds: float) -> None:
    """Prints the rows of one net."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {how: Path(folder) / f"{place}.json" for place, how in enumerate(WAYS)}
        told = json.dumps(sizes)
        workers = {how: turns.Elsewhere(sys.executable, "memory.py", "serve", program, told, how, str(paths[how])) for how in WAYS}
        found: dict[str, dict[str, Any]] = {how: json.loads(path.read_text()) for how, path in paths.items()}
        times = turns.taken({how: worker.seconds for how, worker in workers.items()}, seconds, rounds)
        for worker in workers.values():
            worker.close()
    base = found["O0"]
    for how, own in found.items():
        same = "equal" if own["digest"] == base["digest"] else "DIFFERENT"
        print(f"| {name} | {how} | {own['memory']:.1f} | {own['memory'] / base['memory']:.2f} | {statistics.median(times[how]) * 1000:.1f} "
              f"| {turns.ratio(times[how], times['O0'])} | {own['first']:.1f} | {same} |", flush=True)


def main() -> None:
    """Prints the table."""
    if len(sys.argv) > 1 and sys.argv[1] == "serve":
        import torchspore

        torchspore.install()
        serve(sys.argv[2], json.loads(sys.argv[3]), WAYS[sys.argv[4]], Path(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=64, help="height and width of ResNet-50's images")
    parser.add_argument("--batch", type=int, default=8, help="ResNet-50's batch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="how long one turn takes")
    given = parser.parse_args()
    print(f"### Memory of a training step\n\n{HEAD}")
    images = f"ResNet-50, {given.batch} images of {given.size} x {given.size}"
    table(images, "resnet50", {"size": given.size, "batch": given.batch}, given.rounds, given.seconds)
    table("GPT, 4 layers, width 256, length 128", "gpt", {}, given.rounds, given.seconds)


if __name__ == "__main__":
    main()
