#!/usr/bin/env python3
"""Trains LeNet with one of the recorders of `maintenance.py` on: `maintenance_worker.py RECORDER pynative|graph FOLDER`."""
from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import turns

import torchspore


def main() -> None:
    """Serve the steps."""
    recorder, mode, folder = sys.argv[1:]
    torchspore.install()
    import mindspore as ms

    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    from programs import lenet

    step = lenet.step()
    turns.serve(SWITCHES.get(recorder, lambda _, step: step)(Path(folder), step), lambda out: out.asnumpy())


def _off(_: Path, step: Callable[[], Any]) -> Callable[[], Any]:
    """Switch everything on and off again."""
    import mindspore as ms

    ms.set_context(op_timeout=600, enable_dump=True, deterministic="ON", pynative_synchronize=True)
    ms.set_context(op_timeout=0, enable_dump=False, deterministic="OFF", pynative_synchronize=False)
    return step


def _time_out(_: Path, step: Callable[[], Any]) -> Callable[[], Any]:
    import mindspore as ms

    ms.set_context(op_timeout=600)
    return step


def _deterministic(_: Path, step: Callable[[], Any]) -> Callable[[], Any]:
    import mindspore as ms

    ms.set_context(deterministic="ON")
    return step


def _summary(folder: Path, step: Callable[[], Any]) -> Callable[[], Any]:
    import mindspore as ms

    record, numbers = ms.SummaryRecord(str(folder)), iter(range(1 << 60))

    def recorded() -> Any:
        loss = step()
        record.add_value("scalar", "loss", loss)
        record.record(next(numbers))
        return loss

    return recorded


def _profiler(folder: Path, step: Callable[[], Any]) -> Callable[[], Any]:
    import mindspore as ms

    profiler = ms.Profiler(output_path=str(folder), start_profile=False)
    steps = 0

    def profiled() -> Any:
        """Run a step in a profile of ten steps, without writing files, which would take time only once."""
        nonlocal profiler, steps
        if steps % 10 == 0:
            profiler.start()
        loss = step()
        steps += 1
        if steps % 10 == 0:
            profiler.stop()
            profiler = ms.Profiler(output_path=str(folder), start_profile=False)
        return loss

    return profiled


SWITCHES = {
    "off": _off, "op_timeout": _time_out, "deterministic": _deterministic, "summary": _summary, "profiler": _profiler,
}

if __name__ == "__main__":
    main()
