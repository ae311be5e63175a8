"""The defaults of layers, which are those of MindSpore 2.10 and not torch's."""
from __future__ import annotations

import inspect
import math

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn


def default(cls: type, name: str) -> object:
    return inspect.signature(cls).parameters[name].default


@pytest.mark.parametrize(("cls", "name", "expected"), [
    (nn.Conv2d, "pad_mode", "same"), (nn.Conv2d, "has_bias", False), (nn.LayerNorm, "epsilon", 1e-7), (nn.BatchNorm2d, "momentum", 0.9),
    (nn.GELU, "approximate", True), (nn.SoftmaxCrossEntropyWithLogits, "reduction", "none"), (nn.TrainOneStepCell, "sens", None),
    (nn.BCELoss, "reduction", "mean"), (nn.Dropout, "keep_prob", 0.5), (nn.Adam, "eps", 1e-8), (nn.AdamWeightDecay, "eps", 1e-6),
])
def test_a_default(cls: type, name: str, expected: object) -> None:
    assert default(cls, name) == expected


def test_weights_start_he_uniform() -> None:
    ms.set_seed(1)
    bound = math.sqrt(6 / ((1 + 5) * 400))
    for weight in (nn.Dense(400, 300).weight, nn.Conv2d(16, 300, 5).weight):
        values = weight.asnumpy()
        assert abs(values).max() <= bound and values.std() == pytest.approx(bound / math.sqrt(3), rel=0.02)
    bias = nn.Dense(400, 3000).bias.asnumpy()
    assert abs(bias).max() <= 1 / 20 and bias.std() == pytest.approx(1 / 20 / math.sqrt(3), rel=0.05)


def test_convolution_keeps_the_size(mode: int) -> None:
    x = Tensor(np.ones((1, 1, 5, 5), np.float32))
    assert nn.Conv2d(1, 2, 3)(x).shape == (1, 2, 5, 5)
    assert nn.Conv2d(1, 2, 3, stride=2)(x).shape == (1, 2, 3, 3)


def test_batch_norm_keeps_nine_tenths_and_an_unbiased_variance(mode: int) -> None:
    norm = nn.BatchNorm1d(1).set_train()
    norm(Tensor(np.array([[0.0], [2.0]], np.float32)))
    assert norm.moving_mean.asnumpy().tolist() == pytest.approx([0.1])
    assert norm.moving_variance.asnumpy().tolist() == pytest.approx([0.9 + 0.1 * 2])


def test_the_first_argument_of_dropout_is_the_share_that_stays(mode: int) -> None:
    ms.set_seed(3)
    x = Tensor(np.ones(10_000, np.float32))
    kept, dropped = nn.Dropout(0.9).set_train()(x), nn.Dropout(p=0.9).set_train()(x)
    assert (kept.asnumpy() != 0).mean() == pytest.approx(0.9, abs=0.02)
    assert (dropped.asnumpy() != 0).mean() == pytest.approx(0.1, abs=0.02)
    assert kept.asnumpy().max() == pytest.approx(1 / 0.9)


def test_gelu_is_the_tanh_form(mode: int) -> None:
    x = 1.3
    expected = 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    assert float(nn.GELU()(Tensor(x))) == pytest.approx(expected, rel=1e-6)


def test_the_loss_scale_argument_of_a_training_step(mode: int) -> None:
    net = nn.Dense(1, 1, weight_init="ones", has_bias=False)

    class Loss(nn.Cell):
        def __init__(self):
            super().__init__()
            self.net = net

        def construct(self, x):
            return self.net(x)

    step = nn.TrainOneStepCell(Loss(), nn.SGD(net.trainable_params(), 0.1), sens=10.0)
    step(Tensor([[1.0]]))
    assert float(net.weight) == pytest.approx(0, abs=1e-6)
