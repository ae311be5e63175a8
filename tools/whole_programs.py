#!/usr/bin/env python3
"""Runs the programs of tests/scripts/programs/{models,idioms} in both modes and prints a table that compares them with real MindSpore.

    tools/whole_programs.py                       compares with the record in tests/scripts/programs/answers.json
    tools/whole_programs.py --oracle PYTHON       runs them in real MindSpore 2.10 first, and records its output and the time of a step
    tools/whole_programs.py --only 'gan|bert'     programs whose name matches the pattern
    tools/whole_programs.py --write               also writes docs/reference/programs.md

The exit code is 1 if a program fails or a number differs by more than the program's tolerance. Run it alone on the machine.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import re
import runpy
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "scripts" / "programs"
ANSWERS = FOLDER / "answers.json"
PAGE = ROOT / "docs" / "reference" / "programs.md"
MODES = ("pynative", "graph")
CLOSE = 1e-5
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|nan|inf")
LOOSER = re.compile(r"^# tolerance (\S+):", re.MULTILINE)
"""A program with a larger tolerance has the comment `# tolerance 1e-4: why`."""


@dataclass
class Ended:
    """The result of a run: the lines that are compared, the seconds of a later step and of the first, the number of recompilations."""

    lines: list[str]
    seconds: float | None = None
    first: float | None = None
    error: str = ""
    recompilations: int = 0


@dataclass
class Row:
    """A program's row in the table: for each mode the run here and real MindSpore's, which it compares."""

    name: str
    tolerance: float
    ours: dict[str, Ended] = field(default_factory=dict)
    theirs: dict[str, Ended] = field(default_factory=dict)

    def distance(self, mode: str) -> float | None:
        """Return the largest relative difference of a number, or None if a run failed or the words differ."""
        theirs = self.theirs.get(mode)
        if theirs is None or theirs.error:
            theirs = self.theirs["pynative"]
        return None if self.ours[mode].error else distance(theirs.lines, self.ours[mode].lines)

    def is_equal(self, mode: str) -> bool:
        """Return whether the run here printed real MindSpore's numbers, within the tolerance."""
        difference = self.distance(mode)
        return difference is not None and difference <= self.tolerance


def distance(expected: list[str], actual: list[str]) -> float | None:
    """Return the largest relative difference of the numbers in lines with the same words, or None if the words differ."""
    expected_text, actual_text = "\n".join(expected), "\n".join(actual)
    if NUMBER.sub("#", expected_text) != NUMBER.sub("#", actual_text):
        return None
    largest = 0.0
    for first, second in zip(NUMBER.findall(expected_text), NUMBER.findall(actual_text)):
        if first != second:
            expected_number, actual_number = float(first), float(second)
            # A number below 1e-6 is a rounding error of larger numbers.
            difference = abs(expected_number - actual_number) / max(abs(expected_number), abs(actual_number), 1e-6)
            largest = max(largest, difference if math.isfinite(difference) else math.inf)
    return largest


def programs(pattern: str = "") -> list[Path]:
    """Return the programs whose name matches `pattern`, models first."""
    paths = [path for folder in ("models", "idioms") for path in sorted((FOLDER / folder).glob("*.py"))]
    return [path for path in paths if re.search(pattern, path.stem)]


def tolerance(program: Path) -> float:
    """Return the largest relative difference that the numbers of a program may have."""
    match = LOOSER.search(program.read_text(encoding="utf-8"))
    return float(match[1]) if match else CLOSE


