"""Processes of a run on this machine, by torch elastic: their logs, the first failure, an end of all of them whatever happens."""
from __future__ import annotations

import dataclasses
import logging
import os
import signal
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from torchspore.base.text import with_hint

LOG, PIDS, LAUNCHER, CORES = "TORCHSPORE_WORKER_LOG", "TORCHSPORE_WORKER_PIDS", "TORCHSPORE_LAUNCHER", "TORCHSPORE_WORKER_CORES"
"""Environment variables for a worker: the file for its output, the file for its number, its launcher, its cores."""


@dataclass(frozen=True)
class Job:
    """The program to run, the number of processes, and the folder."""

    words: tuple[str, ...]
    """The arguments of `torchspore run`."""
    workers: int
    """On this machine."""
    nodes: int = 1
    node: int = 0
    """Which of the machines this is; -1 lets them number themselves."""
    host: str = "127.0.0.1"
    port: int = 0
    """Where the machines meet; 0 is any free port of this one."""
    log_dir: Path | None = None
    """None keeps the logs in a folder that goes where nothing failed."""
    log_name: str = "worker"
    shown: frozenset[int] = frozenset({0})
    """The ranks whose output is shown here too."""
    restarts: int = 0
    seconds: float = 600.0
    """How long the machines wait for each other."""
    cores: tuple[str, ...] = ()
    """For each process the cores that it runs on, such as '0-3'."""
    variables: dict[str, str] = field(default_factory=dict)


def run(job: Job, was_pressed: Callable[[], bool] = lambda: False) -> int:
    """Runs the job and gives the exit code: that of the process that failed first, 0 where none did, 130 after Ctrl-C.

    `was_pressed` says whether there was a Ctrl-C whose exception has got lost.
    """
    heard = signal.getsignal(signal.SIGINT)
    try:
        code = _run(job, was_pressed)
    except KeyboardInterrupt:
        code = interrupted()
    if code != _INTERRUPTED:                                  # then the process is about to end, and a second Ctrl-C changes nothing
        signal.signal(signal.SIGINT, heard)
    return code


_INTERRUPTED = 128 + int(signal.SIGINT)


