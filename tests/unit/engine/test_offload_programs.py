"""`memory_offload` in separate processes: with a memory limit, in a killed process, in a forked child."""
from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

ROWS = np.random.RandomState(0).randn(256, 256).astype(np.float32)
WEIGHT = np.random.RandomState(1).randn(256, 256).astype(np.float32) / 16

LIMITED = """
import hashlib, sys
import mindspore as ms
import numpy as np
from mindspore import nn, ops

from torchspore.engine.native import allocator as counter

ms.set_context(max_device_memory="0.008GB", memory_offload=sys.argv[1])
x, weight = np.load("x.npy"), np.load("weight.npy")


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.weight = ms.Parameter(ms.Tensor(weight), name="weight")

    def construct(self, x):
        for _ in range(40):
            x = ops.tanh(ops.matmul(x, self.weight))
        return (x * x).sum()


for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
    ms.set_context(mode=mode)
    net = Net()
    gradient = ms.grad(net, None, net.trainable_params())(ms.Tensor(x))[0].asnumpy()
    print("gradient", hashlib.sha256(gradient.tobytes()).hexdigest(), counter.figures().peak < 0.0081 * 2**30)
"""


def test_a_net_beyond_the_limit_runs(tmp_path: Path) -> None:
    weight = ms.Parameter(Tensor(WEIGHT), name="weight")

    def compute(x: Any) -> Any:
        for _ in range(40):
            x = ops.tanh(ops.matmul(x, weight))
        return (x * x).sum()

    expected = hashlib.sha256(ms.grad(compute, None, [weight])(Tensor(ROWS))[0].asnumpy().tobytes()).hexdigest()
    (tmp_path / "train.py").write_text(LIMITED)
    np.save(tmp_path / "x.npy", ROWS)
    np.save(tmp_path / "weight.npy", WEIGHT)

    def ran(expected_out: str) -> Any:
        words = [sys.executable, "-m", "torchspore", "run", "train.py", expected_out]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=200)

    refused, moving = ran("OFF"), ran("ON")
    assert refused.returncode
    assert "out of memory" in refused.stderr
    assert re.findall("^gradient .*", moving.stdout, re.MULTILINE) == [f"gradient {expected} True"] * 2, moving.stderr
    assert sorted(os.listdir(tmp_path)) == ["train.py", "weight.npy", "x.npy"]


PROGRAM = """
import mindspore as ms
import numpy as np
from mindspore import ops

ms.set_context(mode=ms.PYNATIVE_MODE, memory_offload="ON")
ms.context.set_offload_context({"offload_path": "offload"})


def deep(x):
    for _ in range(16):
        x = ops.tanh(x * 1.1)
    return x.sum()


while True:
    ms.grad(deep)(ms.Tensor(np.ones((256, 256), np.float32)))
"""


def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    with subprocess.Popen([sys.executable, "-m", "torchspore", "run", "train.py"], cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        try:
            folder, until = Path(f"/proc/{process.pid}/fd"), time.monotonic() + 60
            while not any(str(tmp_path / "offload") in _link(path) for path in folder.iterdir()):
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.05)
        finally:
            process.kill()
    assert os.listdir(tmp_path) == ["train.py"]


FORKS = """
import os
import mindspore as ms
from mindspore import nn, ops

ms.set_context(mode=1, memory_offload="ON")
ms.context.set_offload_context({"offload_path": ".", "offload_param": "disk"})
net = nn.Dense(256, 256, weight_init="ones")
adam = nn.Adam(net.trainable_params())
gradients = (ops.ones((256, 256)), ops.ones((256,)))


def state():
    return [p.asnumpy().tobytes() for p in adam.get_parameters()]


adam(gradients)
before = state()
child = os.fork()
if child == 0:
    same = state() == before
    adam(gradients)
    os._exit(0 if same and state() != before else 1)
assert os.waitpid(child, 0)[1] == 0
assert state() == before
"""


def test_a_forked_child_has_separate_state(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FORKS)
    subprocess.run([sys.executable, "-m", "torchspore", "run", "train.py"], cwd=tmp_path, check=True, timeout=60)


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
