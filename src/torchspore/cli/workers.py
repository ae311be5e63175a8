"""`torchspore workers`: runs a program by several processes of this machine."""
from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torchspore.cli import run as one
from torchspore.cli.run import UsageError

USAGE_ERROR = 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torchspore workers", usage="torchspore workers [-n COUNT] [options] (script.py | -m module) [words …]", allow_abbrev=False,
        description="Runs a program by several processes of this machine, which meet in init(). Ctrl-C ends all of them.",
    )
    parser.add_argument("-n", "--count", type=int, default=2, help="how many processes (2)")
    parser.add_argument("--log-dir", type=Path, help="a folder for worker_N.log, one for each rank; kept only after a failure without it")
    parser.add_argument("--show", default="0", help="whose output is shown here: ranks such as 0,2, or `all`, or `none` (0)")
    parser.add_argument("--max-restarts", type=int, default=0, help="how often all are started again when one fails (0)")
    parser.add_argument("--master-port", type=int, default=0, help="where they meet (any free port)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that they wait for each other (600)")
    return parser


def split(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[argparse.Namespace, tuple[str, ...]]:
    """The launcher's own options, and the words from the program on."""
    takes = {option: action.nargs != 0 for action in parser._actions for option in action.option_strings}
    at = 0
    while (at < len(words) and words[at] in takes) or (at < len(words) and words[at].partition("=")[0] in takes):
        at += 2 if "=" not in words[at] and takes[words[at]] else 1
    return parser.parse_args(list(words[:at])), tuple(words[at:])


def ranks_of(text: str, count: int) -> frozenset[int]:
    """The ranks that `all`, `none` or `0,2` names. Raises UsageError."""
    if text in ("all", "-1"):
        return frozenset(range(count))
    if text == "none":
        return frozenset()
    try:
        return frozenset(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"torchspore workers --show {text}: expected ranks such as 0,2, all or none.") from None


def check_program(words: tuple[str, ...]) -> None:
    """Refuses what `torchspore run` would refuse in each process, before any is started. Raises UsageError."""
    request = one.parse(words)
    if request.script is not None:
        one._check_exists(request.script)


def launched(make: Callable[[Any], Any]) -> int:
    """Runs the job that `make` makes with the launcher's module; gives the exit code, 130 for Ctrl-C while that is still being loaded."""
    pressed: list[int] = []

    def press(number: int, frame: Any) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, press)                   # loading torch swallows an exception here and there: the press is kept
    try:
        from torchspore.distributed.comm import launch

        job = make(launch)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)          # the process is about to end
        print("torchspore workers: ended by SIGINT.", file=sys.stderr)
        return 128 + int(signal.SIGINT)
    return launch.run(job, lambda: bool(pressed))


def run(words: Sequence[str]) -> int:
    """The command: runs the program and gives the exit code of the process that failed first, 0 where none did."""
    asked, program = split(_parser(), words)
    try:
        if asked.count < 1:
            raise UsageError(f"torchspore workers -n {asked.count}: expected at least 1.")
        check_program(program)
        shown = ranks_of(asked.show, asked.count)
    except UsageError as error:
        print(error, file=sys.stderr)
        return USAGE_ERROR
    return launched(lambda launch: launch.Job(
        program, asked.count, port=asked.master_port, log_dir=asked.log_dir, shown=shown, restarts=asked.max_restarts,
        seconds=asked.timeout, variables={"MS_TOPO_TIMEOUT": str(int(asked.timeout)), "PYTHONUNBUFFERED": os.environ.get(
            "PYTHONUNBUFFERED", "1")},
    ))
