"""`torchspore workers`: run a program with several processes on this machine."""
from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torchspore.base.text import message
from torchspore.cli import run as run_command
from torchspore.cli.grammar import USAGE_ERROR, Parser, UsageError, returns_exit_code, split_program
from torchspore.translations import translate


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore workers", runs_program=True,
        description="Runs a program with several processes on this machine, which connect in init(). Ctrl-C ends all of them.",
        examples=["torchspore workers -n 4 train.py", "torchspore workers -n 2 --servers 2 train.py"],
    )
    command.add_argument("-n", "--count", type=int, default=2, help="how many processes (2)")
    command.add_argument("--servers", type=int, default=0, help="how many servers of set_ps_context, with a scheduler (0)")
    command.add_argument("--log-dir", type=Path, help="a folder for worker_N.log, one for each rank; by default only after a failure")
    command.add_argument("--show", default="0", help="whose output is shown here: ranks such as 0,2, or `all`, or `none` (0)")
    command.add_argument("--max-restarts", type=int, default=0, help="how often all are restarted if one fails (0)")
    command.add_argument("--master-port", type=int, default=0, help="the port where they connect (any free port)")
    command.add_argument("--timeout", type=float, default=600, help="seconds that they wait for each other (600)")
    return command


def ranks_of(text: str, count: int) -> frozenset[int]:
    """Parse the ranks in `all`, `none` or `0,2`. Raise UsageError."""
    if text in ("all", "-1"):
        return frozenset(range(count))
    if text == "none":
        return frozenset()
    try:
        return frozenset(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(message(f"torchspore workers --show {text}", translate("ranks such as 0,2, all or none"))) from None


def check_program(words: tuple[str, ...], prog: str) -> None:
    """Refuse a program that `torchspore run` would refuse in each process, before any is started, and any on Windows. Raise UsageError."""
    if os.name == "nt":
        hint = translate("use WSL, or simulate devices in one process: TORCHSPORE_SIMULATE=8 torchspore run PROGRAM")
        raise UsageError(message(prog, translate("Linux or macOS, whose process groups end a job as a whole"), hint=hint))
    request = run_command.parse(words, prog)
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
        print(translate("torchspore workers: ended by SIGINT."), file=sys.stderr)
        return 128 + int(signal.SIGINT)
    return launch.run(job, lambda: bool(pressed))


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command: run the program and return the exit code of the first process that failed, otherwise 0."""
    options, program = split_program(parser(), words)
    try:
        if options.count < 1:
            raise UsageError(message(f"torchspore workers -n {options.count}", translate("at least {number}").format(number=1)))
        if options.servers < 0:
            raise UsageError(message(f"torchspore workers --servers {options.servers}", translate("at least {number}").format(number=0)))
        check_program(program, "torchspore workers")
        shown_ranks = ranks_of(options.show, options.count)
    except UsageError as error:
        print(error, file=sys.stderr)
        return USAGE_ERROR
    return launch_job(lambda launch: launch.Job(
        program, options.count, port=options.master_port, log_dir=options.log_dir, shown=shown_ranks, restarts=options.max_restarts,
        seconds=options.timeout, variables={"MS_TOPO_TIMEOUT": str(int(options.timeout)), "PYTHONUNBUFFERED": os.environ.get(
            "PYTHONUNBUFFERED", "1")}, servers=options.servers,
    ))
