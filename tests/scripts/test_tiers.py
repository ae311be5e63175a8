"""The process that compiles while a program runs: what a program sees of it, how it ends, and what it leaves behind."""
from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes import environment

PROGRAM = """
import os, sys, time, numpy as np, torch
open("runs.txt", "a").write("run\\n")                    # no `if __name__ == "__main__"`: who imports this file runs it
import torchspore
torchspore.install()
import mindspore as ms
from mindspore import nn, ops

torch.set_num_threads(1)
ms.set_context(mode=ms.GRAPH_MODE, jit_config={"jit_level": sys.argv[1]})
ms.set_seed(3)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.norm, self.last = nn.Dense(64, 256), nn.Dropout(p=0.3), nn.LayerNorm((256,)), nn.Dense(256, 8)

    def construct(self, x):
        h = ops.gelu(self.first(x)) * 2
        h = self.norm(h + ops.tanh(h) * ops.exp(-h * h) + ops.sigmoid(h) * ops.sin(h))
        return self.last(self.drop(h))

net, rows = Net(), np.random.RandomState(0)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Adam(net.trainable_params(), 1e-3)).set_train()
x, y = ms.Tensor(rows.randn(1024, 64).astype(np.float32)), ms.Tensor(rows.randn(1024, 8).astype(np.float32))
losses, started = [], time.monotonic()
is_done = lambda: len(losses) >= int(sys.argv[2])
while not is_done() and time.monotonic() < started + 500:
    losses.append(float(step(x, y)))
    if len(losses) == 1:
        print("first", flush=True)
    if len(sys.argv) > 3:
        time.sleep(float(sys.argv[3]))                    # the other process has the machine
        if os.path.exists("enough"):
            break
print(losses)
print(ops.standard_normal((2,)))
from torchspore.context import effects
print(effects.notes().get("background compilation"))
print("ended", flush=True)
"""


STARTED: list[subprocess.Popen[str]] = []


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "temporary").mkdir()
    yield tmp_path
    for program in STARTED:
        if program.poll() is None:
            program.kill()
            program.communicate()
    STARTED.clear()


