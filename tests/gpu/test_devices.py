"""On a real GPU: training gives the CPU's numbers in both modes, late changes of the device and absent devices are refused."""
from __future__ import annotations

from collections.abc import Callable

import pytest
from support.processes import Run

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


def output_lines(run: Callable[..., Run], text: str) -> list[str]:
    ended = run("-c", text)
    assert ended.code == 0, ended.err
    return ended.out.splitlines()


@pytest.mark.parametrize("mode", [0, 1])
def test_training_on_the_gpu_gives_the_cpu_s_numbers(run: Callable[..., Run], mode: int, device: str) -> None:
    *host, _ = output_lines(run, TRAIN.format(mode=mode, device="CPU"))
    *losses, locations = output_lines(run, TRAIN.format(mode=mode, device="GPU"))
    assert [float(v) for v in losses] == pytest.approx([float(v) for v in host], abs=2e-3)
    assert locations == f"{device} {device}"


def test_a_change_of_the_device_after_its_first_use_is_refused(run: Callable[..., Run]) -> None:
    ended = run(
        "-c",
        "import mindspore as ms\nms.set_context(device_target='GPU')\nx = ms.Tensor([1.0]) + 1\nms.set_context(device_target='CPU')\n",
    )
    assert ended.code == 1 and "<string>:3" in ended.err


def test_a_tensor_created_before_the_device_was_chosen_moves(run: Callable[..., Run], device: str) -> None:
    text = (
        "import mindspore as ms\nms.set_context(device_target='CPU')\nx = ms.Tensor([1.0])\n"
        "ms.set_context(device_target='GPU')\nprint((x + ms.Tensor([2.0])).device)\n"
    )
    assert output_lines(run, text) == [device]


def test_a_device_id_beyond_those_that_are_there(run: Callable[..., Run]) -> None:
    ended = run("-c", "import mindspore as ms\nms.set_context(device_target='GPU', device_id=4000)\nms.Tensor([1.0])\n")
    assert ended.code == 1 and "device_id=4000: this machine has" in ended.err
