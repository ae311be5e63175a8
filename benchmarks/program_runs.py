"""Runs of programs, each in a fresh process and in turns, and the table of their times: for whole.py and whole_zoo.py."""
from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import turns

LONGEST = 15.0
"""The most seconds of a run of real MindSpore."""


@dataclass(frozen=True)
class Run:
    """The seconds of a program, infinite if it was stopped; the peak of its memory; and the text that it printed."""

    seconds: float
    mebibytes: float
    output: str = ""


def run(command: list[str], environment: Mapping[str, str], title: str, longest: float | None = None) -> Run:
    """Run a command in a fresh process and an empty folder; stop it after `longest` seconds. Raise RuntimeError if it fails."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("TORCHSPORE_WAIT", "PYTHONDONTWRITEBYTECODE")}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as printed:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env={**inherited, **environment, "TORCHINDUCTOR_CACHE_DIR": folder},
                                   stdout=printed, stderr=subprocess.STDOUT)
        alarm = threading.Timer(longest or 0, process.kill)
        if longest is not None:
            alarm.start()
        _, status, usage = os.wait4(process.pid, 0)
        alarm.cancel()
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        output = printed.read().decode(errors="replace")
    if longest is not None and seconds >= longest:
        seconds = float("inf")
    elif process.returncode:
        raise RuntimeError(f"{title}: exit code {process.returncode}: {last_error(output)}")
    return Run(seconds, usage.ru_maxrss / _units_per_mebibyte(), output)


def last_error(output: str) -> str:
    """Return the last line of an output that names an error, or else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    details = [line for line in lines if re.match(r"\[ERROR\] (?!\w+\()", line)]
    if errors and details and "Refer to 'Dataset Pipeline Error Message'" in errors[-1]:
        return details[-1]
    return (errors or lines or ["no output"])[-1]


def _units_per_mebibyte() -> int:
    return 1024 if sys.platform.startswith("linux") else 1 << 20


def measure(
    contenders: Mapping[str, Callable[[float | None], Run]], rounds: int, once: Collection[str], base: str,
) -> tuple[dict[str, list[Run]], dict[str, str]]:
    """Run the contenders in turns. Return their runs, and the reasons why contenders failed.

    A contender is a function that receives its limit of seconds. Those of `once` run in the first round only, for at most three times the
    seconds of `base`, and only they may fail.
    """
    runs: dict[str, list[Run]] = {contender: [] for contender in contenders}
    failures: dict[str, str] = {}
    for turn in range(rounds):
        for contender, start in contenders.items():
            if contender in once and turn:
                continue
            try:
                runs[contender].append(start(find_limit(runs[base]) if contender in once else None))
            except RuntimeError as error:
                if contender not in once:
                    raise
                failures[contender] = str(error)
    return runs, failures


def find_limit(runs: list[Run]) -> float:
    """Return the seconds after which a contender is stopped, for the runs of the base."""
    return min(LONGEST, 3 * runs[0].seconds)


def print_table(title: str, runs: Mapping[str, list[Run]], failures: Mapping[str, str], base: str) -> None:
    """Print the table of the runs of a program: seconds, ratio to those of `base`, and the peak of the memory."""
    print(f"\n### {title}\n")
    print(f"| contender | s | ratio to {base} (median, min .. max of {len(runs[base])}) | peak of the memory, MiB |")
    print("|---|---:|---|---:|")
    seconds_of_base = [run.seconds for run in runs[base]]
    for contender, results in runs.items():
        if contender in failures:
            print(f"| {contender} | fails | | |")
            continue
        times = [run.seconds for run in results]
        if times[0] == float("inf"):
            print(f"| {contender} | stopped after {find_limit(runs[base]):.0f} | | |")
            continue
        ratios = turns.ratio(times, seconds_of_base[:len(times)])
        peak = statistics.median(run.mebibytes for run in results)
        print(f"| {contender} | {statistics.median(times):.2f} | {ratios} | {peak:.0f} |")
    sys.stdout.flush()