def compiler(folder: Path, text: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def slow_compiler(folder: Path) -> str:
    """A compiler that never ends, and says when it has started."""
    return compiler(folder, f"case \"$*\" in *' -o '*) touch {folder}/works; sleep 300 & wait;; *) echo 12;; esac")


def start(folder: Path, *arguments: str, **extra: str) -> subprocess.Popen[str]:
    settings = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "kernels"), "TORCHSPORE_LOG": "graph", "TMPDIR": str(folder / "temporary"), **extra}
    env = {**environment(settings), **settings}
    env["TORCHSPORE_WAIT"] = "0"
    STARTED.append(subprocess.Popen(
        [sys.executable, "program.py", *arguments], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return STARTED[-1]


def wait_for(condition: object, seconds: float = 400.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


def below(pid: int) -> list[int]:
    """The processes that descend from `pid` and run."""
    results = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                results += [int(entry.name), *below(int(entry.name))]
    return results


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def leftovers(folder: Path) -> list[Path]:
    """Files that a compilation leaves for the time of its run."""
    kernels = [path for path in (folder / "kernels").rglob("*") if re.search(r"\.\d+\.\d+$|\.tmp$", path.name)]
    return [*kernels, *(path for path in (folder / "temporary").rglob("*") if path.is_file())]


@pytest.mark.slow
def test_a_training_switches_and_continues(folder: Path) -> None:
    """The whole way: another interpreter compiles, its kernels are loaded, the program's file runs once, and losses are O0's."""
    program = start(folder, "O1", "100000", "0.2")
    assert program.stderr is not None
    lines = []
    for line in program.stderr:
        lines.append(line)
        if "] tier: " in line and "process" not in line.partition("] tier: ")[2]:
            break
    (folder / "enough").touch()
    out, _ = program.communicate(timeout=60)
    log = "".join(lines)
    assert program.returncode == 0 and (folder / "runs.txt").read_text() == "run\n", log
    assert "'fused kernels, " in lines[-1] and "took over after call" in lines[-1], log
    assert "] load: a kernel for" in log and "took over" in out
    shown = out[out.index("["):].splitlines()
    losses = eval(shown[0])
    assert losses[-1] < losses[0]
    reference = subprocess.run(
        [sys.executable, "program.py", "O0", str(len(losses))], cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)
    expected = reference.stdout[reference.stdout.index("["):].splitlines()
    switch = int(re.search(r"took over after call (\d+)", lines[-1])[1])  # type: ignore[index]
    assert losses[:switch] == eval(expected[0])[:switch]
    assert all(abs(a - b) <= 1e-3 * abs(b) for a, b in zip(losses, eval(expected[0])))
    assert shown[1] == expected[1], "random numbers after the training"


@pytest.mark.slow
def test_the_end_of_the_program_waits_for_nothing_and_leaves_nothing(folder: Path) -> None:
    program = start(folder, "O1", "100000", "0.1", CXX=slow_compiler(folder))
    assert wait_for((folder / "works").exists)
    helpers = below(program.pid)
    assert len(helpers) >= 3
    (folder / "enough").touch()
    started = time.monotonic()
    out, err = program.communicate(timeout=30)
    assert program.returncode == 0 and out.endswith("ended\n") and time.monotonic() - started < 20, err
    assert wait_for(lambda: not any(map(runs, helpers)), 15)
    assert not leftovers(folder) and "Traceback" not in err and "ended (" not in err
    assert "its faster form was not ready when the program ended" in out


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_program_that_is_killed_leaves_nothing(folder: Path, how: signal.Signals) -> None:
    program = start(folder, "O1", "100000", "0.1", CXX=slow_compiler(folder))
    assert wait_for((folder / "works").exists)
    helpers = below(program.pid)
    assert len(helpers) >= 3
    os.kill(program.pid, how)
    program.communicate(timeout=30)
    assert wait_for(lambda: not any(map(runs, helpers)), 15)
    assert not leftovers(folder)


@pytest.mark.slow
def test_a_process_that_is_killed_is_reported_once(folder: Path) -> None:
    program = start(folder, "O1", "100000", "0.1", CXX=slow_compiler(folder))
    assert wait_for((folder / "works").exists)
    (worker,) = [pid for pid in below(program.pid) if "compiler_worker" in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(worker, signal.SIGKILL)
    time.sleep(1)
    (folder / "enough").touch()
    out, err = program.communicate(timeout=30)
    text = "torchspore: the process that compiles graphs in the background ended (SIGKILL); graphs run as at O0."
    assert program.returncode == 0 and err.count(text) == 1 and "stays as at O0: the process that compiles" in out


@pytest.mark.slow
def test_the_process_has_low_priority_and_half_of_the_processors(folder: Path) -> None:
    program = start(folder, "O1", "100000", "0.1", CXX=slow_compiler(folder))
    assert wait_for((folder / "works").exists)
    (worker,) = [pid for pid in below(program.pid) if "compiler_worker" in Path(f"/proc/{pid}/cmdline").read_text()]
    everything = os.sched_getaffinity(program.pid)
    for pid in (worker, *below(worker)):
        assert os.getpriority(os.PRIO_PROCESS, pid) >= 10
        assert len(os.sched_getaffinity(pid)) <= (len(everything) + 1) // 2
        group = Path(f"/proc/{pid}/autogroup")
        if group.exists() and os.getsid(pid) != os.getsid(program.pid):
            assert int(group.read_text().split()[-1]) >= 10


@pytest.mark.slow
def test_without_a_compiler_o0_runs_and_that_is_reported_once(folder: Path) -> None:
    program = start(folder, "O1", "100000", "0.1", CXX="/nowhere/g++")
    assert program.stderr is not None
    lines = []
    for line in program.stderr:
        lines.append(line)
        if "the form" in line or "is the fastest" in line or "took over" in line:
            break
    (folder / "enough").touch()
    program.communicate(timeout=30)
    log = "".join(lines)
    assert program.returncode == 0
    assert log.count("the C++ compiler is missing (g++ or what CXX names); graphs run without them.") == 1


@pytest.mark.slow
def test_a_second_process_starts_with_the_form_of_the_compile_cache(folder: Path) -> None:
    cache = {"MS_COMPILER_CACHE_ENABLE": "1", "MS_COMPILER_CACHE_PATH": str(folder / "cache"), "XDG_CACHE_HOME": str(folder / "key")}
    program = start(folder, "O1", "100000", "0.2", **cache)
    assert program.stderr is not None
    assert any("took over after call" in line for line in program.stderr)
    (folder / "enough").touch()
    program.communicate(timeout=30)
    (folder / "enough").unlink()
    out, err = start(folder, "O1", "3", **cache).communicate(timeout=120)
    assert out.endswith("None\nended\n") and ", as measured before" in err and "] load: a kernel for" in err, err
    assert "] tier:" not in err and "] compile:" not in err
