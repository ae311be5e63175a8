"""Records the answers of real MindSpore to the parity cases: tests/parity/records/NAME.npz.

    tools/record.py parity --python .oracle/bin/python              records every case file
    tools/record.py parity --python .oracle/bin/python nn_conv      records tests/parity/cases/nn_conv.py only
    tools/record.py parity --python .oracle/bin/python --check      records into a temporary folder and compares

Each case file runs in a separate process.
"""
from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from parity import case as parity

from recorders import oracle


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subject."""
    parser.add_argument("names", nargs="*", help="case files without `.py`; all by default")
    parser.add_argument("--check", action="store_true", help="compare with the records and write nothing")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)


def record(arguments: argparse.Namespace) -> int:
    """Record each file in a process of MindSpore's Python. Return 1 if a file is not recorded, or differs."""
    paths = [parity.CASES / f"{name}.py" for name in arguments.names] or sorted(parity.CASES.glob("*.py"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if arguments.check else parity.RECORDS
        lines: list[str] = []
        for path in paths:
            words = ["--into", str(folder), path.stem]
            if oracle.run_inside(arguments, words, cwd=temporary, env={**os.environ, "GLOG_v": "3"}).returncode != 0:
                lines.append(f"{path.stem}: not recorded")
            elif arguments.check:
                lines += compare(path, folder)
    for line in lines:
        print(line)
    return 1 if lines else 0


def record_inside(arguments: argparse.Namespace) -> int:
    """Run case files in this process and write their records. Raises SystemExit with the cases that fail."""
    version = oracle.mindspore().__version__
    for name in arguments.names:
        answers, failures = {}, []
        for case in parity.load(parity.CASES / f"{name}.py"):
            try:
                answers[case.name] = parity.run(case)
            except Exception as error:
                failures.append(f"{name}.py: {case.name} raised {type(error).__name__}: {str(error).strip().splitlines()[0]}")
        if failures:
            raise SystemExit("\n".join(failures))
        parity.write(arguments.into / f"{name}.npz", answers, {"mindspore": version, "command": f"tools/record.py parity {name}"})
        print(f"{name}: {len(answers)} cases")
    return 0


def compare(path: Path, folder: Path) -> list[str]:
    """Return a line for each difference between the record of `path` in the repository and that in `folder`."""
    recorded_file = parity.RECORDS / f"{path.stem}.npz"
    if not recorded_file.exists():
        return [f"{path.stem}: never recorded"]
    recorded, fresh = parity.read(recorded_file), parity.read(folder / f"{path.stem}.npz")
    lines = [f"{path.stem}: {name}: in one record only" for name in sorted(set(recorded) ^ set(fresh))]
    for name in sorted(set(recorded) & set(fresh)):
        lines += [f"{path.stem}: {name}: {line}" for line in parity.differences(recorded[name], fresh[name], 1e-5, 1e-6)]
    return lines
