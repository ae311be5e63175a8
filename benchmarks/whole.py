#!/usr/bin/env python3
"""Whole programs, from start to the end of three epochs: `python benchmarks/whole.py [--oracle PYTHON] [--rounds N] [--nets lenet,gan]`.

Each program of `whole_programs/written_for_mindspore` runs unchanged in torchspore and, with `--oracle`, in real MindSpore; the program of
the same name in `written_for_torch` is what people write by hand for torch. The time includes imports, the creation of the network, data,
compilation and training; O1 compiles in the background, as by default. The memory is the peak of the process (its resident set).
The programs run one after the other, in several rounds; a ratio compares runs of the same round. Real MindSpore runs once, and is stopped
after three times the seconds of torch's program, at most program_runs.LONGEST.
"""
from __future__ import annotations

import functools
import sys
from pathlib import Path

import program_runs
import turns
from program_runs import Run

FOLDER = Path(__file__).parent / "whole_programs"
NETS = {path.stem: path.read_text(encoding="utf-8").split('"""')[1].partition(":")[0]
        for path in sorted((FOLDER / "written_for_torch").glob("*.py"))}
"""The programs with their titles: the first words of their docstrings."""
TORCH = "torch, by hand"
OURS = {"torchspore PyNative": {"MODE": "PYNATIVE"}, "torchspore O0": {"MODE": "GRAPH", "LEVEL": "O0"},
        "torchspore O1": {"MODE": "GRAPH", "LEVEL": "O1"}}
MINDSPORE = {"MindSpore 2.10 PyNative": {"MODE": "PYNATIVE"}, "MindSpore 2.10 graph": {"MODE": "GRAPH"}}


def run(program: str, contender: str, oracle: str | None, limit: float | None = None) -> Run:
    """Run a program in a fresh process; stop it after `limit` seconds. Raise RuntimeError if it fails."""
    title = f"{program}, {contender}"
    if contender == TORCH:
        return program_runs.run([sys.executable, str(FOLDER / "written_for_torch" / f"{program}.py")], {}, title)
    path = str(FOLDER / "written_for_mindspore" / f"{program}.py")
    if contender in OURS:
        return program_runs.run([sys.executable, "-m", "torchspore", "run", path], OURS[contender], title)
    assert oracle is not None
    return program_runs.run([oracle, path], MINDSPORE[contender], title, limit)


def main() -> None:
    """Print one table for each program."""
    programs = turns.selected_nets(NETS)
    options = turns.arguments(__doc__ or "")
    contenders = [TORCH, *OURS, *(MINDSPORE if options.oracle else ())]
    for program in programs:
        starts = {contender: functools.partial(run, program, contender, options.oracle) for contender in contenders}
        runs, failures = program_runs.measure(starts, options.rounds, MINDSPORE, TORCH)
        program_runs.print_table(f"{NETS[program]}: three epochs in a fresh process", runs, failures, TORCH)


if __name__ == "__main__":
    main()
