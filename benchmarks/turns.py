"""Timing by turns: all contenders run in one process run, one after the other, again and again; ratios are taken within each round.

A contender is a function that does one step. Some run in processes of their own, which wait while the others run: torch as people write
it, because loading torchspore's engine changes how the process keeps memory, and real MindSpore, where a Python that has it is named.
"""
from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TORCHSPORE_WAIT", "1")          # measure the forms of O1 and O2, and not the code that runs before they are ready
HERE = Path(__file__).parent
SLOW = 3.0
Step = Callable[[], Any]
Seconds = Callable[[int], float]
"""How long n steps took."""

CLOCK = time.process_time if os.environ.get("TURNS_CLOCK") == "processor" else time.perf_counter
"""Seconds by the wall's clock; TURNS_CLOCK=processor counts the processor time of all threads, which a loaded machine changes less."""


class Elsewhere:
    """Steps in another process: `worker` is a file of this folder that answers how long n steps took."""

    def __init__(
        self, python: str, worker: str, *arguments: str, environment: dict[str, str] | None = None, waits: bool = True,
    ) -> None:
        self._process = subprocess.Popen(
            [python, str(HERE / worker), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env={**os.environ, **(environment or {})}, start_new_session=True,
        )
        self.first = 0.0
        """Seconds of the first step, compilation included, where the worker says so."""
        if waits:
            self.ready()

    def ready(self) -> Elsewhere:
        """Waits for the first step."""
        self.first = self.answer()
        return self

    def seconds(self, steps: int) -> float:
        """How long `steps` steps took there."""
        self.ask(steps)
        return self.answer()

    def ask(self, steps: int) -> None:
        """Lets it do some steps."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()

    def answer(self) -> float:
        """Waits for the steps that were asked for; their seconds."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("answer "):
                return float(line.split()[1])
        raise RuntimeError(f"the process {self._process.args} ended")

    def sleep(self) -> None:
        """Stops the process and its own ones until `wake`: a pipeline reads ahead while others have their turn."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Lets the process go on."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends the process and its own ones."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def asleep_between(started: dict[Any, Elsewhere], rounds: int, steps: Callable[[Any], int] = lambda _: 1) -> dict[Any, list[float]]:
    """Seconds a step of workers that run one at a time, in turns; the others sleep. `steps` says how many each runs in its turn."""
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
    """The other end of `Elsewhere`: answers how long the first step took, then how long as many took as a line of standard input says.

    `wait` is given what the last step gave, and returns when that is there.
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


def here(step: Step) -> Callable[[int], float]:
    """Times n steps in this process."""

    def seconds(steps: int) -> float:
        started = CLOCK()
        for _ in range(steps):
            step()
        return CLOCK() - started

    return seconds


def compare(
    title: str, contenders: dict[str, Seconds], base: str, seconds: float = 0.4, rounds: int = 9, unit: str = "ms", what: str = "a step",
) -> dict[str, list[float]]:
    """Prints a table: for each contender the median time of a step and its ratio to `base`, with the least and greatest ratio.

    Gives the seconds of a step, one for each round. Who needs more than SLOW seconds takes part in two rounds.
    """
    times = taken(contenders, seconds, rounds)
    factor = {"ms": 1e3, "us": 1e6}[unit]
    print(f"\n### {title}\n\n| contender | {unit} {what} | ratio to {base} (median, min .. max of {rounds}) |\n|---|---:|---|")
    for name, own in times.items():
        print(f"| {name} | {statistics.median(own) * factor:.3f} | {ratio(own, times[base])} |")
    sys.stdout.flush()
    return times


def taken(contenders: dict[str, Seconds], seconds: float, rounds: int) -> dict[str, list[float]]:
    """The seconds of a step of each contender in each round; who needs more than SLOW seconds takes part in two rounds."""
    steps, turns_of = {}, {}
    for name, run in contenders.items():
        took = run(1)
        if took < SLOW:
            run(2)
            took = run(2) / 2
        steps[name], turns_of[name] = max(1, int(seconds / max(took, 1e-7))), rounds if took < SLOW else min(2, rounds)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        for name, run in contenders.items():
            if turn < turns_of[name]:
                times[name].append(run(steps[name]) / steps[name])
    return times


def ratio(own: list[float], base: list[float]) -> str:
    """The ratio of two contenders within each round: median, least and greatest."""
    ratios = sorted(a / b for a, b in zip(own, base))
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} .. {ratios[-1]:.2f})"


def arguments(description: str) -> argparse.Namespace:
    """The options that every benchmark takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--oracle", help="a Python that has real MindSpore 2.10, to be measured beside")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out: its first step takes minutes on two cores")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.4, help="how long one turn takes")
    parser.add_argument("--device", default="CPU", choices=("CPU", "GPU", "Ascend"))
    return parser.parse_args()
