"""`torchspore plan`: how a program would be split over N devices, operator by operator, without any of them."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from torchspore.base.text import with_hint
from torchspore.cli import program

USAGE = """usage: torchspore plan [--devices N] [--bandwidth GB/s] [--latency US] script.py [words …]

Runs the program up to the first call that is split over N devices (semi_auto_parallel or auto_parallel), compiles it for them and
prints, instead of running it: for each operator how its result is cut, what is sent, how many bytes and how long that takes at the
given speed, and the memory of one device. No device is needed.
"""
USAGE_ERROR = 2
_VALUES = {"--devices": "TORCHSPORE_PLAN", "--bandwidth": "TORCHSPORE_PLAN_BANDWIDTH", "--latency": "TORCHSPORE_PLAN_LATENCY"}


def run(words: Sequence[str]) -> int:
    """The command; gives the exit code: 1 where the program ended and nothing in it was split."""
    rest = list(words)
    if not rest or rest[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if rest else USAGE_ERROR
    os.environ.setdefault("TORCHSPORE_PLAN", "8")
    while rest and rest[0].startswith("--"):
        option, _, value = rest.pop(0).partition("=")
        value = value or (rest.pop(0) if rest else "")
        if option not in _VALUES or not _is_number(value, option):
            said = with_hint(f"torchspore plan {option} {value}: expected {', '.join(_VALUES)} with a number.", "write --devices 8")
            print(said, file=sys.stderr)
            return USAGE_ERROR
        os.environ[_VALUES[option]] = value
    if not rest or not os.path.exists(rest[0]):
        print(with_hint(f"torchspore plan {' '.join(rest)}: expected a program.", "write `torchspore plan train.py`"), file=sys.stderr)
        return USAGE_ERROR
    code = program.execute(rest[0], rest[1:])
    if os.environ.pop("TORCHSPORE_PLANNED", "") or code:
        return code
    print(with_hint(
        "The program ended, and no call of it was split.",
        "set_auto_parallel_context(parallel_mode='semi_auto_parallel') splits calls of Cells",
    ), file=sys.stderr)
    return 1


def _is_number(text: str, option: str) -> bool:
    if option == "--devices":
        return text.isdigit() and 1 <= int(text) <= 4096
    try:
        return float(text) > 0
    except ValueError:
        return False
