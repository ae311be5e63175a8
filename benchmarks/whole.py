#!/usr/bin/env python3
"""Whole programs, from start to the end of three epochs: `python benchmarks/whole.py [--oracle PYTHON] [--rounds N] [--nets lenet,gan]`.

Each program of `whole_programs/written_for_mindspore` runs unchanged in torchspore and, with `--oracle`, in real MindSpore; the program of
the same name in `written_for_torch` is what people write by hand for torch. The time includes imports, the creation of the network, data,
compilation and training; O1 compiles in the background, as by default. The memory is the peak of the process (its resident set).
The programs run one after the other, in several rounds; a ratio compares runs of the same round. Real MindSpore runs once, and is stopped
after three times the seconds of torch's program, at most LONGEST.
"""
from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import turns

LONGEST = 15.0

FOLDER = Path(__file__).parent / "whole_programs"
NETS = {path.stem: path.read_text(encoding="utf-8").split('"""')[1].partition(":")[0]
        for path in sorted((FOLDER / "written_for_torch").glob("*.py"))}
"""The programs with their titles: the first words of their docstrings."""
TORCH = "torch, by hand"
OURS = {"torchspore PyNative": {"MODE": "PYNATIVE"}, "torchspore O0": {"MODE": "GRAPH", "LEVEL": "O0"},
        "torchspore O1": {"MODE": "GRAPH", "LEVEL": "O1"}}
MINDSPORE = {"MindSpore 2.10 PyNative": {"MODE": "PYNATIVE"}, "MindSpore 2.10 graph": {"MODE": "GRAPH"}}


def run(program: str, contender: str, oracle: str | None, limit: float = threading.TIMEOUT_MAX) -> tuple[float, float]:
    """Run a program in a fresh process; return its seconds and the peak of its memory in MiB.

    A program that takes longer than `limit` seconds is stopped; its seconds are infinite. Raise RuntimeError if the program fails.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("TORCHSPORE_WAIT", "PYTHONDONTWRITEBYTECODE")}
    if contender == TORCH:
        command = [sys.executable, str(FOLDER / "written_for_torch" / f"{program}.py")]
    elif contender in OURS:
        command = [sys.executable, "-m", "torchspore", "run", str(FOLDER / "written_for_mindspore" / f"{program}.py")]
        environment |= OURS[contender]
    else:
        assert oracle is not None
        command = [oracle, str(FOLDER / "written_for_mindspore" / f"{program}.py")]
        environment |= MINDSPORE[contender]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env={**environment, "TORCHINDUCTOR_CACHE_DIR": folder},
                                   stdout=subprocess.DEVNULL, stderr=errors)
        alarm = threading.Timer(limit, process.kill)
        alarm.start()
        _, status, usage = os.wait4(process.pid, 0)
        alarm.cancel()
        seconds = time.perf_counter() - started
        if seconds >= limit:
            return float("inf"), _mebibytes(usage)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"{program}, {contender}: exit code {process.returncode}: {''.join(last)}")
    return seconds, _mebibytes(usage)


def _mebibytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / (1024 if sys.platform.startswith("linux") else 1 << 20)


def main() -> None:
    """Print one table for each program."""
    programs = turns.selected_nets(NETS)
    options = turns.arguments(__doc__ or "")
    for program in programs:
        print_table(program, options)


def print_table(program: str, options: argparse.Namespace) -> None:
    """Run all contenders of a program and print its table."""
    contenders = [TORCH, *OURS, *(MINDSPORE if options.oracle else ())]
    runs: dict[str, list[tuple[float, float]]] = {contender: [] for contender in contenders}
    failures: set[str] = set()
    for turn in range(options.rounds):
        for contender in contenders:
            if contender in MINDSPORE and turn:
                continue
            limit = min(LONGEST, 3 * runs[TORCH][0][0]) if contender in MINDSPORE else threading.TIMEOUT_MAX
            try:
                runs[contender].append(run(program, contender, options.oracle, limit))
            except RuntimeError:
                if contender not in MINDSPORE:
                    raise
                failures.add(contender)
    print(f"\n### {NETS[program]}: three epochs in a fresh process\n")
    print(f"| contender | s | ratio to {TORCH} (median, min .. max of {options.rounds}) | peak of the memory, MiB |")
    print("|---|---:|---|---:|")
    base = [seconds for seconds, _ in runs[TORCH]]
    for contender, results in runs.items():
        times, peaks = [seconds for seconds, _ in results], [peak for _, peak in results]
        if contender in failures:
            print(f"| {contender} | fails | | |")
        elif times[0] == float("inf"):
            print(f"| {contender} | stopped after {min(LONGEST, 3 * base[0]):.0f} | | |")
        else:
            ratios = turns.ratio(times, base[:len(times)])
            print(f"| {contender} | {statistics.median(times):.2f} | {ratios} | {statistics.median(peaks):.0f} |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
