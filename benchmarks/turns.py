"""Timing in turns: all contenders run one after the other, in several rounds; a ratio compares times of the same round.

A contender is a function that runs one step. Some have a separate process, which waits while the others run: plain torch, because
torchspore's engine changes how a process reuses memory, and real MindSpore, if an option names a Python that has it.
"""
from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

os.environ.setdefault("TORCHSPORE_WAIT", "1")          # measure the forms of O1 and O2, and not the code that runs before they are ready
HERE = Path(__file__).parent
FAST, SLOW, VERY_SLOW = 0.3, 1.0, 5.0
"""Seconds of a step, which decide how often a contender runs."""
Step = Callable[[], Any]
Seconds = Callable[[int], float]
"""Returns the seconds of n steps."""

CLOCK = time.process_time if os.environ.get("TURNS_CLOCK") == "processor" else time.perf_counter
"""Seconds of wall time; TURNS_CLOCK=processor counts the processor time of all threads, which a loaded machine changes less."""


class TooSlow(Exception):
    """A process needed longer than its limit until the end of its first step."""


class Worker:
    """Steps in another process: `worker` is a file of this folder that answers the seconds of n steps."""

    def __init__(
        self, python: str, worker: str, *arguments: str, environment: dict[str, str] | None = None, waits: bool = True,
        limit: float | None = None,
    ) -> None:
        self._process = subprocess.Popen(
            [python, str(HERE / worker), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **(environment or {})}, start_new_session=True,
        )
        self.first = 0.0
        """Seconds of the first step, including compilation, if the worker reports them."""
        if waits:
            self.ready(limit)

    def ready(self, limit: float | None = None) -> Worker:
        """Wait for the first step. Kill the process and raise TooSlow if it takes longer than `limit` seconds from the start."""
        limit = limit or threading.TIMEOUT_MAX
        started, alarm = time.monotonic(), threading.Timer(limit, self._kill)
        alarm.daemon = True
        alarm.start()
        try:
            self.first = self.answer()
        except RuntimeError as error:
            if time.monotonic() - started >= limit:
                raise TooSlow(f"more than {limit:g} s") from error
            raise
        finally:
            alarm.cancel()
        return self

    def seconds(self, steps: int) -> float:
        """Return the seconds of `steps` steps in the other process."""
        self.ask(steps)
        return self.answer()

    def ask(self, steps: int) -> None:
        """Request a number of steps."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()

    def answer(self) -> float:
        """Wait for the requested steps; return their seconds."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("answer "):
                return float(line.split()[1])
        raise RuntimeError(f"the process {self._process.args} ended")

    def sleep(self) -> None:
        """Stop the process and its children until `wake`: otherwise a pipeline reads ahead during the turns of others."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Let the process continue."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Kill the process and its children."""
        self._kill()
        self._process.wait()

    def _kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)


def measure_stopped(started: dict[Any, Worker], rounds: int, steps: Callable[[Any], int] = lambda _: 1) -> dict[Any, list[float]]:
    """Return the seconds of a step of workers that run in turns while the others are stopped; `steps` returns the steps of a turn."""
    times: dict[Any, list[float]] = {key: [] for key in started}
    try:
        for process in started.values():
            process.sleep()
        for _ in range(rounds):
            for key, process in started.items():
                process.wake()
                times[key].append(process.seconds(steps(key)) / steps(key))
                process.sleep()
    finally:
        for process in started.values():
            process.close()
    return times


def serve(step: Step, wait: Callable[[Any], Any]) -> None:
    """Serve a `Worker`: answer the seconds of the first step, then for each line of standard input those of that many steps.

    `wait` receives the result of the last step and returns when its values are computed.
    """

    def answer(steps: int) -> None:
        started = CLOCK()
        for _ in range(steps):
            out = step()
        wait(out)
        print(f"answer {CLOCK() - started}", flush=True)

    answer(1)
    for line in sys.stdin:
        answer(int(line))


def timer(step: Step) -> Callable[[int], float]:
    """Return a function that times n steps in this process."""

    def seconds(steps: int) -> float:
        started = CLOCK()
        for _ in range(steps):
            step()
        return CLOCK() - started

    return seconds


def compare(
    title: str, contenders: dict[str, Seconds], base: str, seconds: float = 0.4, rounds: int = 9, unit: str = "ms", what: str = "a step",
) -> dict[str, list[float]]:
    """Print a table: for each contender the median time of a step and its ratio to `base`, with the least and greatest ratio.

    Return the seconds of a step, one for each round. Slow contenders run in fewer rounds (`measure`).
    """
    times = measure(contenders, seconds, rounds)
    factor = {"ms": 1e3, "us": 1e6}[unit]
    print(f"\n### {title}\n\n| contender | {unit} {what} | ratio to {base} (median, min .. max of {rounds}) |\n|---|---:|---|")
    for name, times_of_contender in times.items():
        print(f"| {name} | {statistics.median(times_of_contender) * factor:.3f} | {ratio(times_of_contender, times[base])} |")
    sys.stdout.flush()
    return times


def measure(contenders: dict[str, Seconds], seconds: float, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of a step of each contender in each round.

    A contender faster than FAST seconds runs four more steps before the first round. One slower than SLOW seconds runs in two rounds.
    One slower than VERY_SLOW seconds runs once, before the rounds.
    """
    steps, turns_of = {}, {}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for name, run in contenders.items():
        step_time = run(1)
        if step_time >= FAST:
            step_time = run(1)                 # the first step of a contender in this process may compile
        if step_time < FAST:
            run(2)
            step_time = run(2) / 2
        if step_time > VERY_SLOW:
            times[name].append(step_time)
        steps[name] = max(1, int(seconds / max(step_time, 1e-7)))
        turns_of[name] = rounds if step_time < SLOW else min(2, rounds) if step_time < VERY_SLOW else 0
    for turn in range(rounds):
        for name, run in contenders.items():
            if turn < turns_of[name]:
                times[name].append(run(steps[name]) / steps[name])
    return times


def ratio(times: list[float], base: list[float]) -> str:
    """Return the ratio of two contenders in the same round: median, least and greatest."""
    ratios = sorted(a / b for a, b in zip(times, base))
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} .. {ratios[-1]:.2f})"


def selected_nets(nets: Iterable[str]) -> list[str]:
    """Remove `--nets NAMES` from the command line; return these names, or all `nets` if the option is absent."""
    if "--nets" not in sys.argv:
        return list(nets)
    index = sys.argv.index("--nets")
    names = sys.argv[index + 1].split(",")
    del sys.argv[index:index + 2]
    return names


def arguments(description: str, rounds: int = 9) -> argparse.Namespace:
    """Parse the options that every benchmark accepts; `rounds` is the default of `--rounds`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--oracle", help="a Python that has real MindSpore 2.10, for comparison")
    parser.add_argument("--no-compile", action="store_true", help="omit torch.compile, whose first step takes minutes on two cores")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=0.4, help="how long one turn takes")
    parser.add_argument("--device", default="CPU", choices=("CPU", "GPU", "Ascend"))
    return parser.parse_args()
