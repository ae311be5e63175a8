#!/usr/bin/env python3
"""Runs the parity cases in real MindSpore and writes what it answered into tests/parity/records.

    tools/record_parity.py --python .oracle/bin/python              records every case file
    tools/record_parity.py --python .oracle/bin/python nn_conv      records tests/parity/cases/nn_conv.py only
    tools/record_parity.py --python .oracle/bin/python --check      records into a temporary folder and compares

Each case file runs in a process of its own. Run it alone: MindSpore's thread pool collapses beside other work.
"""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from parity import case as parity  # noqa: E402


def record(path: Path, folder: Path) -> None:
    """Runs one case file in this process, which has real MindSpore, and writes its record into `folder`."""
    import mindspore

    assert not hasattr(mindspore, "__torchspore__"), "this is torchspore; records come from real MindSpore"
    cases = parity.load(path)
    answers, failures = {}, []
    for one in cases:
        try:
            answers[one.name] = parity.run(one)
        except Exception as error:
            failures.append(f"{path.name}: {one.name} raised {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    if failures:
        raise SystemExit("\n".join(failures))
    about = {"mindspore": mindspore.__version__, "command": f"tools/record_parity.py {path.stem}"}
    parity.write(folder / f"{path.stem}.npz", answers, about)
    print(f"{path.stem}: {len(answers)} cases")


def compare(path: Path, folder: Path) -> list[str]:
    """The lines in which the fresh record of `path` differs from the kept one."""
    kept_file = parity.RECORDS / f"{path.stem}.npz"
    if not kept_file.exists():
        return [f"{path.stem}: never recorded"]
    kept, fresh = parity.read(kept_file), parity.read(folder / f"{path.stem}.npz")
    lines = [f"{path.stem}: {name}: in one record only" for name in sorted(set(kept) ^ set(fresh))]
    for one in sorted(set(kept) & set(fresh)):
        lines += [f"{path.stem}: {one}: {line}" for line in parity.differences(kept[one], fresh[one], 1e-5, 1e-6)]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="case files, by their stem; all by default")
    parser.add_argument("--python", default=sys.executable, help="the Python that has mindspore 2.10 and numpy 1.26.4")
    parser.add_argument("--check", action="store_true", help="compare with the kept records and write nothing")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    paths = sorted(parity.CASES.glob("*.py"))
    if arguments.names:
        paths = [parity.CASES / f"{name}.py" for name in arguments.names]
    if arguments.into:
        for path in paths:
            record(path, arguments.into)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if arguments.check else parity.RECORDS
        lines: list[str] = []
        for path in paths:
            command = [arguments.python, str(Path(__file__).resolve()), "--into", str(folder), path.stem]
            if subprocess.run(command, cwd=temporary, env={**os.environ, "GLOG_v": "3"}).returncode != 0:
                lines.append(f"{path.stem}: not recorded")
            elif arguments.check:
                lines += compare(path, folder)
    for line in lines:
        print(line)
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
