"""`torchspore workers`: run a program with several processes on this machine."""
from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torchspore.cli import run as run_command
from torchspore.cli.run import UsageError

USAGE_ERROR = 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torchspore workers", usage="torchspore workers [-n COUNT] [options] (script.py | -m module) [words …]", allow_abbrev=False,
        description="Runs a program with several processes on this machine, which connect in init(). Ctrl-C ends all of them.",
    )
    parser.add_argument("-n", "--count", type=int, default=2, help="how many processes (2)")
    parser.add_argument("--servers", type=int, default=0, help="how many servers of set_ps_context, with a scheduler (0)")
    parser.add_argument("--log-dir", type=Path, help="a folder for worker_N.log, one for each rank; by default kept only after a failure")
    parser.add_argument("--show", default="0", help="whose output is shown here: ranks such as 0,2, or `all`, or `none` (0)")
    parser.add_argument("--max-restarts", type=int, default=0, help="how often all are restarted if one fails (0)")
    parser.add_argument("--master-port", type=int, default=0, help="the port where they connect (any free port)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that they wait for each other (600)")
    return parser


def split(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[argparse.Namespace, tuple[str, ...]]:
    """Split the words into the launcher's options and the program with its arguments."""
    takes = {option: action.nargs != 0 for action in parser._actions for option in action.option_strings}
    at = 0
    while (at < len(words) and words[at] in takes) or (at < len(words) and words[at].partition("=")[0] in takes):
        at += 2 if "=" not in words[at] and takes[words[at]] else 1
    return parser.parse_args(list(words[:at])), tuple(words[at:])


def ranks_of(text: str, count: int) -> frozenset[int]:
    """Parse the ranks in `all`, `none` or `0,2`. Raise UsageError."""
    if text in ("all", "-1"):
        return frozenset(range(count))
    if text == "none":
        return frozenset()
    try:
        return frozenset(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"torchspore workers --show {text}: expected ranks such as 0,2, all or none.") from None


def check_program(words: tuple[str, ...]) -> None:
    """Refuse a program that `torchspore run` would refuse in each process, before any is started. Raise UsageError."""
    request = run_command.parse(words)
    if request.script is not None:
        run_command.check_exists(request.script)


def launch_job(create_job: Callable[[Any], Any]) -> int:
    """Run the job that `create_job` creates; return the exit code, or 130 for Ctrl-C while the launcher is still being loaded."""
    pressed: list[int] = []

    def record_interrupt(number: int, frame: Any) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, record_interrupt)        # recorded, because loading torch may swallow the exception
    try:
        from torchspore.distributed.comm import launch

        job = create_job(launch)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)          # the process is about to end
        print("torchspore workers: ended by SIGINT.", file=sys.stderr)
        return 128 + int(signal.SIGINT)
    return launch.run(job, lambda: bool(pressed))


def run(words: Sequence[str]) -> int:
    """Run the command: run the program and return the exit code of the first process that failed, otherwise 0."""
    options, program = split(_parser(), words)
    try:
        if options.count < 1:
            raise UsageError(f"torchspore workers -n {options.count}: expected at least 1.")
        if options.servers < 0:
            raise UsageError(f"torchspore workers --servers {options.servers}: expected at least 0.")
        check_program(program)
        shown_ranks = ranks_of(options.show, options.count)
    except UsageError as error:
        print(error, file=sys.stderr)
        return USAGE_ERROR
    return launch_job(lambda launch: launch.Job(
        program, options.count, port=options.master_port, log_dir=options.log_dir, shown=shown_ranks, restarts=options.max_restarts,
        seconds=options.timeout, variables={"MS_TOPO_TIMEOUT": str(int(options.timeout)), "PYTHONUNBUFFERED": os.environ.get(
            "PYTHONUNBUFFERED", "1")}, servers=options.servers,
    ))