class Warm:
    """A process that has imported the framework and forks for each program."""

    def __init__(self, command: list[str]) -> None:
        environment = {**os.environ, "PYTHONPATH": str(FOLDER), "GLOG_v": "3", "TORCHSPORE_DEVICE": "CPU", "TORCHSPORE_LOG": "graph"}
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, program: Path, mode: str) -> Ended:
        """Run the program in a forked process and return its result."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            self.process.stdin.write(json.dumps({"arguments": [str(program), mode], "cwd": folder}) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
        return ended(answer)


def ended(answer: dict[str, Any]) -> Ended:
    """Return the result that the answer of a warm process describes."""
    lines = answer["out"].splitlines()
    values = {line.split()[1]: float(line.split()[2]) for line in lines if line.startswith("# ")}
    error = ""
    if answer["code"]:
        error = next((line for line in reversed(answer["err"].strip().splitlines()) if re.match(r"[\w.]*(Error|Exception)\b", line)), "")
        error = error or answer["err"].strip()[-300:] or f"exit code {answer['code']}"
    events = re.findall(r"^\[torchspore graph\] (\w+):", answer["err"], re.MULTILINE)
    recompilations = sum(event in ("again", "refused", "break") for event in events)
    printed = [line for line in lines if line and not line.startswith("#")]
    return Ended(printed, values.get("seconds"), values.get("first"), error, recompilations)


def serve() -> None:
    """Answer requests in real MindSpore, as tests/scripts/forking.py does here."""
    import mindspore  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os._exit(_in_child(request))
            _, status = os.waitpid(child, 0)
            out.seek(0)
            err.seek(0)
            code = os.waitstatus_to_exitcode(status)
            print(json.dumps({"code": code, "out": out.read().decode(), "err": err.read().decode(errors="replace")}), flush=True)


def _in_child(request: dict[str, Any]) -> int:
    import traceback

    os.chdir(request["cwd"])
    sys.argv = request["arguments"]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    code = 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def ask(oracle: str, chosen: list[Path], recorded: dict[str, Any]) -> None:
    """Run the programs in real MindSpore and record the results in answers.json."""
    warm = Warm([oracle, "-W", "ignore", __file__, "--serve"])
    for program in chosen:
        runs = {mode: warm.run(program, mode) for mode in MODES}
        if runs["pynative"].error and runs["graph"].error:
            print(f"{program.stem}: real MindSpore fails: {runs['pynative'].error} | {runs['graph'].error}", file=sys.stderr)
            continue
        good = "graph" if runs["pynative"].error else "pynative"
        entry: dict[str, Any] = {"lines": runs[good].lines}
        for mode in MODES:
            run = runs[mode]
            entry[mode] = {"error": run.error[:200]} if run.error else {"seconds": run.seconds, "first": run.first}
            if mode != good and not runs[mode].error:
                difference = distance(runs[good].lines, runs[mode].lines)
                if difference is None or difference > tolerance(program) / 10:
                    entry[mode]["lines"] = runs[mode].lines
        recorded.update(json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {})
        recorded[program.stem] = entry
        ANSWERS.write_text(json.dumps(dict(sorted(recorded.items())), indent=1) + "\n", encoding="utf-8")


def theirs(entry: dict[str, Any]) -> dict[str, Ended]:
    """Return the recorded runs of real MindSpore, by mode."""
    return {mode: Ended(**{"lines": entry["lines"], **entry[mode]}) for mode in MODES}


def main() -> int:
    """Print the table. Return 1 if a program failed or differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", help="a Python with mindspore==2.10.0")
    parser.add_argument("--only", default="", help="a pattern of programs' names")
    parser.add_argument("--write", action="store_true", help="write docs/reference/programs.md")
    parser.add_argument("--verbose", action="store_true", help="print both outputs if they differ")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    recorded = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    chosen = programs(options.only)
    if options.oracle:
        ask(options.oracle, chosen, recorded)
    warm = Warm([sys.executable, str(FOLDER.parent / "forking.py")])
    rows = []
    print(f"{'program':28} {'apart':>9} {'graph':>9} | {'ms, here':>9} {'MindSpore':>9} | {'graph':>9} {'MindSpore':>9}  first, again")
    for program in chosen:
        row = Row(program.stem, tolerance(program), {mode: warm.run(program, mode) for mode in MODES})
        # A program without a record is compared with its PyNative run.
        unknown = {"lines": row.ours["pynative"].lines, **{mode: {} for mode in MODES}}
        row.theirs = theirs(recorded.get(program.stem, unknown))
        rows.append(row)
        show(row, options.verbose)
    if options.write:
        PAGE.write_text(page(rows), encoding="utf-8")
    return 0 if all(row.is_equal(mode) for row in rows for mode in MODES) else 1


def _cell(row: Row, mode: str) -> str:
    value = row.distance(mode)
    return "fails" if row.ours[mode].error else "differs" if value is None else f"{value:.1e}" + ("" if value <= row.tolerance else "!")


def _milliseconds(run: Ended) -> str:
    return "-" if run.seconds is None else f"{run.seconds * 1000:.1f}"


def show(row: Row, verbose: bool) -> None:
    """Print a row of the table, and its errors."""
    cells = [f"{_milliseconds(runs[mode]):>9}" for mode in MODES for runs in (row.ours, row.theirs)]
    first = row.ours["graph"].first
    print(f"{row.name:28} {_cell(row, 'pynative'):>9} {_cell(row, 'graph'):>9} | {cells[0]} {cells[1]} | {cells[2]} {cells[3]}  "
          f"{f'{first:.1f} s' if first else ''} {row.ours['graph'].recompilations or ''}", flush=True)
    for mode in MODES:
        if row.ours[mode].error:
            print(f"    {mode}: {row.ours[mode].error}")
        elif verbose and not row.is_equal(mode):
            print("\n".join(f"    {expected:60} | {actual}" for expected, actual in zip(row.theirs[mode].lines, row.ours[mode].lines)))


def page(rows: list[Row]) -> str:
    """Return the page of the documentation with the table."""
    equal = sum(row.is_equal(mode) for row in rows for mode in MODES)
    lines = [
        "<!-- Written by tools/whole_programs.py --oracle PYTHON --write. -->", "",
        "# Whole programs beside real MindSpore", "",
        f"{len(rows)} programs of tests/scripts/programs train three steps with the same weights and data here and in MindSpore 2.10 on",
        f"the CPU; {equal} of {2 * len(rows)} runs give the same losses and Parameters. *apart* is the largest relative difference of a",
        "printed number, allowed up to 1e-5 or what the program says and why. Times are milliseconds of a step after the first, on the",
        "machine that ran both.", "",
        "| program | apart, PyNative | apart, Graph | PyNative here | MindSpore | Graph here | MindSpore |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [_milliseconds(runs[mode]) for mode in MODES for runs in (row.ours, row.theirs)]
        lines.append(f"| {row.name} | {_cell(row, 'pynative')} | {_cell(row, 'graph')} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
