"""Records the results of collectives between two processes of real MindSpore on the CPU: tests/parity/communication.json.

    tools/record.py communication --python .oracle/bin/python

Two workers run the cases of tests/parity/communication_cases.py, one after the other. The record has the values, or the kind of error.
Name a case that never ends in --without: it is recorded as "hangs".
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from recorders import oracle

RECORD = oracle.ROOT / "tests" / "parity" / "communication.json"


def plain(value: Any) -> Any:
    """Return a result as JSON has it: a Tensor becomes its dtype and values."""
    if hasattr(value, "asnumpy"):
        return {"dtype": str(value.dtype), "values": value.asnumpy().tolist()}
    if isinstance(value, (list, tuple)):
        return {"kind": type(value).__name__, "items": [plain(item) for item in value]}
    if isinstance(value, dict):
        return {"keys": {str(key): plain(item) for key, item in value.items()}}
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(type(value))


def outcome(function: Any) -> Any:
    """Return the result of a case, or the kind and the first line of its error."""
    try:
        return plain(function())
    except Exception as error:
        return {"error": type(error).__name__, "text": next((line for line in str(error).split("\n") if line.strip(" -")), "")[:200]}


def outcomes(without: set[str], keep: Any = lambda answers: None) -> dict[str, Any]:
    """Run all cases in this process, some in both modes; call `keep` with the results so far after each case."""
    import mindspore as ms

    sys.path.insert(0, str(oracle.ROOT / "tests"))
    from parity import communication_cases

    answers: dict[str, Any] = {}
    for name, function in communication_cases.CASES.items():
        modes = {"": ms.PYNATIVE_MODE, **({".graph": ms.GRAPH_MODE} if name in communication_cases.BOTH else {})}
        for suffix, mode in modes.items():
            if name + suffix in without:
                answers[name + suffix] = {"error": "hangs", "text": ""}
                continue
            print("CASE", name + suffix, flush=True)
            ms.set_context(mode=mode)
            answers[name + suffix] = outcome(function)
            keep(answers)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    return answers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subject."""
    parser.add_argument("--without", default="", help="cases that never end, separated by commas")
    parser.add_argument("--seconds", type=float, default=300)


def record_inside(arguments: argparse.Namespace) -> int:
    """Run all cases as one of the two workers."""
    ms = oracle.mindspore()
    from mindspore import communication

    ms.set_device("CPU")
    communication.init()
    path = Path(f"{os.environ.get('MS_NODE_ID', '0')}.json").absolute()
    outcomes(set(arguments.without.split(",")), lambda answers: path.write_text(json.dumps(answers)))
    return 0


def record(arguments: argparse.Namespace) -> int:
    """Start the two workers and join their answers."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            oracle.run_two_workers(arguments, folder, ["--without", arguments.without], port=8719, timeout=arguments.seconds)
        except subprocess.TimeoutExpired:
            print("late: the last cases were", [
                [line for line in log.splitlines() if line.startswith("CASE")][-1:] for log in oracle.worker_logs(folder).values()
            ])
        for name, log in oracle.worker_logs(folder).items():
            print(name, *log.splitlines()[-15:], sep="\n")
        ranks = [json.loads((Path(folder) / f"{rank}.json").read_text()) for rank in range(2)]
    RECORD.write_text(json.dumps({name: [rank.get(name) for rank in ranks] for name in ranks[0]}, indent=1) + "\n")
    return 0
