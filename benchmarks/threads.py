#!/usr/bin/env python3
"""Compares the default numbers of threads with others: `python benchmarks/threads.py`. Seconds of an epoch of ResNet-18 from JPEG files.

The table has threads of operators (`runtime_num_threads`) and workers of the data pipeline, from one to twice the cores.
"""
from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import turns

import torchspore
from torchspore.base import cores


def main() -> None:
    """Measure each pair in turns."""
    options = turns.arguments(__doc__ or "")
    torchspore.install()
    from programs import data

    counts = sorted({1, cores.usable(), 2 * cores.usable()})
    with tempfile.TemporaryDirectory() as name:
        data.make(Path(name))
        times = _times([("default", "default"), *((str(w), str(t)) for t in counts for w in counts)], name, options.rounds)
    defaults = times["default", "default"]
    print(f"\n### Workers and threads on {cores.usable()} cores, seconds an epoch of 512 pictures, the median of {options.rounds}\n")
    print(f"The defaults of both: {statistics.median(defaults):.2f} s. More threads of operators than cores are capped at the cores.\n")
    print("| threads of operators | " + " | ".join(f"{workers} workers" for workers in counts) + " |\n|---|" + "---:|" * len(counts))
    for threads in counts:
        row = [times[str(workers), str(threads)] for workers in counts]
        cells = [f"{statistics.median(times_of_pair):.2f} s ({_ratio(times_of_pair, defaults):.2f}x)" for times_of_pair in row]
        print(f"| {threads} | {' | '.join(cells)} |")


def _ratio(times: list[float], defaults: list[float]) -> float:
    return statistics.median(seconds / default for seconds, default in zip(times, defaults))


def _times(pairs: list[tuple[str, str]], folder: str, rounds: int) -> dict[tuple[str, str], list[float]]:
    started = {pair: turns.Worker(sys.executable, "waiting_worker.py", "torchspore", "files", folder, *pair) for pair in pairs}
    return turns.measure_stopped(started, rounds)


if __name__ == "__main__":
    main()
