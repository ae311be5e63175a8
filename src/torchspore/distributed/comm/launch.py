"""Launch the processes of a run on this machine with torch elastic: write logs, report the first failure, stop all processes."""
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
from torchspore.blackbox import flight_diagnosis, flight_dumps

LOG, PIDS, LAUNCHER, CORES = "TORCHSPORE_WORKER_LOG", "TORCHSPORE_WORKER_PIDS", "TORCHSPORE_LAUNCHER", "TORCHSPORE_WORKER_CORES"
SERVERS = "TORCHSPORE_SERVERS"
"""Environment variables of a worker: the file for its output, the file for process ids, its launcher, its cores, the number of servers."""


@dataclass(frozen=True)
class Job:
    """A job to launch: the program, the processes and machines, the logs."""

    words: tuple[str, ...]
    """The arguments of `torchspore run`."""
    workers: int
    """The number of worker processes on this machine."""
    nodes: int = 1
    node: int = 0
    """The number of this machine; -1 lets torch number the machines."""
    host: str = "127.0.0.1"
    port: int = 0
    """The port of the rendezvous; 0 chooses a free port of this machine."""
    log_dir: Path | None = None
    """The folder of the logs; None is a temporary folder that is removed unless the run fails."""
    log_name: str = "worker"
    shown: frozenset[int] = frozenset({0})
    """The ranks whose output is also printed here."""
    restarts: int = 0
    seconds: float = 600.0
    """The time limit of the rendezvous of the machines."""
    cores: tuple[str, ...] = ()
    """The cores of each process, such as '0-3'."""
    variables: dict[str, str] = field(default_factory=dict)
    servers: int = 0
    """The number of servers of a parameter server job; a scheduler is started with them."""

    @property
    def processes(self) -> int:
        """The number of processes on this machine."""
        return self.workers + (self.servers + 1 if self.servers else 0)

    def name_of(self, rank: int) -> str:
        """Return the name of a process in messages and of its log."""
        if rank < self.workers or not self.servers:
            return f"{self.log_name}_{rank}"
        return "scheduler" if rank == self.workers + self.servers else f"server_{rank - self.workers}"


def run(job: Job, was_interrupted: Callable[[], bool] = lambda: False) -> int:
    """Run the job and return the exit code: of the process that failed first, 0 without a failure, 130 after Ctrl-C.

    `was_interrupted` returns whether Ctrl-C was pressed and its exception was lost.
    """
    previous_handler = signal.getsignal(signal.SIGINT)
    try:
        code = _run(job, was_interrupted)
    except KeyboardInterrupt:
        code = interrupted()
    if code != _SIGINT_CODE:                                  # after an interrupt the process ends, and further signals stay ignored
        signal.signal(signal.SIGINT, previous_handler)
    return code


_SIGINT_CODE = 128 + int(signal.SIGINT)


