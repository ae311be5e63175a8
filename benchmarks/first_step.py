#!/usr/bin/env python3
"""The first step in fresh processes, compared with torch's: `python benchmarks/first_step.py [--rounds N]`.

A first step of torchspore at O0 captures the graph, generates its code and runs it once; torch's first step only runs. Imports and the
creation of the net are not counted.
"""
from __future__ import annotations

import json
import statistics
import sys
from typing import Any

import turns

NETS: dict[str, tuple[str, str, dict[str, Any], float]] = {
    "MLP, training": ("mlp", "step", {}, 0.35),
    "LeNet-5, training": ("lenet", "step", {}, 0.5),
    "ResNet-50, training": ("resnet50", "step", {}, 2.0),
    "BERT-base, forward": ("bert", "infer", {}, 1.5),
    "GPT of 24 layers, training": ("gpt", "step", {"layers": 24}, 3.0),
}
"""By title: the program, `step` or `infer`, its sizes, and the limit in seconds of its first step on an idle machine."""


def main() -> None:
    """Print the table."""
    options = turns.arguments(__doc__ or "")
    print(f"\n### First step in a fresh process, seconds, the median of {options.rounds}\n")
    print("| net | torch eager | PyNative | Graph O0 | Graph O0 as a ratio to torch eager (median, min .. max) | limit for O0 |")
    print("|---|---:|---:|---:|---|---:|")
    for title, (program, what, sizes, limit) in NETS.items():
        workers = {
            "torch": ("torch_worker.py", program, "cpu", what, json.dumps(sizes), "eager"),
            **{how: ("spore_worker.py", program, what, json.dumps(sizes), how) for how in ("PyNative", "O0")},
        }
        times: dict[str, list[float]] = {who: [] for who in workers}
        for _ in range(options.rounds):
            for who, arguments in workers.items():
                process = turns.Worker(sys.executable, *arguments)
                times[who].append(process.first)
                process.close()
        medians = " | ".join(f"{statistics.median(seconds):.2f}" for seconds in times.values())
        print(f"| {title} | {medians} | {turns.ratio(times['O0'], times['torch'])} | {limit:.2f} |", flush=True)


if __name__ == "__main__":
    main()
