#!/usr/bin/env python3
"""The cost of recorders, on and off, for a step. `python benchmarks/maintenance.py [--rounds N]`.

A LeNet training step, batch 64, in both modes; each recorder has a separate process. They take turns, and a ratio compares each with the
process without any setting in the same round.
"""
from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

import turns

RECORDERS = {
    "nothing set": "-",
    "off": "switched on, and off again before the first step",
    "recorder": "`MS_RDR_ENABLE=1`",
    "recorder, replay": "`MS_RDR_ENABLE=1 MS_RDR_REPLAY=1`: every step can be run again",
    "op_timeout": "`op_timeout=600`",
    "deterministic": "`deterministic='ON'`",
    "summary": "`SummaryRecord`, one scalar a step",
    "profiler": "`Profiler`, while it watches",
    "dump, statistics": "`MINDSPORE_DUMP_CONFIG`, a table of statistics of all operators",
    "dump": "`MINDSPORE_DUMP_CONFIG`, inputs and outputs of all operators",
}
STEPS = {"dump, statistics": 2, "dump": 2, "profiler": 20}
_STEPS = 50
"""Of a turn."""


def main() -> None:
    """Measure both modes."""
    options = turns.arguments(__doc__ or "")
    print(f"\n### a LeNet training step, times the step with nothing set, the median of {options.rounds} rounds\n")
    print("| recorder | how | PyNative | Graph |\n|---|---|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        ratios = {mode: _ratios(mode, Path(name) / mode, options.rounds) for mode in ("pynative", "graph")}
    for recorder, how in RECORDERS.items():
        if recorder != "nothing set":
            print(f"| {recorder} | {how} | " + " | ".join(f"{ratios[mode][recorder]:.2f}x" for mode in ratios) + " |")


def _ratios(mode: str, folder: Path, rounds: int) -> dict[str, float]:
    started = {recorder: _start(recorder, mode, folder / recorder.replace(", ", "-")) for recorder in RECORDERS}
    times = turns.measure_stopped(started, rounds + 1, lambda recorder: STEPS.get(recorder, _STEPS))
    plain = times["nothing set"][1:]                   # the first round warms up
    return {name: statistics.median(a / b for a, b in zip(seconds[1:], plain)) for name, seconds in times.items()}


def _start(recorder: str, mode: str, folder: Path) -> turns.Worker:
    folder.mkdir(parents=True)
    surroundings = {}
    if recorder.startswith("recorder"):
        surroundings = {"MS_RDR_ENABLE": "1", "MS_RDR_PATH": str(folder)}
        surroundings |= {"MS_RDR_REPLAY": "1"} if "replay" in recorder else {}
    elif recorder.startswith("dump"):
        saved = "statistic" if "statistics" in recorder else "tensor"
        common = {
            "dump_mode": 0, "path": str(folder), "net_name": "Net", "iteration": "all", "saved_data": saved, "input_output": 0,
            "kernels": [], "support_device": [0],
        }
        settings = folder / "dump.json"
        settings.write_text(json.dumps({"common_dump_settings": common}))
        surroundings = {"MINDSPORE_DUMP_CONFIG": str(settings)}
    return turns.Worker(sys.executable, "maintenance_worker.py", recorder, mode, str(folder), environment=surroundings)


if __name__ == "__main__":
    main()
