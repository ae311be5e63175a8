"""The recorder of running data: what a program that ended badly leaves, and what `torchspore rdr show` says of it."""
from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import mindspore as ms
import pytest
from support import processes
from support.processes import Run

PROGRAM = """
import ctypes, os, signal, sys, time
import numpy as np, mindspore as ms
from mindspore import nn, ops
ms.set_context(mode=int(sys.argv[2]))
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv, self.flatten, self.dense = nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Dense(256, 10)
    def construct(self, x):
        return self.dense(self.flatten(ops.relu(self.conv(x))))
net = Net()
loss = nn.WithLossCell(net, nn.SoftmaxCrossEntropyWithLogits(True, "mean"))
step = nn.TrainOneStepCell(loss, nn.Momentum(net.trainable_params(), 0.1, 0.9))
x, y = ms.Tensor(np.ones((2, 1, 8, 8), np.float32)), ms.Tensor(np.array([1, 2], np.int32))
for _ in range(3):
    step(x, y)
match sys.argv[1]:
    case "error": step(ms.Tensor(np.ones((2, 1, 9, 8), np.float32)), y)
    case "caught":
        try: ops.matmul(x, y)
        except Exception: sys.exit(3)
    case "memory": ops.ones((1 << 40,), ms.float32)
    case "term": os.kill(os.getpid(), signal.SIGTERM)
    case "kill": os.kill(os.getpid(), signal.SIGKILL)
    case "crash": ctypes.string_at(0)
print("end")
"""
ERRORS = {
    "error": (1, "exception: ValueError: train.py:11: dense(input: Float32[2, 288], weight: Float32[10, 256]"),
    "caught": (3, "exception: TypeError: train.py:21: matmul(input: Float32[2, 1, 8, 8], other: Int32[2]): expected one dtype, got Float32 "
                  "and Int32. [operator MatMul]"),
    "memory": (1, "out of memory: torchspore.errors.OutOfMemory: train.py:23: ones("),
    "term": (-15, "SIGTERM: SIGTERM ended the program at train.py:24"),
    "kill": (-9, "killed: the program ended without a message: SIGKILL (kill -9), another signal without a handler, or os._exit"),
    "crash": (-11, "crash: Segmentation fault at train.py:26"),
}
GRAPH = {"crash", "error", "kill"}


@pytest.fixture
def train(run: Callable[..., Run], tmp_path: Path) -> Callable[..., Run]:
    """Runs the program with the recorder on; records go to `rec`."""
    (tmp_path / "train.py").write_text(PROGRAM)

    def start(how: str, mode: int = 1, **extra: str) -> Run:
        return run("run", "train.py", how, str(mode), extra={"MS_RDR_ENABLE": "1", "MS_RDR_PATH": str(tmp_path / "rec"), **extra})

    return start


def names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "rec" / "rank_0" / "rdr").iterdir())


