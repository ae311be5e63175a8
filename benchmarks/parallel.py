#!/usr/bin/env python3
"""Two processes in one run: init(), a sum of 4 MiB, steps of data parallel training and their memory, compared with DDP and FSDP2.

Each contender is two processes of one thread each, which are stopped during the turns of the others.
"""
from __future__ import annotations

import argparse
import socket
import statistics
import sys
from typing import Any

import turns

RANKS = 2
TRAINING = ("DDP", "FSDP2", "PyNative", "graph", "level1", "level2")
GROWING = ("DDP", "FSDP2", *(f"{mode}{level}" for mode in ("graph", "PyNative") for level in ("", ".level1", ".level2", ".level3")))


class Ranks:
    """The ranks of one contender."""

    def __init__(self, what: str, how: str, worker: str = "parallel_worker.py", **extra: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        base = {"WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                "OMP_NUM_THREADS": "1", **extra}
        started = [
            turns.Worker(
                sys.executable, worker, what, how, environment={**base, "RANK": str(r), "LOCAL_RANK": str(r)}, waits=False,
            )
            for r in range(RANKS)
        ]
        self.ranks = [process.ready() for process in started]

    @property
    def first(self) -> float:
        """Return the seconds of the first step, or of init()."""
        return max(rank.first for rank in self.ranks)

    def seconds(self, steps: int) -> float:
        """Return the seconds of `steps` steps on the slower rank."""
        for rank in self.ranks:
            rank.ask(steps)
        return max(rank.answer() for rank in self.ranks)

    def sleep(self) -> None:
        """Stop the ranks."""
        for rank in self.ranks:
            rank.sleep()

    def wake(self) -> None:
        """Let the ranks continue."""
        for rank in self.ranks:
            rank.wake()

    def close(self) -> None:
        """Kill the ranks."""
        for rank in self.ranks:
            rank.close()


def timer_of(ranks: Ranks) -> turns.Seconds:
    """Return a function that wakes the ranks, times steps and stops the ranks again."""

    def seconds(steps: int) -> float:
        ranks.wake()
        try:
            return ranks.seconds(steps)
        finally:
            ranks.sleep()

    return seconds


def compare_contenders(what: str, hows: tuple[str, ...], title: str, options: Any) -> None:
    """Print a table of contenders."""
    started = {}
    try:
        for how in hows:
            started[how] = Ranks(what, how)
            started[how].sleep()
        turns.compare(title, {how: timer_of(ranks) for how, ranks in started.items()}, hows[0], options.seconds, options.rounds)
    finally:
        for ranks in started.values():
            ranks.wake()
            ranks.close()


def print_connection_times(count: int) -> None:
    """Print how long two processes need to connect."""
    print("\n### meeting of two processes\n\n| who | s, median (min .. max) |\n|---|---|")
    for name, how in (("torch init_process_group", "gloo"), ("init()", "PyNative")):
        seconds = []
        for _ in range(count):
            ranks = Ranks("init", how)
            seconds.append(ranks.first)
            ranks.close()
        print(f"| {name} | {statistics.median(seconds):.3f} ({min(seconds):.3f} .. {max(seconds):.3f}) |", flush=True)


def print_memory() -> None:
    """Print the growth of a process's memory while it creates and trains a wide net: of tensors, and with freed memory that it retains."""
    print("\n### memory of each of two processes: eight weights of 4 MiB with Adam\n")
    print("MiB more at the peak of three steps, where all that is freed leaves the process, and as programs run.\n")
    print("| who | held | to FSDP2's | as it runs | to FSDP2's |")
    print("|---|---:|---:|---:|---:|")
    in_use = {how: _memory_growth(how, MALLOC_MMAP_THRESHOLD_="65536") for how in GROWING}
    retained = {how: _memory_growth(how) for how in GROWING}
    for how in GROWING:
        shares = (in_use[how] / in_use["FSDP2"], retained[how] / retained["FSDP2"])
        print(f"| {how} | {in_use[how]:.0f} | {shares[0]:.2f} | {retained[how]:.0f} | {shares[1]:.2f} |")
    sys.stdout.flush()


def _memory_growth(how: str, **environment: str) -> float:
    ranks = Ranks("adam", how, "parallel_memory.py", **environment)
    try:
        return ranks.first
    finally:
        ranks.close()


def main() -> None:
    """Run the named benchmarks; without names all but resnet18 and memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="init, sum, lenet, resnet18, gpt, memory")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.4)
    options = parser.parse_args()
    names = options.what or ["init", "sum", "lenet", "gpt"]
    if "init" in names:
        print_connection_times(3)
    if "sum" in names:
        compare_contenders("sum", ("gloo", "PyNative", "graph"), "a sum of 4 MiB over two processes", options)
    for what in ("lenet", "resnet18", "gpt"):
        if what in names:
            compare_contenders(what, TRAINING, f"data parallel step of {what}, two processes", options)
    if "memory" in names:
        print_memory()


if __name__ == "__main__":
    main()
