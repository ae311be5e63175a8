"""The rank, size and addresses of a run, from variables of torchrun, MindSpore, mpirun and srun, or from a rank table.

| set by | variables |
|---|---|
| torchrun, `torchspore workers`, PyTorchJob, Ray Train | RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT |
| MindSpore's msrun and dynamic cluster | MS_ROLE, MS_WORKER_NUM, MS_NODE_ID, MS_SCHED_HOST, MS_SCHED_PORT |
| mpirun of Open MPI | OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE |
| a rank table | RANK_TABLE_FILE or MINDSPORE_HCCL_CONFIG_PATH, RANK_ID |
| the user | RANK_ID, RANK_SIZE |
| mpirun of MPICH, Intel MPI, MVAPICH | PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS |
| Slurm's srun | SLURM_PROCID, SLURM_LOCALID, SLURM_STEP_NUM_TASKS, SLURM_STEP_NODELIST |

The first row whose variables are set is used.
"""
from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchspore.base import json_text
from torchspore.base.text import message

HOST, PORT = "127.0.0.1", 8118
"""The default address of the rendezvous, as in MindSpore."""
_TABLES = ("RANK_TABLE_FILE", "MINDSPORE_HCCL_CONFIG_PATH")
_NOT_READ = (
    ("PMI_RANK", "PMI_SIZE"), ("PMIX_RANK", ""), ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"), ("PALS_RANKID", ""),
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"), ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
)
"""Pairs of variables (rank, number of ranks) of unsupported launchers; an empty name if the launcher sets no number."""