@pytest.mark.parametrize("how", [how if how in ("error", "crash") else pytest.param(how, marks=pytest.mark.slow) for how in ERRORS])
def test_a_fault_leaves_a_record(
    how: str, train: Callable[..., Run], run: Callable[..., Run], tmp_path: Path, native: None
) -> None:
    code, cause = ERRORS[how]
    ran = train(how, mode=0 if how in GRAPH else 1)
    assert ran.code == code, ran.err
    shown = run("rdr", "show", "rec")
    assert shown.out.startswith(f"likely cause: {cause}"), shown.out[:400]
    assert shown.code == 0
    assert "context\n" in shown.out and "MS_RDR_PATH" in shown.out
    assert "memory    " in shown.out
    stems = {name.rpartition(".")[0].rpartition(".")[0] for name in names(tmp_path)}
    assert {"RUNTIME_FRAMEWORK.operators", "RUNTIME_FRAMEWORK.mem_address_list", "TORCHSPORE.python_stacks", "TORCHSPORE.versions"} <= stems
    assert "_fused_sgd_  (Float32[" in shown.out if how != "error" else "aten::linear  (Float32[2, 288], Float32[10, 256]" in shown.out
    if how in GRAPH:
        assert {"PIPELINE.00_bootstrap", "PIPELINE.08_execute", "SESSION.graph_build.0", "SESSION.graph_exec_order.0"} <= stems
        order = next(name for name in names(tmp_path) if name.startswith("SESSION.graph_exec_order.0."))
        text = (tmp_path / "rec" / "rank_0" / "rdr" / order).read_text()
        assert text.startswith("================== execution order ==================\nexecution_order size: ")
        assert "Default/network-WithLossCell/_backbone-Net/conv-Conv2d" in text
    assert all(path.stat().st_mode & 0o777 == 0o400 for path in (tmp_path / "rec" / "rank_0" / "rdr").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("case", ["while a profile is taken", "before the native watch is built"])
def test_operators_are_seen(case: str, train: Callable[..., Run], tmp_path: Path, native: None) -> None:
    if case == "while a profile is taken":
        more = "ms.set_context(enable_profiling=True, profiling_options='{\"output\": \"prof\", \"training_trace\": \"on\"}')\n"
        (tmp_path / "train.py").write_text(PROGRAM.replace("class Net", more + "class Net", 1))
        train("term")
    else:
        train("term", XDG_CACHE_HOME=str(tmp_path / "empty"))
    text = next((tmp_path / "rec/rank_0/rdr").glob("*.operators.*")).read_text().lower()
    assert "conv" in text and ("relu" in text or "clamp" in text) and "torchspore::cell" not in text, text[-3000:]


def test_a_normal_end_leaves_nothing_in_mode_1_and_a_record_in_mode_2(train: Callable[..., Run], tmp_path: Path) -> None:
    quiet = {"TORCHSPORE_NO_NATIVE": "1"}
    assert train("nothing", **quiet).out == "end\n"
    assert not (tmp_path / "rec").exists()
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "torchspore", "run", "train.py", "nothing", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
            env=processes.environment({"MS_RDR_ENABLE": "1", "MS_RDR_MODE": "2", "MS_RDR_PATH": str(tmp_path / "rec"), **quiet}),
        )
        for _ in range(2)
    ]
    assert [process.communicate(timeout=100)[0] for process in both] == ["end\n", "end\n"]
    causes = [json.loads((tmp_path / "rec/rank_0/rdr" / name).read_text()) for name in names(tmp_path) if ".cause." in name]
    assert len({cause["pid"] for cause in causes}) == len(causes) == 2      # two processes, one directory: each has its own time
    assert {cause["kind"] for cause in causes} == {"normal end"}


def test_a_directory_that_cannot_be_written_changes_nothing(train: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = train("error", MS_RDR_PATH=str(tmp_path / "file" / "x"), TORCHSPORE_NO_NATIVE="1")
    assert ran.code == 1
    assert ran.err.count("can't be written completely") == 1
    assert "ValueError: train.py:11: dense(" in ran.err


def test_wrong_members_are_named_and_keep_their_defaults(tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps({"rdr": {"enable": "yes", "mode": 7, "path": "here", "modus": 1}, "sys": [], "mem_Reuse": False}))
    before = ms.get_context("env_config_path")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ms.set_context(env_config_path=str(path))
    try:
        from torchspore.context.store import STORE

        texts = "\n".join(str(warning.message) for warning in caught)
        for part in ("{\"rdr\": {\"enable\": \"yes\"}}: expected True or False",
                     "rdr.enable stays at False.", "rdr.mode stays at 1.", "rdr.path stays at './'.",
                     'hint: write {"rdr": {"mode": 2}}.', "sys: expected an object, got a list; it is ignored.",
                     "there is no member rdr.modus; it is ignored.\n\nhint: did you mean rdr.mode?"):
            assert part in texts, texts
        assert [STORE.get(f"env_config_path.{key}") for key in ("rdr.enable", "rdr.mode", "rdr.path", "sys.mem_reuse")] == [
            False, 1, "./", False]
        path.write_text('{"mem_Reuse": false, "sys": {"mem_reuse": true}}')
        with pytest.raises(ValueError, match=r"mem_Reuse and sys\.mem_reuse are two names of one member; write it once"):
            ms.set_context(env_config_path=str(path))
    finally:
        path.write_text("{}")
        ms.set_context(env_config_path=before or str(path))


def test_without_a_compiler_python_notes_operators(train: Callable[..., Run], run: Callable[..., Run]) -> None:
    assert train("caught", TORCHSPORE_NO_NATIVE="1").code == 3
    shown = run("rdr", "show", "--operators", "60", "rec").out
    assert shown.startswith(f"likely cause: {ERRORS['caught'][1]}")
    assert "  conv2d  (Float32[2, 1, 8, 8], Float32[4, 1, 3, 3])\n" in shown
    assert "  matmul  (Float32[2, 1, 8, 8], Int32[2])\n" in shown
