"""`_TrainGradAccuStepCell`: the step of a network that computes its batch in parts."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.nn.wrap.cell_wrapper import GradAccumulationCell, _TrainGradAccuStepCell


def _weight_after(step: Any) -> Any:
    net = nn.Dense(4, 2, weight_init="ones", bias_init="zeros")
    parts = GradAccumulationCell(nn.WithLossCell(net, nn.MSELoss()), 2)
    step(parts, nn.SGD(net.trainable_params(), 0.1))(Tensor(np.ones((4, 4), np.float32)), Tensor(np.ones((4, 2), np.float32)))
    return net.weight.asnumpy()


def test_it_updates_as_the_plain_step() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    assert np.array_equal(_weight_after(_TrainGradAccuStepCell), _weight_after(nn.TrainOneStepCell))
    ms.set_context(mode=ms.PYNATIVE_MODE)
