#!/usr/bin/env python3
"""Rows a second of data pipelines, compared with real MindSpore and torch's DataLoader. `python benchmarks/data.py [--oracle PYTHON]`.

Each pipeline is read by 1, 2 and 4 workers; each contender has a separate process, and they take turns: a few epochs in each round. The
others are stopped, because they would read ahead.
"""
from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

import turns

import torchspore

WORKERS = (1, 2, 4)
PIPELINES = ("rows", "function", "jpeg", "folder", "sentences", "records", "mel")
NOT_IN_TORCH = ("records",)
_EPOCHS = 3
"""Epochs of a turn, for a pipeline that needs at most a second for the first epoch; others read one epoch in a turn."""


def main() -> None:
    """Measure every pipeline."""
    options = turns.arguments(__doc__ or "")
    torchspore.install()
    from programs import data

    names = os.environ.get("PIPELINES", " ".join(PIPELINES)).split()
    print(f"\n### rows a second, the median of {options.rounds} epochs\n")
    heads = " | ".join(f"{workers} worker{'s' * (workers > 1)}" for workers in WORKERS)
    print(f"| pipeline | contender | {heads} | ours to the best of the others |\n|---|---|{'---:|' * len(WORKERS)}---|")
    with tempfile.TemporaryDirectory() as name:
        data.make(Path(name))
        for pipeline in names:
            _measure(pipeline, Path(name), options)


def _measure(pipeline: str, folder: Path, options) -> None:
    contenders = {"torchspore": sys.executable}
    if options.oracle:
        contenders["mindspore"] = options.oracle
    if pipeline not in NOT_IN_TORCH:
        contenders["torch"] = sys.executable
    rates: dict[str, list[float]] = {who: [] for who in contenders}
    for workers in WORKERS:
        for who, rate in _rates(pipeline, workers, folder, contenders, options.rounds).items():
            rates[who].append(rate)
    shares = [
        f"{rates['torchspore'][at] / max(rates[who][at] for who in rates if who != 'torchspore'):.2f}" if len(rates) > 1 else "-"
        for at in range(len(WORKERS))
    ]
    titles = {"torchspore": "torchspore", "mindspore": "MindSpore 2.10", "torch": "torch DataLoader"}
    for who, rates_of_contender in rates.items():
        figures, share = " | ".join(f"{rate:,.0f}" for rate in rates_of_contender), " / ".join(shares) if who == "torchspore" else ""
        print(f"| {pipeline} | {titles[who]} | {figures} | {share} |")
    sys.stdout.flush()


def _rates(pipeline: str, workers: int, folder: Path, contenders: dict[str, str], rounds: int) -> dict[str, float]:
    """Return the rows a second of each contender: all start and run one epoch, then take turns."""
    counts = {"rows": 8192, "function": 8192, "jpeg": 512, "folder": 512, "sentences": 4096, "records": 4096, "mel": 512}
    started = {
        who: turns.Worker(python, "data_worker.py", who, pipeline, str(workers), str(folder)) for who, python in contenders.items()
    }
    times = turns.measure_stopped(started, rounds, lambda who: _EPOCHS if started[who].first < 1 else 1)
    return {who: counts[pipeline] / statistics.median(times_of_contender) for who, times_of_contender in times.items()}


if __name__ == "__main__":
    main()
