"""`torchspore msrun`: MindSpore's launcher with its arguments, on torch elastic."""
from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from torchspore.base.text import message
from torchspore.cli.grammar import USAGE_ERROR, Parser, UsageError, returns_exit_code, split_program
from torchspore.cli.workers import check_program, launch_job, ranks_of
from torchspore.translations import translate


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore msrun", runs_program=True, description="Starts the processes of a run on this machine, as MindSpore's msrun does.",
        examples=["torchspore msrun --worker_num=4 --local_worker_num=4 --join=True train.py"],
    )
    command.add_argument("--worker_num", type=int, default=8, help="how many processes on all machines (8)")
    command.add_argument("--local_worker_num", type=int, default=8, help="how many of them here (8)")
    command.add_argument("--master_addr", default="127.0.0.1", help="the machine where all processes connect (127.0.0.1)")
    command.add_argument("--master_port", type=int, default=8118, help="the port there (8118)")
    command.add_argument("--node_rank", type=int, default=-1, help="which of the machines this is; -1 numbers them automatically")
    command.add_argument("--log_dir", default="", help="the folder of worker_N.log (the current one)")
    command.add_argument("--join", choices=("True", "False"), default="False", help="whether to wait for the processes (False)")
    command.add_argument("--cluster_time_out", type=int, default=600, help="seconds that the processes wait for each other (600)")
    command.add_argument("--bind_core", default="False", help="True: each process on its share of the cores; or cores: 0-3;4-7")
    command.add_argument("--rank_table_file", default="", help="a table of ranks, which HCCL reads")
    command.add_argument("--worker_log_name", default="", help="the beginning of the logs' names; {ip} and {hostname} are filled in")
    command.add_argument("--tail_worker_log", default="-1", help="whose output is shown with --join=True: ranks such as 0,2; -1 is all")
    command.add_argument("--max_restarts", type=int, default=0, help="only in torchspore: how often all are restarted if one fails (0)")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command: start the processes; with --join=True wait and return the exit code of the first that failed."""
    options, program = split_program(parser(), words)
    try:
        check_program(program, "torchspore msrun")
        _check_counts(options)
        cores = _cores(options.bind_core, options.local_worker_num)
        shown_ranks = ranks_of(options.tail_worker_log, options.worker_num)
    except UsageError as error:
        print(error, file=sys.stderr)
        return USAGE_ERROR
    folder = Path(options.log_dir or ".").resolve()
    if options.join == "False":
        return _detached(words, folder)
    variables = {"MS_TOPO_TIMEOUT": str(options.cluster_time_out)}
    if options.rank_table_file:
        variables["RANK_TABLE_FILE"] = options.rank_table_file
    return launch_job(lambda launch: launch.Job(
        program, options.local_worker_num, options.worker_num // options.local_worker_num, options.node_rank, options.master_addr,
        options.master_port, folder, _log_name(options.worker_log_name), shown_ranks, options.max_restarts,
        float(options.cluster_time_out), cores, variables,
    ))


def _check_counts(options: argparse.Namespace) -> None:
    total, local = options.worker_num, options.local_worker_num
    if local < 1 or total < local or total % local:
        hint = translate("write --local_worker_num {count} for one machine").format(count=total)
        subject = f"torchspore msrun --worker_num {total} --local_worker_num {local}"
        raise UsageError(message(subject, translate("the same number of processes on each machine"), hint=hint))
    if options.node_rank >= total // local:
        expected = translate("an int from {low} to {high}").format(low=-1, high=total // local - 1)
        raise UsageError(message(f"torchspore msrun --node_rank {options.node_rank}", expected))


def _cores(text: str, count: int) -> tuple[str, ...]:
    """Return the cores of each process; empty if all run on all cores. Raise UsageError."""
    if text == "False":
        return ()
    if text == "True":
        cores = sorted(os.sched_getaffinity(0))
        share = max(1, len(cores) // count)
        return tuple(",".join(map(str, cores[at * share % len(cores):][:share])) for at in range(count))
    from torchspore.cli.worker_process import cores_of

    parts = tuple(text.split(";"))
    try:
        if all(cores_of(part) <= os.sched_getaffinity(0) for part in parts):
            return parts
    except ValueError:
        pass
    expected = translate("True, False or cores of this machine such as 0-3;4-7")
    raise UsageError(message(f"torchspore msrun --bind_core {text}", expected))


def _log_name(template: str) -> str:
    if not template:
        return "worker"
    name = socket.gethostname()
    return template.replace("{hostname}", name).replace("{ip}", socket.gethostbyname(name) if "{ip}" in template else "")


def _detached(words: Sequence[str], folder: Path) -> int:
    """Start a launcher that continues on its own, as MindSpore's msrun does without --join."""
    folder.mkdir(parents=True, exist_ok=True)
    at = next((index for index, word in enumerate(words) if word.partition("=")[0] == "--join"), None)
    remaining = list(words)
    if at is not None:
        del remaining[at:at + (1 if "=" in words[at] else 2)]
    with open(folder / "launcher.log", "wb") as log:
        launcher = subprocess.Popen(
            [sys.executable, "-m", "torchspore", "msrun", "--join", "True", *remaining], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )
    print(f"started; process {launcher.pid} watches it, {folder / 'launcher.log'} reports the progress (--join=True waits here)")
    return 0