@dataclass(frozen=True)
class ProcessInfo:
    """The rank of a process in a run, and the address of the rendezvous. A rank of -1 is assigned at the rendezvous."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    host: str = HOST
    port: int = PORT
    source: str = "nothing"
    """The variables from which it was read."""
    role: str = "worker"
    """'worker', or 'scheduler' for a process that only waits for the workers."""
    seconds: float | None = None
    """The time limit of the rendezvous, if the environment sets it."""


ALONE = ProcessInfo(0, 1, 0, 1)


def read(variables: Mapping[str, str] = os.environ) -> ProcessInfo:
    """Return the process that the environment describes; `ALONE` without such variables.

    Raises ValueError for a value that is not a number, a rank out of range, and an unreadable rank table.
    """
    if variables.get("MS_SIMULATION_LEVEL"):         # one process simulates all
        return ALONE
    for reader in (_torchrun, _mindspore, _open_mpi, _rank_table, _rank_id, _hydra, _slurm):
        process_info = reader(variables)
        if process_info is not None:
            return _validate(process_info)
    _check_complete(variables)
    _check_launchers(variables)
    return ALONE


def _check_complete(variables: Mapping[str, str]) -> None:
    """Raises ValueError for a number of processes without a rank, or a rank without a number: each process would train alone."""
    for count, rank_variable, first in (("WORLD_SIZE", "RANK", ("", "0")), ("MS_WORKER_NUM", "MS_ROLE", ("",))):
        if variables.get(count) and not variables.get(rank_variable) and _number(variables, count) > 1:
            error_text = f"init(): {count}={variables[count]} without {rank_variable}"
            raise ValueError(message(error_text, f"{rank_variable}, which says which of the processes this is"))
        if variables.get(rank_variable, "") not in first and not variables.get(count):
            raise ValueError(
                message(f"init(): {rank_variable}={variables[rank_variable]} without {count}", f"{count}, the number of processes")
            )


def _check_launchers(variables: Mapping[str, str]) -> None:
    """Raises ValueError if an unsupported launcher started several ranks."""
    if variables.get("SLURM_STEP_NUM_TASKS") == "1":              # srun --mpi=pmix -n 1
        return
    for rank, count in _NOT_READ:
        if variables.get(rank) and variables.get(count, "") != "1":
            error_text = f"init(): {rank}={variables[rank]}, of a launcher that is not known here"
            hint = f"mpirun -n 2 sh -c 'RANK=${rank} WORLD_SIZE=2 torchspore run SCRIPT', or torchspore workers -n 2 SCRIPT"
            raise ValueError(message(error_text, "RANK and WORLD_SIZE too, or each process would train separately", hint=hint))


def _number(variables: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = variables.get(name)
    if text is None or text == "":
        if default is None:
            raise ValueError(message(f"init(): {name} is not set", f"{name}, which says which of the processes this is"))
        return default
    try:
        return int(text)
    except ValueError:
        raise ValueError(message(f"{name}={text!r}", "a number")) from None


def _validate(process_info: ProcessInfo) -> ProcessInfo:
    if process_info.size < 1:
        raise ValueError(message(f"{process_info.source}: {process_info.size} processes", "at least one"))
    if process_info.rank >= process_info.size or process_info.rank < -1:
        raise ValueError(
            message(
                f"{process_info.source}: rank {process_info.rank} of {process_info.size} processes",
                f"a rank from 0 to {process_info.size - 1}",
            )
        )
    if not 0 < process_info.port < 65536:
        raise ValueError(message(f"{process_info.source}: port {process_info.port}", "a port from 1 to 65535"))
    return process_info


def _torchrun(variables: Mapping[str, str]) -> ProcessInfo | None:
    if "RANK" not in variables or "WORLD_SIZE" not in variables:
        return None
    size = _number(variables, "WORLD_SIZE")
    rank = _number(variables, "RANK")
    if rank < 0:
        raise ValueError(message(f"RANK={rank}", f"a rank from 0 to {size - 1}"))
    local = _number(variables, "LOCAL_WORLD_SIZE", size if "LOCAL_RANK" not in variables else -1)
    return ProcessInfo(
        rank, size, _number(variables, "LOCAL_RANK", rank), local, variables.get("MASTER_ADDR") or HOST,
        _number(variables, "MASTER_PORT", PORT), "RANK, WORLD_SIZE", seconds=_timeout(variables),
    )


def _mindspore(variables: Mapping[str, str]) -> ProcessInfo | None:
    role = variables.get("MS_ROLE")
    if role is None or "MS_WORKER_NUM" not in variables:
        return None
    if role not in ("MS_WORKER", "MS_SCHED"):
        raise ValueError(message(f"MS_ROLE={role!r}", "'MS_WORKER' or 'MS_SCHED'"))
    size = _number(variables, "MS_WORKER_NUM")
    rank = _number(variables, "MS_NODE_ID", -1) if role == "MS_WORKER" else -1
    host = variables.get("MS_SCHED_HOST") or HOST
    return ProcessInfo(
        rank, size, _number(variables, "LOCAL_RANK", -1 if rank < 0 else _number(variables, "DEVICE_ID", rank)), -1, host,
        _number(variables, "MS_SCHED_PORT", PORT), "MS_ROLE, MS_WORKER_NUM", "worker" if role == "MS_WORKER" else "scheduler",
        _timeout(variables),
    )


def _timeout(variables: Mapping[str, str]) -> float | None:
    text = variables.get("MS_TOPO_TIMEOUT")
    return None if not text else float(_number(variables, "MS_TOPO_TIMEOUT"))


def _open_mpi(variables: Mapping[str, str]) -> ProcessInfo | None:
    if "OMPI_COMM_WORLD_SIZE" not in variables:
        return None
    size, rank = _number(variables, "OMPI_COMM_WORLD_SIZE"), _number(variables, "OMPI_COMM_WORLD_RANK")
    local_rank, local_size = _number(variables, "OMPI_COMM_WORLD_LOCAL_RANK", rank), _number(variables, "OMPI_COMM_WORLD_LOCAL_SIZE", size)
    job = variables.get("PMIX_NAMESPACE") or variables.get("OMPI_MCA_ess_base_jobid") or ""
    host, port = _mpirun_address(variables, size, local_size, job, "-x MASTER_ADDR=HOST_OF_RANK_0 -x MASTER_PORT=29500")
    source = "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE"
    return ProcessInfo(rank, size, local_rank, local_size, host, port, source, seconds=_timeout(variables))


def _hydra(variables: Mapping[str, str]) -> ProcessInfo | None:
    """Read the variables of MPICH's process manager Hydra, which Intel MPI and MVAPICH also use."""
    size = _number(variables, "PMI_SIZE", 1)
    if size == 1 or ("SLURM_STEP_NUM_TASKS" in variables and "MPI_LOCALNRANKS" not in variables):        # srun --mpi=pmi2
        return None
    rank = _number(variables, "PMI_RANK")
    local_rank, local_size = _number(variables, "MPI_LOCALRANKID", rank), _number(variables, "MPI_LOCALNRANKS", size)
    host, port = _mpirun_address(
        variables,
        size,
        local_size,
        _mpirun_process() if local_size == size else "",
        "-genv MASTER_ADDR HOST_OF_RANK_0 -genv MASTER_PORT 29500",
    )
    return ProcessInfo(rank, size, local_rank, local_size, host, port, "PMI_RANK, PMI_SIZE", seconds=_timeout(variables))


def _mpirun_address(variables: Mapping[str, str], size: int, local_size: int, job: str, options: str) -> tuple[str, int]:
    """Return the rendezvous address of an mpirun job. The job's name determines the port, so that two jobs have different ports."""
    host = variables.get("MASTER_ADDR") or variables.get("MS_SCHED_HOST")
    if host is None and local_size != size:
        error_text = f"mpirun with {size} processes, {local_size} of them here"
        raise ValueError(message(error_text, "MASTER_ADDR: where they meet", hint=f"write mpirun {options} ..."))
    return host or HOST, _port(variables, job)


def _port(variables: Mapping[str, str], job: str) -> int:
    """Return the port that the environment sets, else one derived from the job's name."""
    default = 20000 + zlib.crc32(job.encode()) % 20000 if job else PORT
    return _number(variables, "MASTER_PORT", _number(variables, "MS_SCHED_PORT", default))


