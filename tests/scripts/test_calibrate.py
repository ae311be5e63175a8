"""`torchspore calibrate` measures this machine; `torchspore plan --machine` predicts with it."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [str(Path(sys.executable).parent / "torchspore")]
PROGRAM = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.product = ops.MatMul().shard(((8, 1), (1, 1)))
        self.weight = ms.Parameter(ms.Tensor(np.ones((64, 64), np.float32)), name="w")

    def construct(self, x):
        return self.product(x, self.weight).sum()


net = Net()
nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))(ms.Tensor(np.ones((64, 64), np.float32)))
"""


def _run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, env={**os.environ, **environment}, check=False)


def test_a_plan_uses_the_measured_speeds(tmp_path: Path) -> None:
    ended = _run("calibrate", "--processes", "2", XDG_CACHE_HOME=str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    file = tmp_path / "torchspore" / "machine.json"
    measured = json.loads(file.read_text())
    assert all(value > 0 for value in measured.values()) and 1e6 < measured["bandwidth"] < 1e12 and measured["latency"] < 1
    assert str(file) in ended.stdout

    program = tmp_path / "split.py"
    program.write_text(PROGRAM)
    plan = _run("plan", "--devices", "8", "--machine", "measured", str(program), XDG_CACHE_HOME=str(tmp_path))
    assert plan.returncode == 0, plan.stderr
    assert f"at {measured['bandwidth'] / 1e9:.4g} GB/s" in plan.stdout and "a step takes" in plan.stdout
    card = _run("plan", "--devices", "8", "--machine", "h100", str(program))
    assert "at 50 GB/s and 10 us an exchange, 450 GB/s and 5 us among 8 devices, 989 TFLOP/s and 3350 GB/s of memory" in card.stdout


@pytest.mark.parametrize("words,text", [
    (["calibrate", "--processes", "1"], "calibrate --processes 1: expected a number from 2 to 64"),
    (["calibrate", "--out", "/no/folder/machine.json"], "expected a file in an existing folder"),
    (["calibrate", "--fast"], "calibrate --fast: no such option"),
    (["plan", "--machine", "h200", "split.py"], "expected h100, a100, ascend910, measured (after torchspore calibrate), or a JSON file"),
])
def test_wrong_options_are_refused(words: list[str], text: str) -> None:
    ended = _run(*words)
    assert ended.returncode == 2 and text in ended.stderr and not ended.stdout
