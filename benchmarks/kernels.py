#!/usr/bin/env python3
"""Graph kernels: the number of kernels that a call launches at each `opt_level`, and its time.

    python benchmarks/kernels.py [--nets gpt,elementwise,mlp] [--rounds 7] [--seconds 0.4]

Kernels are counted from outside: operators that torch dispatches, except views, and C++ functions of generated code. Each level
has a separate process with an empty cache of compiled kernels; all take turns for the times. Numbers are compared by the first loss, or
the result, of level 0.
"""
from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import turns

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support import kernel_launches

LEVELS = ("0", "1", "2", "3")
NETS = {
    "gpt": ("GPT of four layers, width 256, batch 8 x 128, training step", "gpt", {}),
    "elementwise": ("elementwise operators on 1024 x 1024, a softmax and a layer norm among them", "elementwise", {}),
    "mlp": ("MLP 784-512-512-10, batch 128, training step", "mlp", {}),
}
HEAD = """| net | opt_level | kernels launched | generated | ms a step | ratio to level 0 (median, min .. max) | s, first step | off by |
|---|---:|---:|---:|---:|---|---:|---:|"""


def serve(program: str, sizes: dict[str, int], level: str, report: Path) -> None:
    """Write the launched kernels, the seconds of the first call and the numbers to a file, then serve steps."""
    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE, graph_kernel_flags=f"--opt_level={level}")
    ms.set_seed(1)
    step = importlib.import_module(f"programs.{program}").step(**sizes)
    started = time.perf_counter()
    numbers = step().asnumpy().ravel()[:1000].tolist()
    first = time.perf_counter() - started
    step()
    report.write_text(json.dumps({"launched": kernel_launches.launched(step), "first": first, "numbers": numbers}))
    turns.serve(step, lambda out: out.asnumpy())


def table(title: str, program: str, sizes: dict[str, int], rounds: int, seconds: float) -> None:
    """Print the rows of one net."""
    with tempfile.TemporaryDirectory() as folder:
        workers = {
            level: turns.Worker(
                sys.executable, "kernels.py", "serve", program, json.dumps(sizes), level, f"{folder}/{level}.json",
                environment={"TORCHINDUCTOR_CACHE_DIR": f"{folder}/kernels{level}"},
            ) for level in LEVELS
        }
        reports: dict[str, dict[str, Any]] = {level: json.loads(Path(f"{folder}/{level}.json").read_text()) for level in LEVELS}
        times = turns.measure({level: worker.seconds for level, worker in workers.items()}, seconds, rounds)
        for worker in workers.values():
            worker.close()
    base = reports["0"]["numbers"]
    for level, report in reports.items():
        error = max(abs(a - b) for a, b in zip(report["numbers"], base)) / max(map(abs, base))
        generated = report["launched"].count("generated")
        print(f"| {title} | {level} | {len(report['launched'])} | {generated} | {statistics.median(times[level]) * 1e3:.3f} | "
              f"{turns.ratio(times[level], times['0'])} | {report['first']:.1f} | {error:.0e} |", flush=True)


def main() -> None:
    """Measure the selected nets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nets", default=",".join(NETS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.4, help="how long one turn takes")
    options, _ = parser.parse_known_args()
    print(f"### Graph kernels: `graph_kernel_flags='--opt_level=N'` at jit_level O0\n\n{HEAD}", flush=True)
    for name in options.nets.split(","):
        table(*NETS[name], options.rounds, options.seconds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        import torchspore

        torchspore.install()
        serve(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4], Path(sys.argv[5]))
    else:
        main()
