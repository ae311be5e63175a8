"""`torchspore calibrate`: measure the speeds of this machine that predictions of plans assume."""
from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from torchspore.base.files import write_atomically
from torchspore.base.text import with_hint
from torchspore.context import machines

USAGE = """usage: torchspore calibrate [--processes N] [--out FILE]

Measures with N processes (2 by default) at the same time: products of matrices, copies of memory, small operators, and sums of 4 KB to
16 MB over all processes. Writes the speeds to ~/.cache/torchspore/machine.json, or to FILE; torchspore plan --machine measured, or
--machine FILE, predicts with them. Takes about half a minute.
"""
USAGE_ERROR = 2
_WORKER = "torchspore.cli.calibration_worker"
_LIMIT = 300
"""Seconds until the measurement is given up."""


def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if the measurement failed."""
    options = {"--processes": "2", "--out": str(machines.measured_file())}
    remaining = list(words)
    if remaining and remaining[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    while remaining:
        option, _, value = remaining.pop(0).partition("=")
        value = value or (remaining.pop(0) if remaining else "")
        if option not in options or not value or (option == "--processes" and (not value.isdigit() or not 2 <= int(value) <= 64)):
            print(with_hint(f"torchspore calibrate {option} {value}: expected --processes with a number from 2 to 64, or --out FILE.",
                            "write torchspore calibrate --processes 4"), file=sys.stderr)
            return USAGE_ERROR
        options[option] = value
    out = Path(options["--out"])
    if not out.parent.is_dir() and options["--out"] != str(machines.measured_file()):
        print(with_hint(f"torchspore calibrate --out {out}: expected a file in an existing folder.", "name another file"), file=sys.stderr)
        return USAGE_ERROR
    try:
        text = _measure(int(options["--processes"]))
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"torchspore calibrate: {error}", file=sys.stderr)
        return 1
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, text)
    print(f"{machines.from_json(text, str(out)).describe()}\nwritten to {out}")
    return 0


def _measure(count: int) -> str:
    """Return the machine as JSON. Raises RuntimeError with the output of a process that failed."""
    with tempfile.TemporaryDirectory() as folder:
        commands = [[sys.executable, "-m", _WORKER, str(rank), str(count), folder] for rank in range(count)]
        workers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for command in commands]
        try:
            outputs = [worker.communicate(timeout=_LIMIT)[0] for worker in workers]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
    for worker, output in zip(workers, outputs):
        if worker.returncode:
            raise RuntimeError(f"a process ended with exit code {worker.returncode}:\n{output}")
    return json.dumps(json.loads(outputs[0].splitlines()[-1]), indent=2) + "\n"
