"""A process that is forked from one that has trained goes on."""
from __future__ import annotations

from pathlib import Path

import pytest
from support import processes

PROGRAM = """
import os, signal
import numpy as np
import mindspore as ms
from mindspore import nn, Tensor
ms.set_context(mode={mode}, runtime_num_threads=2)
net = nn.SequentialCell(nn.Dense(512, 512), nn.ReLU(), nn.Dense(512, 512))
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.01)).set_train()
x = Tensor(np.ones((256, 512), np.float32))
for _ in range(3):
    step(x, x)
expected = net(x).asnumpy()
child = os.fork()
if not child:
    signal.alarm(40)
    assert np.allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    ms.set_context(runtime_num_threads=4)
    step(x, x)
    print("the child is done", flush=True)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("mode", [0, 1])
def test_a_forked_process_computes(tmp_path: Path, mode: int) -> None:
    (tmp_path / "main.py").write_text(PROGRAM.format(mode=mode))
    ran = processes.torchspore("run", "main.py", cwd=tmp_path)
    assert ran.out == "the child is done\n0\n", ran.err