def interrupted() -> int:
    """Report that Ctrl-C ended the run, ignore further signals, and return the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("torchspore workers: ended by SIGINT.", file=sys.stderr)
    return _SIGINT_CODE


def _run(job: Job, was_interrupted: Callable[[], bool]) -> int:
    try:
        from torch.distributed.elastic.multiprocessing.api import SignalException
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.launcher.api import launch_agent
    except ImportError as error:
        print(f"torchspore workers: this torch build has no elastic launcher ({error}).", file=sys.stderr)
        return 2
    if was_interrupted():
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
                _wait_for_first_machine(job)
            words = ["-u", "-m", "torchspore.cli.worker_process", *job.words]
            launch_agent(_launch_config(job, folder, Path(log_folder)), sys.executable, words)
            code = 0
        except ChildFailedError as error:
            code = _report_failures(error.failures, folder, job, sys.stderr)
        except SignalException as error:
            print(f"torchspore workers: ended by {signal.Signals(error.sigval).name}.", file=sys.stderr)
            code = 128 + int(error.sigval)
        except KeyboardInterrupt:
            code = interrupted()
        except Exception as error:
            print(_describe_error(error, job), file=sys.stderr)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)      # a second Ctrl-C must not interrupt the cleanup
            logging.disable(logging.NOTSET)
            _kill_processes(pids)
            if code in (0, 128 + signal.SIGINT) and job.log_dir is None:      # Ctrl-C is not a failure
                _remove(folder)
    return code


def _wait_for_first_machine(job: Job) -> None:
    """Wait until the first machine listens; torch would log each attempt. Raises OSError and RuntimeError."""
    from torchspore.distributed.comm import peer_liveness, rendezvous

    if job.node == 0:
        if job.port:
            peer_liveness.wait_until_reachable(job.host, job.port, job.seconds)
        return
    try:
        peer_liveness.wait_until_listening(job.host, job.port, job.seconds)
    except OSError as error:
        raise TimeoutError("timed out") from error
    rendezvous.open_store(job.host, job.port, 1, False, job.seconds, False)


def _launch_config(job: Job, folder: Path, log_folder: Path) -> Any:
    from torch.distributed.launcher.api import LaunchConfig

    is_single_machine = job.nodes == 1
    port = job.port or _free_port()
    has_machine_number = job.node >= 0
    has_shutdown_timeout = "shutdown_timeout" in {field.name for field in dataclasses.fields(LaunchConfig)}     # from torch 2.12 on
    extra: dict[str, Any] = {"shutdown_timeout": 5} if has_shutdown_timeout else {}
    return LaunchConfig(
        min_nodes=job.nodes,
        max_nodes=job.nodes,
        nproc_per_node=job.processes,
        run_id=uuid.uuid4().hex if is_single_machine else "torchspore",
        rdzv_backend="static" if is_single_machine or has_machine_number else "c10d",
        rdzv_endpoint=f"{job.host}:{port}",
        rdzv_configs={"rank": max(job.node, 0), "timeout": job.seconds}
        if is_single_machine or has_machine_number
        else {"join_timeout": job.seconds},
        max_restarts=job.restarts,
        monitor_interval=0.1,
        logs_specs=_log_specs(job, folder, log_folder),
        log_line_prefix_template="[${rank}] ",
        local_addr=job.host if is_single_machine else None,
        **extra,
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _log_specs(job: Job, folder: Path, log_folder: Path) -> Any:
    from torch.distributed.elastic.multiprocessing.api import LogsDest, LogsSpecs

    server_port = _free_port() if job.servers else 0

    class Logs(LogsSpecs):
        """`worker_N.log` for each rank; the logs of earlier attempts have other names in the same folder."""

        def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
            """Return the files for output and errors of each process, and set the variables of the process."""
            log_paths, errors = {}, {}
            restart_count = max(int(variables["TORCHELASTIC_RESTART_COUNT"]) for variables in envs.values())
            if restart_count:
                print(f"torchspore workers: a rank failed; all ranks are restarted ({restart_count} of {job.restarts})", file=sys.stderr)
            for local, variables in envs.items():
                rank, attempt = variables["RANK"], int(variables["TORCHELASTIC_RESTART_COUNT"])
                name = job.name_of(int(rank))
                log = folder / f"{name}.log"
                (folder / f"{flight_dumps.PREFIX}{rank}").unlink(missing_ok=True)       # left over from an earlier attempt or run
                if attempt and log.exists():
                    log.rename(folder / f"{name}.attempt_{attempt - 1}.log")
                log.write_bytes(b"")
                errors[local] = str(log_folder / f"error_{rank}_{attempt}.json")
                variables.update({LOG: str(log), "TORCHELASTIC_ERROR_FILE": errors[local]})
                if job.servers:
                    variables.update(_server_variables(job, int(rank), server_port))
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


def _server_variables(job: Job, rank: int, port: int) -> dict[str, str]:
    """Return the variables of a process in a parameter server job: workers first, then servers, then the scheduler."""
    role, node = "MS_WORKER", rank
    if rank >= job.workers:
        role, node = ("MS_SCHED", 0) if rank == job.workers + job.servers else ("MS_PSERVER", rank - job.workers)
    count = str(job.workers)
    return {
        SERVERS: str(job.servers), "MS_ROLE": role, "MS_NODE_ID": str(node), "MS_WORKER_NUM": count, "MS_SERVER_NUM": str(job.servers),
        "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": str(port), "RANK": str(node), "LOCAL_RANK": str(node), "WORLD_SIZE": count,
        "LOCAL_WORLD_SIZE": count,
    }


# ---- failures


def _report_failures(failures: dict[int, Any], folder: Path, job: Job, out: TextIO) -> int:
    """Print the first failure and the later ones; return the exit code of the first."""
    sys.stdout.flush()
    ranks = sorted(failures, key=lambda rank: (_is_consequence(failures[rank]), failures[rank].timestamp))
    first = failures[ranks[0]]
    names = {rank: f"rank {rank}" if rank < job.workers or not job.servers else job.name_of(rank).replace("_", " ") for rank in ranks}
    print(f"\ntorchspore workers: {names[ranks[0]]} failed first: {_describe_failure(first)}", file=out)
    log = folder / f"{job.name_of(ranks[0])}.log"
    if ranks[0] not in job.shown:
        for line in _tail(log):
            print(f"  {line}", file=out)
    for rank in ranks[1:]:
        print(f"then {names[rank]}: {_describe_failure(failures[rank]).splitlines()[0]}", file=out)
    for line in flight_diagnosis.describe(folder):
        print(line, file=out)
    print(f"the output of every rank: {folder}", file=out)
    return int(first.exitcode) if first.exitcode > 0 else 128 - int(first.exitcode)


def _is_consequence(failure: Any) -> bool:
    """Return whether a process ended because of another failure: the launcher ended it, or it lost its connection."""
    text = _error_text(failure)
    return failure.exitcode == -signal.SIGTERM or "CommunicationError" in text


def _error_text(failure: Any) -> str:
    data = failure.error_file_data or {}
    error_text = data.get("message", "")
    text = str(error_text.get("message", "") if isinstance(error_text, dict) else error_text)
    return "" if text == "<NONE>" else text                     # torch writes this for a program without an error


def _describe_failure(failure: Any) -> str:
    if failure.exitcode < 0:
        name = signal.Signals(-failure.exitcode).name
        return f"killed by {name}" + (", possibly by the out-of-memory killer" if name == "SIGKILL" else "")
    return _error_text(failure).strip() or f"exit code {failure.exitcode}"


def _tail(log: Path, count: int = 30) -> list[str]:
    try:
        return log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except OSError:
        return []


def _describe_error(error: Exception, job: Job) -> str:
    error_text, where = str(error).strip(), f"{job.host}:{job.port}"
    if "EADDRINUSE" in error_text or "already in use" in error_text:
        return with_hint(f"torchspore workers: can't listen at {where}: the port is in use.", "choose a different --master_port")
    if "does not lead here" in error_text:
        return with_hint(
            f"torchspore workers: {where} is unreachable, even from this machine.",
            "--master_addr must be a name or an address of the machine with --node_rank=0",
        )
    if "Ping failed" in error_text or "is no store" in error_text:
        text = f"torchspore workers: {where} is in use by another program than a torchspore run."
        return with_hint(text, "choose a different --master_port")
    if not isinstance(error, TypeError) and ("imeout" in error_text or "imed out" in error_text):
        return with_hint(
            f"torchspore workers: not all machines connected to {where} within {job.seconds:g} s.", "--cluster_time_out sets another limit",
        )
    return f"torchspore workers: {type(error).__name__}: {error_text.splitlines()[0] if error_text else 'no reason given'}"


# ---- cleanup


def _kill_processes(pids: Path) -> None:
    """Kill the remaining child processes; each worker is the leader of a session."""
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
        return [int(line) for line in path.read_text(encoding="utf-8").split()]
    except (OSError, ValueError):
        return []


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
