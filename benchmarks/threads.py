"""Whether the defaults for threads are good: `python benchmarks/threads.py`. Seconds an epoch of ResNet-18 that trains from JPEG files.

Threads of operators (`runtime_num_threads`) against workers of the data pipeline, from one to twice the cores, beside the defaults of both.
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
    """Measures each pair in turns."""
    options = turns.arguments(__doc__ or "")
    torchspore.install()
    from programs import data

    many = sorted({1, cores.usable(), 2 * cores.usable()})
    with tempfile.TemporaryDirectory() as name:
        data.make(Path(name))
        times = _times([("default", "default"), *((str(w), str(t)) for t in many for w in many)], name, options.rounds)
    usual = times["default", "default"]
    print(f"\n### Workers and threads on {cores.usable()} cores, seconds an epoch of 512 pictures, the median of {options.rounds}\n")
    print(f"The defaults of both: {statistics.median(usual):.2f} s. More threads of operators than cores are capped at the cores.\n")
    print("| threads of operators | " + " | ".join(f"{workers} workers" for workers in many) + " |\n|---|" + "---:|" * len(many))
    for threads in many:
        row = [times[str(workers), str(threads)] for workers in many]
        cells = [f"{statistics.median(own):.2f} s ({_ratio(own, usual):.2f}x)" for own in row]
        print(f"| {threads} | {' | '.join(cells)} |")


def _ratio(own: list[float], usual: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(own, usual))


def _times(pairs: list[tuple[str, str]], folder: str, rounds: int) -> dict[tuple[str, str], list[float]]:
    started = {pair: turns.Elsewhere(sys.executable, "waiting_worker.py", "torchspore", "files", folder, *pair) for pair in pairs}
    return turns.asleep_between(started, rounds)


if __name__ == "__main__":
    main()