def _mpirun_process() -> str:
    """Return the name and id of the ancestor process that mpirun started on this machine, because Hydra has no job name. Else empty."""
    process = os.getppid()
    try:
        while process > 1:
            words = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
            name, rest = words[words.index("(") + 1:words.rindex(")")], words[words.rindex(")") + 1:].split()
            if name.startswith(("hydra", "mpiexec", "mpirun")):
                return f"{name} {process}"
            process = int(rest[1])
    except OSError:
        pass                                                      # /proc exists on Linux only
    return ""


def _slurm(variables: Mapping[str, str]) -> ProcessInfo | None:
    """Read the variables of an srun task. A batch script is a single process for any allocation."""
    size = _number(variables, "SLURM_STEP_NUM_TASKS", 1)
    if size == 1:
        return None
    rank, nodes = _number(variables, "SLURM_PROCID"), variables.get("SLURM_STEP_NODELIST", "")
    is_single_node = variables.get("SLURM_STEP_NUM_NODES") == "1"
    host = variables.get("MASTER_ADDR") or variables.get("MS_SCHED_HOST") or (HOST if is_single_node else _first_node(nodes))
    if not host:
        raise ValueError(message(f"srun with {size} processes and no SLURM_STEP_NODELIST", "MASTER_ADDR: where they meet"))
    port = _port(variables, f"{variables.get('SLURM_JOB_ID', '')}.{variables.get('SLURM_STEP_ID', '')}")
    source = "SLURM_PROCID, SLURM_STEP_NUM_TASKS"
    return ProcessInfo(
        rank, size, _number(variables, "SLURM_LOCALID", rank if is_single_node else -1), size if is_single_node else -1, host, port, source,
        seconds=_timeout(variables),
    )


def _first_node(nodes: str) -> str:
    """Return the first machine of a Slurm list: rack3n01 for `rack[3-5,9]n[01-16],login`."""
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    return re.sub(r"\[(\d*)[^\]]*\]", r"\1", first.group() if first else "")


def _rank_table(variables: Mapping[str, str]) -> ProcessInfo | None:
    name = next((name for name in _TABLES if variables.get(name)), None)
    if name is None:
        return None
    servers = _servers(name, Path(variables[name]))
    size = sum(len(devices) for _, devices in servers)
    if not size:
        raise ValueError(message(f"{name}={variables[name]}: a table without a device", "one device and its rank_id for each process"))
    if size == 1:
        return None
    rank = _number(variables, "RANK_ID")
    for _, devices in servers:
        if rank in devices:
            return ProcessInfo(
                rank, size, devices.index(rank), len(devices), variables.get("MASTER_ADDR") or servers[0][0],
                _number(variables, "MASTER_PORT", _number(variables, "MS_SCHED_PORT", PORT)), f"{name}, RANK_ID",
                seconds=_timeout(variables),
            )
    raise ValueError(message(f"RANK_ID={rank} with {name}={variables[name]}", f"one of the table's {size} ranks"))


def _servers(name: str, path: Path) -> list[tuple[str, list[int]]]:
    """Return the address of each machine in a rank table, with its ranks."""
    try:
        table: Any = json_text.parse(path.read_text(encoding="utf-8"))
        servers = [
            (str(server["server_id"]), [int(device["rank_id"]) for device in server["device"]]) for server in table["server_list"]
        ]
    except OSError as error:
        raise ValueError(message(f"{name}={path}", f"a file that can be read ({error.strerror})")) from None
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(message(
            f"{name}={path}", f"a table with server_list, server_id, device and rank_id ({type(error).__name__}: {error})",
        )) from None
    ranks = sorted(rank for _, devices in servers for rank in devices)
    if ranks != list(range(len(ranks))):
        raise ValueError(message(f"{name}={path}: the ranks {ranks}", f"each of 0 to {len(ranks) - 1} once"))
    return sorted(servers, key=lambda server: min(server[1], default=0))


def _rank_id(variables: Mapping[str, str]) -> ProcessInfo | None:
    size = _number(variables, "RANK_SIZE", 1)
    if size == 1:
        return None
    rank = _number(variables, "RANK_ID")
    return ProcessInfo(
        rank, size, _number(variables, "LOCAL_RANK", _number(variables, "DEVICE_ID", rank)), -1,
        variables.get("MASTER_ADDR") or variables.get("MS_SCHED_HOST") or HOST,
        _number(variables, "MASTER_PORT", _number(variables, "MS_SCHED_PORT", PORT)), "RANK_ID, RANK_SIZE", seconds=_timeout(variables),
    )


def simulated_size() -> int:
    """Return the number of ranks that this process simulates or plans (`torchspore run --simulate N`, `torchspore plan`), else 1."""
    count_text = os.environ.get("TORCHSPORE_SIMULATE") or os.environ.get("TORCHSPORE_PLAN") or ""
    return int(count_text) if count_text.isdigit() else 1