def interrupted() -> int:
    """Says that Ctrl-C has ended the run, and hears no other; gives the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("torchspore workers: ended by SIGINT.", file=sys.stderr)
    return _INTERRUPTED


def _run(job: Job, was_pressed: Callable[[], bool]) -> int:
    try:
        from torch.distributed.elastic.multiprocessing.api import SignalException
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.launcher.api import launch_agent
    except ImportError as error:
        print(f"torchspore workers: torch has no elastic launcher here ({error}).", file=sys.stderr)
        return 2
    if was_pressed():
        raise KeyboardInterrupt
    logging.disable(logging.ERROR)                  # torch elastic logs each signal; the important ones are reported here
    with tempfile.TemporaryDirectory(prefix="torchspore_workers_") as log_folder:
        folder = job.log_dir or Path(tempfile.mkdtemp(prefix="torchspore_logs_"))
        folder.mkdir(parents=True, exist_ok=True)
        pids = Path(log_folder) / "pids"
        os.environ.update({PIDS: str(pids), LAUNCHER: str(os.getpid()), **job.variables})
        code = 1
        try:
            if job.nodes > 1 and job.node >= 0:
                _find_first(job)
            launch_agent(_config(job, folder, Path(log_folder)), sys.executable, ["-u", "-m", "torchspore.cli.worker", *job.words])
            code = 0
        except ChildFailedError as error:
            code = _report_failures(error.failures, folder, job, sys.stderr)
        except SignalException as error:
            print(f"torchspore workers: ended by {signal.Signals(error.sigval).name}.", file=sys.stderr)
            code = 128 + int(error.sigval)
        except KeyboardInterrupt:
            code = interrupted()
        except Exception as error:
            print(_why(error, job), file=sys.stderr)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)      # a second Ctrl-C shall leave nothing behind
            logging.disable(logging.NOTSET)
            _end_all(pids)
            if code in (0, 128 + signal.SIGINT) and job.log_dir is None:      # Ctrl-C is not a failure to be looked into
                _remove(folder)
    return code


def _find_first(job: Job) -> None:
    """Waits until the first machine can be found: torch would write pages about its own attempts. Raises OSError and RuntimeError."""
    from torchspore.distributed.comm import peer_liveness, rendezvous

    if job.node == 0:
        if job.port:
            peer_liveness.leads_here(job.host, job.port, job.seconds)
        return
    try:
        peer_liveness.waited_for(job.host, job.port, job.seconds)
    except OSError as error:
        raise TimeoutError("timed out") from error
    rendezvous.opened(job.host, job.port, 1, False, job.seconds, False)


def _config(job: Job, folder: Path, log_folder: Path) -> Any:
    from torch.distributed.launcher.api import LaunchConfig

    alone = job.nodes == 1
    port = job.port or _free_port()
    numbered = job.node >= 0
    has_shutdown_timeout = "shutdown_timeout" in {field.name for field in dataclasses.fields(LaunchConfig)}     # from torch 2.12 on
    more: dict[str, Any] = {"shutdown_timeout": 5} if has_shutdown_timeout else {}
    return LaunchConfig(
        min_nodes=job.nodes, max_nodes=job.nodes, nproc_per_node=job.workers, run_id=uuid.uuid4().hex if alone else "torchspore",
        rdzv_backend="static" if alone or numbered else "c10d", rdzv_endpoint=f"{job.host}:{port}",
        rdzv_configs={"rank": max(job.node, 0), "timeout": job.seconds} if alone or numbered else {"join_timeout": job.seconds},
        max_restarts=job.restarts, monitor_interval=0.1, logs_specs=_logs(job, folder, log_folder),
        log_line_prefix_template="[${rank}] ", local_addr=job.host if alone else None,
        **more,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _logs(job: Job, folder: Path, log_folder: Path) -> Any:
    from torch.distributed.elastic.multiprocessing.api import LogsDest, LogsSpecs

    class Logs(LogsSpecs):
        """`worker_N.log` for each rank; those of an earlier attempt are kept beside it."""

        def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
            """Says where output and errors of each process go, and tells the process."""
            log_paths, errors = {}, {}
            restart_count = max(int(variables["TORCHELASTIC_RESTART_COUNT"]) for variables in envs.values())
            if restart_count:
                print(f"torchspore workers: a rank has failed; all are started again ({restart_count} of {job.restarts})", file=sys.stderr)
            for local, variables in envs.items():
                rank, attempt = variables["RANK"], int(variables["TORCHELASTIC_RESTART_COUNT"])
                log = folder / f"{job.log_name}_{rank}.log"
                if attempt and log.exists():
                    log.rename(folder / f"{job.log_name}_{rank}.attempt_{attempt - 1}.log")
                log.write_bytes(b"")
                errors[local] = str(log_folder / f"error_{rank}_{attempt}.json")
                variables.update({LOG: str(log), "TORCHELASTIC_ERROR_FILE": errors[local]})
                if job.cores:
                    variables[CORES] = job.cores[local % len(job.cores)]
                if int(rank) in job.shown:
                    log_paths[local] = str(log)
            none = dict.fromkeys(envs, "")
            return LogsDest(stdouts=none, stderrs=none, tee_stdouts=log_paths, error_files=errors)

        @property
        def root_log_dir(self) -> str:
            """The folder of the logs."""
            return str(folder)

    return Logs(str(folder))


# ---- failures


def _report_failures(failures: dict[int, Any], folder: Path, job: Job, out: TextIO) -> int:
    """Says which rank failed first and with what, then who failed too; gives the exit code."""
    sys.stdout.flush()
    ranks = sorted(failures, key=lambda rank: (_is_follower(failures[rank]), failures[rank].timestamp))
    first = failures[ranks[0]]
    print(f"\ntorchspore workers: rank {ranks[0]} failed first: {_how(first)}", file=out)
    log = folder / f"{job.log_name}_{ranks[0]}.log"
    if ranks[0] not in job.shown:
        for line in _tail(log):
            print(f"  {line}", file=out)
    for rank in ranks[1:]:
        print(f"then rank {rank}: {_how(failures[rank]).splitlines()[0]}", file=out)
    print(f"the output of every rank: {folder}", file=out)
    return int(first.exitcode) if first.exitcode > 0 else 128 - int(first.exitcode)


def _is_follower(failure: Any) -> bool:
    """Return whether a process ended because another one had: it was ended by the launcher, or lost its partner."""
    text = _text(failure)
    return failure.exitcode == -signal.SIGTERM or "CommunicationError" in text


def _text(failure: Any) -> str:
    data = failure.error_file_data or {}
    error_text = data.get("message", "")
    text = str(error_text.get("message", "") if isinstance(error_text, dict) else error_text)
    return "" if text == "<NONE>" else text                     # torch's word for a program that left no error


def _how(failure: Any) -> str:
    if failure.exitcode < 0:
        name = signal.Signals(-failure.exitcode).name
        return f"killed by {name}" + (", which is what a lack of memory looks like" if name == "SIGKILL" else "")
    return _text(failure).strip() or f"exit code {failure.exitcode}"


def _tail(log: Path, count: int = 30) -> list[str]:
    try:
        return log.read_text(errors="replace").splitlines()[-count:]
    except OSError:
        return []


def _why(error: Exception, job: Job) -> str:
    error_text, where = str(error).strip(), f"{job.host}:{job.port}"
    if "EADDRINUSE" in error_text or "already in use" in error_text:
        return with_hint(f"torchspore workers: can't listen at {where}: the port is in use.", "write another --master_port")
    if "does not lead here" in error_text:
        return with_hint(
            f"torchspore workers: nobody can come to {where}, not even this machine.",
            "--master_addr must be a name or an address of the machine with --node_rank=0",
        )
    if "Ping failed" in error_text or "is no store" in error_text:
        return with_hint(f"torchspore workers: what listens at {where} is no run of this kind.", "write another --master_port")
    if not isinstance(error, TypeError) and ("imeout" in error_text or "imed out" in error_text):
        return with_hint(
            f"torchspore workers: the machines did not meet at {where} within {job.seconds:g} s.", "--cluster_time_out sets another limit",
        )
    return f"torchspore workers: {type(error).__name__}: {error_text.splitlines()[0] if error_text else 'no reason given'}"


# ---- the end


def _end_all(pids: Path) -> None:
    """Ends what the processes have left behind: each is the head of a session of its own."""
    for pid in _pids(pids):
        try:
            os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    until = time.monotonic() + 2
    while time.monotonic() < until and any(Path(f"/proc/{pid}").exists() and not _is_zombie(pid) for pid in _pids(pids)):
        time.sleep(0.01)


def _pids(path: Path) -> Iterable[int]:
    try:
        return [int(line) for line in path.read_text().split()]
    except (OSError, ValueError):
        return []


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
