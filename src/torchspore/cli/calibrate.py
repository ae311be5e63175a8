"""`torchspore calibrate`: measure the speeds of this machine that predictions of plans assume."""
from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from torchspore.base.files import write_atomically
from torchspore.cli.grammar import Parser, number, output_file, returns_exit_code
from torchspore.context import machines
from torchspore.translations import translate

_WORKER = "torchspore.cli.calibration_worker"
_LIMIT = 300
"""Seconds until the measurement is given up."""


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore calibrate",
        description="Measures with several processes at the same time: matrix products, copies of memory, small operators, and "
                    "all-reduces of 4 KB to 16 MB. Predictions of `torchspore plan --machine measured`, or `--machine FILE`, use the "
                    "speeds. Takes about half a minute.",
        examples=["torchspore calibrate --processes 4"],
    )
    command.add_argument("--processes", type=number(2, 64), default=2, metavar="N", help="the number of processes (2)")
    command.add_argument("--out", type=output_file, metavar="FILE", help="where the speeds are written (~/.cache/torchspore/machine.json)")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if the measurement failed."""
    options = parser().parse_args(list(words))
    out = Path(options.out) if options.out else machines.measured_file()
    try:
        text = _measure(options.processes)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"torchspore calibrate: {error}", file=sys.stderr)
        return 1
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, text)
    print(f"{machines.from_json(text, str(out)).describe()}\n{translate('written to {path}').format(path=out)}")
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
            text = translate("a process ended with exit code {code}:\n{output}")
            raise RuntimeError(text.format(code=worker.returncode, output=output))
    return json.dumps(json.loads(outputs[0].splitlines()[-1]), indent=2) + "\n"
