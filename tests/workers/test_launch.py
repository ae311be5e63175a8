"""`torchspore workers` and `torchspore msrun`: real processes, which are all gone at the end."""
from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.processes import environment

from torchspore.cli import grammar, msrun, workers
from torchspore.cli.run import UsageError
from torchspore.distributed.comm import launch

PROGRAM = """
import os, sys, time
import numpy as np
from mindspore import Tensor, communication, ops
communication.init()
rank = communication.get_rank()
total = ops.AllReduce()(Tensor(np.ones(2, np.float32) * (rank + 1)))
print("sum", total.asnumpy().tolist(), os.environ["RANK_ID"], sys.argv[1:], flush=True)
open(f"{rank}.started", "w").write(str(os.getpid()))
kept = os.path.exists("checkpoint")
if "fail" in sys.argv and rank == 1 and not kept:
    open("checkpoint", "w").close()
    raise ValueError("no good")
if "kill" in sys.argv and rank == 1:
    os.kill(os.getpid(), 9)
if "wait" in sys.argv:
    time.sleep(60)
print("again", ops.AllReduce()(Tensor([1.0])).asnumpy().tolist(), flush=True)
"""


def _start(folder: Path, *words: str) -> subprocess.Popen[str]:
    (folder / "train.py").write_text(PROGRAM)
    return subprocess.Popen(
        [sys.executable, "-m", "torchspore", *words], cwd=folder, env=environment(), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )


def _alive(folder: Path) -> list[int]:
    results = []
    for name in folder.glob("*.started"):
        pid = int(name.read_text())
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                results.append(pid)
        except OSError:
            continue
    return results


@pytest.mark.slow
@pytest.mark.sample
def test_two_workers(tmp_path: Path) -> None:
    process = _start(tmp_path, "workers", "-n", "2", "--show", "all", "--log-dir", "logs", "train.py", "a", "-n")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    for rank in range(2):
        text = f"sum [3.0, 3.0] {rank} ['a', '-n']"
        assert f"[{rank}] {text}" in out and text in (tmp_path / "logs" / f"worker_{rank}.log").read_text()


@pytest.mark.slow
def test_the_first_failure_is_reported_first_and_a_restart_goes_on(tmp_path: Path) -> None:
    process = _start(tmp_path, "workers", "-n", "2", "--log-dir", "logs", "train.py", "fail")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert re.search(r"^torchspore workers: rank 1 failed first: ValueError: train\.py:13: no good$", err, re.MULTILINE), err
    os.remove(tmp_path / "checkpoint")
    process = _start(tmp_path, "workers", "-n", "2", "--max-restarts", "1", "--log-dir", "logs", "train.py", "fail")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and "all ranks are restarted (1 of 1)" in err and "again [2.0]" in out, (out, err)
    assert "no good" in (tmp_path / "logs" / "worker_1.attempt_0.log").read_text()


@pytest.mark.slow
@pytest.mark.sample
def test_a_killed_worker(tmp_path: Path) -> None:
    process = _start(tmp_path, "msrun", "--worker_num=2", "--local_worker_num=2", "--join=True", "--master_port=8131", "train.py", "kill")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 137 and "rank 1 failed first: killed by SIGKILL" in err, err
    assert not _alive(tmp_path) and "when rank 1 is gone" in (tmp_path / "worker_0.log").read_text()
    assert "then rank 0: CommunicationError: train.py:18: rank 0 was in AllReduce(sum)" in err, err


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_launcher(tmp_path: Path, sent: signal.Signals) -> None:
    process = _start(tmp_path, "workers", "-n", "2", "train.py", "wait")
    until = time.monotonic() + 100
    while len(list(tmp_path.glob("*.started"))) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(0.2)
    assert len(_alive(tmp_path)) == 2
    process.send_signal(sent)
    process.wait(20)
    time.sleep(0.5)
    assert not _alive(tmp_path)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[sent]
    process.communicate()


