"""`torchspore msrun`: MindSpore's launcher with its arguments, on torch elastic."""
from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from torchspore.cli.run import UsageError
from torchspore.cli.workers import USAGE_ERROR, check_program, launched, ranks_of, split


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torchspore msrun", usage="torchspore msrun [options] script.py [words …]", allow_abbrev=False,
        description="Starts the processes of a run on this machine, as MindSpore's msrun does.",
    )
    parser.add_argument("--worker_num", type=int, default=8, help="how many processes on all machines (8)")
    parser.add_argument("--local_worker_num", type=int, default=8, help="how many of them here (8)")
    parser.add_argument("--master_addr", default="127.0.0.1", help="the machine where all meet (127.0.0.1)")
    parser.add_argument("--master_port", type=int, default=8118, help="the port there (8118)")
    parser.add_argument("--node_rank", type=int, default=-1, help="which of the machines this is; -1 lets them number themselves")
    parser.add_argument("--log_dir", default="", help="the folder of worker_N.log (the current one)")
    parser.add_argument("--join", choices=("True", "False"), default="False", help="whether to wait for the processes (False)")
    parser.add_argument("--cluster_time_out", type=int, default=600, help="seconds that the processes wait for each other (600)")
    parser.add_argument("--bind_core", default="False", help="True: each process on its share of the cores; or cores: 0-3;4-7")
    parser.add_argument("--rank_table_file", default="", help="a table of ranks, which HCCL reads")
    parser.add_argument("--worker_log_name", default="", help="the beginning of the logs' names; {ip} and {hostname} are filled in")
    parser.add_argument("--tail_worker_log", default="-1", help="whose output is shown with --join=True: ranks such as 0,2; -1 is all")
    parser.add_argument("--max_restarts", type=int, default=0, help="torchspore's own: how often all are started again when one fails (0)")
    return parser


def run(words: Sequence[str]) -> int:
    """The command: starts the processes; with --join=True it waits and gives the exit code of the one that failed first."""
    asked, program = split(_parser(), words)
    try:
        check_program(program)
        _check_counts(asked)
        cores = _cores(asked.bind_core, asked.local_worker_num)
        shown = ranks_of(asked.tail_worker_log, asked.worker_num)
    except UsageError as error:
        print(error, file=sys.stderr)
        return USAGE_ERROR
    folder = Path(asked.log_dir or ".").resolve()
    if asked.join == "False":
        return _detached(words, folder)
    variables = {"MS_TOPO_TIMEOUT": str(asked.cluster_time_out)}
    if asked.rank_table_file:
        variables["RANK_TABLE_FILE"] = asked.rank_table_file
    return launched(lambda launch: launch.Job(
        program, asked.local_worker_num, asked.worker_num // asked.local_worker_num, asked.node_rank, asked.master_addr, asked.master_port,
        folder, _log_name(asked.worker_log_name), shown, asked.max_restarts, float(asked.cluster_time_out), cores, variables,
    ))


def _check_counts(asked: argparse.Namespace) -> None:
    total, here = asked.worker_num, asked.local_worker_num
    if here < 1 or total < here or total % here:
        raise UsageError(
            f"torchspore msrun --worker_num {total} --local_worker_num {here}: expected machines with as many processes each.\n\n"
            f"hint: write --local_worker_num {total} for one machine."
        )
    if asked.node_rank >= total // here:
        raise UsageError(f"torchspore msrun --node_rank {asked.node_rank}: expected -1 to {total // here - 1}.")


def _cores(text: str, count: int) -> tuple[str, ...]:
    """For each process the cores that it runs on; nothing where all run on all. Raises UsageError."""
    if text == "False":
        return ()
    if text == "True":
        cores = sorted(os.sched_getaffinity(0))
        share = max(1, len(cores) // count)
        return tuple(",".join(map(str, cores[at * share % len(cores):][:share])) for at in range(count))
    from torchspore.cli.worker import cores_of

    parts = tuple(text.split(";"))
    try:
        if all(cores_of(part) <= os.sched_getaffinity(0) for part in parts):
            return parts
    except ValueError:
        pass
    raise UsageError(f"torchspore msrun --bind_core {text}: expected True, False or cores of this machine such as 0-3;4-7.")


def _log_name(wanted: str) -> str:
    if not wanted:
        return "worker"
    name = socket.gethostname()
    return wanted.replace("{hostname}", name).replace("{ip}", socket.gethostbyname(name) if "{ip}" in wanted else "")


def _detached(words: Sequence[str], folder: Path) -> int:
    """Starts a launcher that goes on by itself, as MindSpore's msrun does unless it is told to --join."""
    folder.mkdir(parents=True, exist_ok=True)
    at = next((place for place, word in enumerate(words) if word.partition("=")[0] == "--join"), None)
    rest = list(words)
    if at is not None:
        del rest[at:at + (1 if "=" in words[at] else 2)]
    with open(folder / "launcher.log", "wb") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "torchspore", "msrun", "--join", "True", *rest], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )
    print(f"started; process {started.pid} watches it, {folder / 'launcher.log'} says how it goes (--join=True waits here)")
    return 0
