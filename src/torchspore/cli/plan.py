"""`torchspore plan`: how a program would be split over N devices, operator by operator, without any of them."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from torchspore.base.text import with_hint
from torchspore.cli import program
from torchspore.context import plan_request
from torchspore.context.plan_request import Machine, Request

USAGE = """usage: torchspore plan [--devices N] [--html FILE] [--bandwidth GB/s] [--latency US] [--tflops N] [--memory GB/s]
                       script.py [words …]

Runs the program up to the first call that is split over N devices (semi_auto_parallel or auto_parallel), compiles it for them and
prints, instead of running it: for each operator how its result is cut, what is sent, how many bytes and how long that takes at the
given speeds, and the memory of one device. With --html the same as a page: the graph with its splits in colour. No device is needed.
"""
USAGE_ERROR = 2
_SPEEDS = {"--bandwidth": ("bandwidth", 1e9), "--latency": ("latency", 1e-6), "--tflops": ("operations", 1e12), "--memory": ("memory", 1e9)}
"""For each option the speed of the machine that it says, and its unit."""


def run(words: Sequence[str]) -> int:
    """The command; gives the exit code: 1 where the program ended and nothing in it was split."""
    rest = list(words)
    if not rest or rest[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if rest else USAGE_ERROR
    asked = Request(Machine())
    while rest and rest[0].startswith("--"):
        option, _, value = rest.pop(0).partition("=")
        value = value or (rest.pop(0) if rest else "")
        if not _take(asked, option, value):
            return _refused(f"torchspore plan {option} {value}: expected {_expected(option)}.", "write --devices 8")
    if not rest or not os.path.exists(rest[0]):
        return _refused(f"torchspore plan {' '.join(rest)}: expected a program.", "write `torchspore plan train.py`")
    os.environ["TORCHSPORE_PLAN"] = str(asked.devices)
    plan_request.pending = asked
    try:
        code = program.execute(rest[0], rest[1:])
    finally:
        plan_request.pending = None
    if asked.is_answered or code:
        return code
    print(with_hint(
        "The program ended, and no call of it was split.",
        "set_auto_parallel_context(parallel_mode='semi_auto_parallel') splits calls of Cells",
    ), file=sys.stderr)
    return 1


def _refused(text: str, hint: str) -> int:
    print(with_hint(text, hint), file=sys.stderr)
    return USAGE_ERROR


def _expected(option: str) -> str:
    if option == "--html":
        return "a file in a folder that is there"
    if option == "--devices":
        return "a number from 1 to 4096"
    return "a number above 0" if option in _SPEEDS else f"{', '.join(('--devices', *_SPEEDS))} with a number, or --html FILE"


def _take(asked: Request, option: str, value: str) -> bool:
    """Notes an option; whether it is one, with a value that it can have."""
    if option == "--html":
        asked.page = os.path.abspath(value) if value else ""
        return bool(value) and os.path.isdir(os.path.dirname(asked.page)) and not os.path.isdir(asked.page)
    if option == "--devices":
        asked.devices = int(value) if value.isdigit() else 0
        return 1 <= asked.devices <= 4096
    if option not in _SPEEDS:
        return False
    name, unit = _SPEEDS[option]
    try:
        number = float(value)
    except ValueError:
        return False
    asked.machine = replace(asked.machine, **{name: number * unit})
    return 0 < number < float("inf")
