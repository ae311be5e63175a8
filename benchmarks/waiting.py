#!/usr/bin/env python3
"""The share of a training that waits for its data. `python benchmarks/waiting.py [--oracle PYTHON]`.

ResNet-18 on pictures of 64 x 64 from JPEG files (decode, random crop, flip, normalize), one epoch of 512, batch 16; each contender once
with the pipeline and once with as many batches in memory. The additional time with files is the time spent on data: steps wait for the
pipeline, or share the cores with it.
"""
from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import turns

import torchspore

TITLES = {"torchspore": "torchspore, Model.train", "mindspore": "MindSpore 2.10, Model.train", "torch": "torch, DataLoader"}


def main() -> None:
    """Measure each contender in turns."""
    options = turns.arguments(__doc__ or "")
    torchspore.install()
    from programs import data

    contenders = {"torchspore": sys.executable, "torch": sys.executable}
    if options.oracle:
        contenders["mindspore"] = options.oracle
    with tempfile.TemporaryDirectory() as name:
        data.make(Path(name))
        times = _times(contenders, Path(name), options.rounds)
    print(f"\n### ResNet-18 from JPEG files, seconds an epoch of 512 pictures, the median of {options.rounds}\n")
    print("| contender | batches in memory | JPEG files, 2 workers | spent on data |\n|---|---:|---:|---:|")
    for who in contenders:
        memory, files = (times[who, source] for source in ("memory", "files"))
        share = statistics.median(1 - in_memory / from_files for in_memory, from_files in zip(memory, files))
        print(f"| {TITLES[who]} | {statistics.median(memory):.2f} | {statistics.median(files):.2f} | {share:.0%} |")


def _times(contenders: dict[str, str], folder: Path, rounds: int) -> dict[tuple[str, str], list[float]]:
    started = {
        (who, source): turns.Worker(python, "waiting_worker.py", who, source, str(folder))
        for who, python in contenders.items() for source in ("memory", "files")
    }
    return turns.measure_stopped(started, rounds)


if __name__ == "__main__":
    main()
