#!/usr/bin/env python3
"""Compare seeded training runs, without a checkpoint, with real MindSpore 2.10 in both modes, and print a table.

    tools/seeded_runs.py --oracle .oracle/bin/python            run both, and compare
    tools/seeded_runs.py                                        compare with the recorded losses
    tools/seeded_runs.py --oracle .oracle/bin/python --write    record the losses of MindSpore

The programs are in tests/scripts/programs/seeded. The exit code is 1 if a loss differs by more than 1e-5.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests/scripts/programs/seeded"
RECORD = ROOT / "tests/parity/seeded_runs.json"
MODES = ("pynative", "graph")
TOLERANCE = 1e-5


def programs() -> list[Path]:
    """Return the seeded programs, without the module that they share."""
    return sorted(path for path in PROGRAMS.glob("*.py") if path.stem != "seeded")


def losses(command: list[str], program: Path, mode: str) -> list[float]:
    """Return the losses that a program prints. Raises RuntimeError with the end of its messages if it fails."""
    environment = {**os.environ, "TORCHSPORE_DEVICE": "CPU", "GLOG_v": "3"}
    process = subprocess.run([*command, str(program), mode], cwd=PROGRAMS, env=environment, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"{program.name} in {mode} mode ended with code {process.returncode}:\n{process.stderr[-2000:]}")
    return parsed(process.stdout)


def parsed(output: str) -> list[float]:
    """Return the losses in the output of a program: a hexadecimal number in each line."""
    return [float.fromhex(line) for line in output.split()]


def largest_difference(expected: list[float], actual: list[float]) -> float:
    """Return the largest difference of two losses of one step, or infinity if one run has fewer steps or a loss is not a number."""
    if len(expected) != len(actual) or not expected:
        return float("inf")
    differences = [abs(a - b) for a, b in zip(expected, actual)]
    return max(differences) if all(difference == difference for difference in differences) else float("inf")


def main() -> int:
    """Run, compare, print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--oracle", help="the Python of an environment with mindspore==2.10.0")
    options.add_argument("--write", action="store_true", help="record the losses of MindSpore")
    chosen = options.parse_args()
    if chosen.write and not chosen.oracle:
        options.error("--write: expected --oracle too")
    recorded = {} if chosen.write else json.loads(RECORD.read_text(encoding="utf-8"))
    rows, worst = [], 0.0
    for program in programs():
        for mode in MODES:
            expected = losses([chosen.oracle], program, mode) if chosen.oracle else recorded[program.stem][mode]
            if chosen.write:
                recorded.setdefault(program.stem, {})[mode] = expected
            actual = losses([sys.executable, "-m", "torchspore", "run"], program, mode)
            difference = largest_difference(expected, actual)
            worst = max(worst, difference)
            ends = f"{expected[0]:<12.7f}{expected[-1]:<12.7f}{actual[-1]:<12.7f}"
            rows.append(f"{program.stem:<14}{mode:<10}{len(actual):>5}  {ends}{difference:.1e}")
    print(f"{'program':<14}{'mode':<10}{'steps':>5}  {'first loss':<12}{'MindSpore':<12}{'torchspore':<12}largest difference")
    print("\n".join(rows))
    print(f"largest difference of a loss: {worst:.1e} ({'at most' if worst <= TOLERANCE else 'more than'} {TOLERANCE:.0e})")
    if chosen.write:
        RECORD.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
