#!/usr/bin/env python3
"""The cost of a profiler while it records and of reading a profile: a training step with and without it, in turns.

    python benchmarks/profiling.py [--mode 0] [--rounds 9] [--steps 20] [--width 256] [--loaded]
"""
from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torchspore

torchspore.install()

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from mindspore import nn  # noqa: E402

from torchspore.observe.losses import Losses  # noqa: E402
from torchspore.observe.profiling import files  # noqa: E402
from torchspore.observe.profiling.session import ProfilerSession  # noqa: E402


class Off:
    """No profiler records."""

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class Report(Off):
    """The recorder of `torchspore run --report`."""

    def start(self) -> None:
        self._losses = Losses()
        self._losses.begin()

    def stop(self) -> None:
        self._losses.end()


WATCHERS: dict[str, Callable[[], Any]] = {
    "off": Off,
    "Profiler()": lambda: ProfilerSession(with_shapes=True),
    "Profiler(record_shapes=False)": lambda: ProfilerSession(with_shapes=False),
    "Profiler(profile_memory=True)": lambda: ProfilerSession(with_shapes=True, with_memory=True),
    "run --report": Report,
}


def step_of(width: int, mode: int) -> Callable[[], Any]:
    """Return a training step of a net of six layers."""
    ms.set_context(mode=mode)
    body = nn.SequentialCell(*[cell for _ in range(6) for cell in (nn.Dense(width, width), nn.ReLU())])
    step = nn.TrainOneStepCell(nn.WithLossCell(body, nn.MSELoss()), nn.Adam(body.trainable_params())).set_train()
    x = ms.Tensor(np.random.RandomState(0).randn(64, width).astype(np.float32))
    return lambda: step(x, x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("mode", 0), ("rounds", 9), ("steps", 20), ("width", 256)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--loaded", action="store_true", help="measure processor time of one thread, for a machine with other work")
    options, _ = parser.parse_known_args()
    clock = time.process_time if options.loaded else time.perf_counter
    if options.loaded:
        torch.set_num_threads(1)
    step = step_of(options.width, options.mode)
    for _ in range(5):
        step()
    seconds_by_recorder: dict[str, list[float]] = {name: [] for name in WATCHERS}
    reads: list[tuple[int, float, float]] = []
    for _ in range(options.rounds):
        for name, make in WATCHERS.items():
            watcher = make()
            watcher.start()
            started = clock()
            for _ in range(options.steps):
                step()
            seconds_by_recorder[name].append((clock() - started) / options.steps)
            watcher.stop()
            if name == "Profiler()":
                started = clock()
                record = watcher.read()
                read = clock() - started
                with tempfile.TemporaryDirectory() as folder:
                    started = clock()
                    files.write(record, Path(folder), files.FileSelection())
                    reads.append((len(record.operators), read, clock() - started))
    how = f"a step of six layers of {options.width}, mode {options.mode}, {options.rounds} rounds of {options.steps} steps"
    print(f"### What watching costs: {how}\n")
    print("| | ms a step | of off (median, min .. max) |\n|---|---:|---:|")
    for name, seconds in seconds_by_recorder.items():
        ratios = [recorded / off for recorded, off in zip(seconds, seconds_by_recorder["off"])]
        ratio_text = f"{statistics.median(ratios):.2f}x ({min(ratios):.2f} .. {max(ratios):.2f})"
        print(f"| {name} | {statistics.median(seconds) * 1e3:.2f} | {ratio_text} |")
    count = reads[-1][0]
    reading, writing = (statistics.median(times[column] for times in reads) / count * 1e6 for column in (1, 2))
    print(f"\nAfterwards a profile of {count:,} operators is read in {reading:.0f} us and written in {writing:.0f} us an operator.")


if __name__ == "__main__":
    main()
