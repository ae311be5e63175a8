"""On a real GPU: Tensors lie there, training gives the CPU's numbers in both modes, late changes are refused, waiting names the line."""
from __future__ import annotations

from collections.abc import Callable

import pytest
from running import Run

pytestmark = pytest.mark.gpu

TRAIN = """
import numpy as np, mindspore as ms
from mindspore import nn
ms.set_context(mode={mode}, device_target="{device}")
ms.set_seed(1)
net = nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dense(256, 5))
cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Adam(net.trainable_params(), 0.01))
cell.set_train()
rng = np.random.RandomState(0)
for _ in range(5):
    x, y = ms.Tensor(rng.randn(8, 1, 8, 8).astype(np.float32)), ms.Tensor(rng.randint(0, 5, 8).astype(np.int32))
    loss = cell(x, y)
    print(f"{{float(loss):.4f}}")
print(loss.device, net[0].weight.device)
"""


def lines(run: Callable[..., Run], text: str) -> list[str]:
    ended = run("-c", text)
    assert ended.code == 0, ended.err
    return ended.out.splitlines()


@pytest.mark.parametrize("mode", [0, 1])
def test_training_on_the_gpu_gives_the_cpu_s_numbers(run: Callable[..., Run], mode: int) -> None:
    *host, _ = lines(run, TRAIN.format(mode=mode, device="CPU"))
    *device, places = lines(run, TRAIN.format(mode=mode, device="GPU"))
    assert [float(v) for v in device] == pytest.approx([float(v) for v in host], abs=2e-3)
    assert places == "GPU:0 GPU:0"


def test_a_change_of_the_device_after_its_first_use_is_refused(run: Callable[..., Run]) -> None:
    ended = run(
        "-c",
        "import mindspore as ms\nms.set_context(device_target='GPU')\nx = ms.Tensor([1.0]) + 1\nms.set_context(device_target='CPU')\n",
    )
    assert ended.code == 1 and "<string>:3" in ended.err


def test_a_tensor_made_before_the_device_was_chosen_moves(run: Callable[..., Run]) -> None:
    text = (
        "import mindspore as ms\nms.set_context(device_target='CPU')\nx = ms.Tensor([1.0])\n"
        "ms.set_context(device_target='GPU')\nprint((x + ms.Tensor([2.0])).device)\n"
    )
    assert lines(run, text) == ["GPU:0"]


def test_pynative_synchronize_raises_at_the_guilty_line(run: Callable[..., Run]) -> None:
    text = (
        "import mindspore as ms\nfrom mindspore import ops\nms.set_context(device_target='GPU', pynative_synchronize=True)\n"
        "table = ms.Tensor([[1.0], [2.0]])\nops.gather(table, ms.Tensor([7]), 0)\nprint('not reached')\n"
    )
    ended = run("-c", text)
    assert ended.code == 1 and "<string>:5" in ended.err and "not reached" not in ended.out


LEVEL = """
import numpy as np, mindspore as ms
from mindspore import nn
ms.set_context(mode=0, device_target="GPU", jit_config={{"jit_level": "{level}"}})
ms.set_seed(1)
net = nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dense(256, 5))
cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.Momentum(net.trainable_params(), 0.01, 0.9))
cell.set_train()
rng = np.random.RandomState(0)
for _ in range(5):
    x, y = ms.Tensor(rng.randn(8, 1, 8, 8).astype(np.float32)), ms.Tensor(rng.randint(0, 5, 8).astype(np.int32))
    print(f"{{float(cell(x, y)):.4f}}")
"""


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_levels_give_o0_s_numbers_on_the_gpu(run: Callable[..., Run], level: str) -> None:
    plain = [float(line) for line in lines(run, LEVEL.format(level="O0"))]
    assert [float(line) for line in lines(run, LEVEL.format(level=level))] == pytest.approx(plain, abs=2e-3)