def _processes_of(tag: str) -> list[str]:
    """What still runs of a job whose processes have this tag in their environment."""
    results = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and f"TS_TAG={tag}".encode() in (folder / "environ").read_bytes():
                results.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return results


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.6, 1.5, 2.5, 3.5, 5.0, 8.0])
def test_ctrl_c_at_any_time_leaves_nothing(tmp_path: Path, seconds: float) -> None:
    """50 random moments were tried by hand; a terminal's Ctrl-C goes to the whole group, and every other time it comes twice."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "train.py").write_text(PROGRAM)
    shared = set(os.listdir("/dev/shm"))
    process = subprocess.Popen(
        [sys.executable, "-m", "torchspore", "workers", "-n", "2", "train.py", "wait"], cwd=tmp_path, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
        env={**environment(), "TS_TAG": str(tmp_path), "TMPDIR": str(tmp_path / "tmp")},
    )
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    if seconds in (1.5, 3.5, 8.0):
        time.sleep(0.2)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    time.sleep(0.3)
    assert process.returncode in (130, -signal.SIGINT), err              # a shell shows 130 for both; Python chooses while torch is loaded
    assert not _processes_of(str(tmp_path)) and set(os.listdir("/dev/shm")) <= shared
    assert all(name.name.startswith(("torchspore_logs_", "torchinductor")) for name in (tmp_path / "tmp").iterdir())
    assert seconds < 1 or "torchspore workers: ended by SIGINT." in err


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    error = RuntimeError("The server socket has failed to listen on any local network address. port: 8118, EADDRINUSE")
    assert launch._describe_error(error, launch.Job(("a.py",), 2, port=8118)) == (
        "torchspore workers: can't listen at 127.0.0.1:8118: the port is in use.\n\nhint: choose a different --master_port."
    )
    assert launch._describe_error(RuntimeError("Ping failed, invalid value returned from server"), launch.Job(("a.py",), 2, port=8118)) == (
        "torchspore workers: 127.0.0.1:8118 is in use by another program than a torchspore run.\n\nhint: choose a different --master_port."
    )


def test_a_first_machine_that_never_comes_is_reported() -> None:
    job = launch.Job(("a.py",), 2, nodes=2, node=1, port=9, seconds=0.2)
    with pytest.raises(TimeoutError) as caught:
        launch._wait_for_first_machine(job)
    assert launch._describe_error(caught.value, job) == (
        "torchspore workers: not all machines connected to 127.0.0.1:9 within 0.2 s.\n\nhint: --cluster_time_out sets another limit."
    )


def test_an_address_that_does_not_lead_to_the_first_machine_is_reported() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launch._wait_for_first_machine(launch.Job(("a.py",), 2, nodes=2, node=0, port=port, seconds=5.0))
    job = launch.Job(("a.py",), 2, nodes=2, node=0, host="no.such.host", port=port, seconds=0.2)
    with pytest.raises(TimeoutError) as caught:
        launch._wait_for_first_machine(job)
    assert launch._describe_error(caught.value, job) == (
        f"torchspore workers: no.such.host:{port} is unreachable, even from this machine.\n\nhint: --master_addr must be a name or an "
        "address of the machine with --node_rank=0."
    )


def test_torch_2_11_has_no_shutdown_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.distributed.launcher import api

    fields = [(field.name, object, None) for field in dataclasses.fields(api.LaunchConfig) if field.name != "shutdown_timeout"]
    monkeypatch.setattr(api, "LaunchConfig", dataclasses.make_dataclass("LaunchConfig", fields))
    job = launch.Job(("a.py",), 2)
    config = launch._launch_config(job, tmp_path, tmp_path)
    assert config.nproc_per_node == 2 and not hasattr(config, "shutdown_timeout")
    fault = TypeError("LaunchConfig.__init__() got an unexpected keyword argument 'shutdown_timeout'")
    assert launch._describe_error(fault, job) == f"torchspore workers: TypeError: {fault}"


def test_words_of_the_program_belong_to_it() -> None:
    options, program = grammar.split_program(workers.parser(), ["-n", "3", "--show=all", "train.py", "-n", "5"])
    assert (options.count, options.show, program) == (3, "all", ("train.py", "-n", "5"))
    options, program = grammar.split_program(
        msrun.parser(), ["--worker_num=4", "--local_worker_num", "4", "--join", "True", "a.py", "--join", "x"])
    assert (options.worker_num, options.join, program) == (4, "True", ("a.py", "--join", "x"))


@pytest.mark.parametrize(("words", "text"), [
    (["workers", "-n", "0", "a.py"], "torchspore workers -n 0: expected at least 1."),
    (["workers", "-n", "2", "--show", "x", "-c", "1"], "torchspore workers --show x: expected ranks such as 0,2, all or none."),
    (["msrun", "--worker_num", "3", "--local_worker_num", "2", "-c", "1"],
     "torchspore msrun --worker_num 3 --local_worker_num 2: expected the same number of processes on each machine.\n\n"
     "hint: write --local_worker_num 3 for one machine."),
    (["msrun", "--worker_num=2", "--local_worker_num=2", "--node_rank=1", "-c", "1"],
     "torchspore msrun --node_rank 1: expected an int from -1 to 0."),
    (["msrun", "--worker_num=2", "--local_worker_num=2", "--bind_core=9999", "-c", "1"],
     "torchspore msrun --bind_core 9999: expected True, False or cores of this machine such as 0-3;4-7."),
])
def test_what_does_not_fit(capsys: pytest.CaptureFixture[str], words: list[str], text: str) -> None:
    assert {"workers": workers, "msrun": msrun}[words[0]].run(words[1:]) == 2
    assert capsys.readouterr().err.strip() == text


def test_cores_and_ranks() -> None:
    from torchspore.cli.worker_process import cores_of

    assert cores_of("0-2,5") == {0, 1, 2, 5} and workers.ranks_of("-1", 3) == {0, 1, 2} and workers.ranks_of("none", 3) == frozenset()
    with pytest.raises(UsageError):
        workers.ranks_of("a", 3)
    cores = msrun._cores("True", 1)
    assert cores_of(cores[0]) == os.sched_getaffinity(0)


def test_a_worker_that_failed_leaves_without_taking_modules_down(tmp_path: Path) -> None:
    code = """if True:
        import atexit, sys, threading, time
        from torchspore.cli import worker_process as worker

        class Slow:
            def __del__(self):
                open("taken down", "w").close()

        sys.modules["slow"] = Slow()
        atexit.register(lambda: print("at the end"))
        threading.Thread(target=lambda: (time.sleep(0.2), print("a file is written"))).start()
        worker._leave(130)
    """
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert ended.returncode == 130 and ended.stdout.split("\n") == ["a file is written", "at the end", ""], ended
    assert not (tmp_path / "taken down").exists()
