"""`torchspore plan`: show how a program would be split over N devices, operator by operator, without any of them."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from torchspore.base.text import with_hint
from torchspore.cli import program
from torchspore.context import machines, plan_request
from torchspore.context.plan_request import Machine, Request

USAGE = """usage: torchspore plan [--devices N] [--html FILE] [--strategies FILE.json] [--machine NAME] [--bandwidth GB/s] [--latency US]
                       [--tflops N] [--memory GB/s] [--capacity GB] script.py [words …]

Runs the program up to the first call that is split over N devices (semi_auto_parallel or auto_parallel), compiles it for them and
prints, instead of running it: for each operator how its result is sharded, what is sent, how many bytes and how long that takes at these
speeds, and the memory of one device. If the program only compiles (`net.compile`), the last compiled graph is shown. With --html the
same as a page: the graph with its splits in colour. For auto_parallel it also compares the plans of the search, and if none fits into the
memory of a device (--capacity) it looks for the number of devices that suffices. --strategies writes the strategies to a file that
semi_auto_parallel and MindSpore read. No device is needed. --machine names the assumed speeds: h100, a100, ascend910, measured (by
torchspore calibrate), or a JSON file; options after it change single speeds.
"""
USAGE_ERROR = 2
_SPEEDS = {"--bandwidth": ("bandwidth", 1e9), "--latency": ("latency", 1e-6), "--tflops": ("operations", 1e12), "--memory": ("memory", 1e9),
           "--capacity": ("capacity", 1e9)}
"""The speed of the machine that each option sets, and its unit."""


def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if the program ended without a split call."""
    remaining = list(words)
    if not remaining or remaining[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if remaining else USAGE_ERROR
    request = Request(Machine())
    while remaining and remaining[0].startswith("--"):
        option, _, value = remaining.pop(0).partition("=")
        value = value or (remaining.pop(0) if remaining else "")
        if not _set_option(request, option, value):
            return _report_refusal(f"torchspore plan {option} {value}: expected {_expected(option)}.", _example(option))
    if not remaining or not os.path.exists(remaining[0]):
        return _report_refusal(f"torchspore plan {' '.join(remaining)}: expected a program.", "write `torchspore plan train.py`")
    os.environ["TORCHSPORE_PLAN"] = str(request.devices)
    plan_request.pending = request
    try:
        code = program.execute(remaining[0], remaining[1:])
        if not code and not request.is_answered and request.compiled is not None:
            from torchspore.distributed.shard import plan_text

            plan_text.answer(request.compiled, request)
    finally:
        plan_request.pending = None
    if request.is_answered or code:
        return code
    print(with_hint(
        "The program ended, and no call of it was split.",
        "set_auto_parallel_context(parallel_mode='semi_auto_parallel') splits calls of Cells",
    ), file=sys.stderr)
    return 1


def _report_refusal(text: str, hint: str) -> int:
    print(with_hint(text, hint), file=sys.stderr)
    return USAGE_ERROR


def _example(option: str) -> str:
    """Return the hint for an option that has a wrong value, or that does not exist."""
    values = {"--html": "plan.html", "--strategies": "plan.json", "--machine": "h100", **dict.fromkeys(_SPEEDS, "50")}
    return f"write {option} {values[option]}" if option in values else "write --devices 8"


def _expected(option: str) -> str:
    if option in ("--html", "--strategies"):
        return "a file in an existing folder"
    if option == "--devices":
        return "a number from 1 to 4096"
    if option == "--machine":
        return f"{', '.join((*machines.NAMED, machines.MEASURED))} (after torchspore calibrate), or a JSON file"
    if option in _SPEEDS:
        return "a number above 0"
    return f"{', '.join(('--devices', *_SPEEDS))} with a number, --machine NAME, --html FILE, or --strategies FILE"


def _set_option(request: Request, option: str, value: str) -> bool:
    """Set an option of the request; return whether the option exists and the value is valid."""
    if option in ("--html", "--strategies"):
        path = os.path.abspath(value) if value else ""
        setattr(request, "page" if option == "--html" else "strategies", path)
        return bool(value) and os.path.isdir(os.path.dirname(path)) and not os.path.isdir(path)
    if option == "--devices":
        request.devices = int(value) if value.isdigit() else 0
        return 1 <= request.devices <= 4096
    if option == "--machine":
        try:
            request.machine = machines.machine_of(value)
        except ValueError:
            return False
        return True
    if option not in _SPEEDS:
        return False
    name, unit = _SPEEDS[option]
    try:
        number = float(value)
    except ValueError:
        return False
    request.machine = replace(request.machine, **{name: number * unit})
    return 0 < number < float("inf")
