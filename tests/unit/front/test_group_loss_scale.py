"""`boost.GroupLossScaleManager`: each group of layers has a loss scale of its own, by hand; MindSpore has it on Ascend alone."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Model, Tensor, boost, nn
from mindspore import dataset as ds

CONFIG = {"boost": {"mode": "manual", "loss_scale_group": True}}
X, Y = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32), np.array([[1.0], [0.0]], np.float32)


@pytest.fixture(autouse=True)
def _no_boost_after():
    yield
    boost.AutoBoost("O0", {"boost": {"mode": "disable_all"}})


class Net(nn.Cell):
    def __init__(self, manager):
        super().__init__()
        self.first, self.second, self.manager = nn.Dense(2, 2, has_bias=False), nn.Dense(2, 1, has_bias=False), manager
        self.first.weight.set_data(Tensor([[0.5, -0.5], [1.0, 0.25]], ms.float32))
        self.second.weight.set_data(Tensor([[1.0, -2.0]], ms.float32))

    def construct(self, x):
        x = self.manager(x, 0, 1)
        x = self.manager(self.first(x), 1, 2)
        return self.manager(self.second(x), 2, 3)


def trained(scale):
    manager = boost.GroupLossScaleManager(scale, [])
    net = Net(manager)
    manager.loss_scale_groups = [[net.first.weight], [net.second.weight]]
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), loss_scale_manager=manager, boost_level="O1",
                  boost_config_dict=CONFIG)
    model.train(1, ds.NumpySlicesDataset((X, Y), shuffle=False).batch(2), dataset_sink_mode=False)
    return net, manager


def plain():
    net = Net(lambda x, *_: x)
    loss = nn.MSELoss()
    grads = ms.grad(lambda x, y: loss(net(x), y), None, net.trainable_params())(Tensor(X), Tensor(Y))
    return [(weight.asnumpy(), grad.asnumpy()) for weight, grad in zip(net.trainable_params(), grads)]


def test_groups_have_separate_scales(mode: int) -> None:
    net, manager = trained([256.0, 4.0])
    for parameter, (weight, grad) in zip(net.trainable_params(), plain()):
        np.testing.assert_allclose(parameter.asnumpy(), weight - 0.1 * grad / 2**0.001, rtol=1e-6)
    np.testing.assert_allclose([scale.asnumpy() for scale in manager.dynamic_loss_scale], [1, 256 * 2**0.001, 4 * 2**0.001, 1], rtol=1e-6)


def test_an_overflow_lowers_the_scale_of_its_group(mode: int) -> None:
    net, manager = trained([3e38, 4.0])
    for parameter, (weight, _) in zip(net.trainable_params(), plain()):
        np.testing.assert_array_equal(parameter.asnumpy(), weight)
    np.testing.assert_allclose([scale.asnumpy() for scale in manager.dynamic_loss_scale], [1, 3e38 * 2**-0.5, 4 * 2**0.001, 1], rtol=1e-6)


def test_misfits_are_reported() -> None:
    manager = boost.GroupLossScaleManager(4.0, [])
    net = Net(manager)
    step = [net, nn.SGD(net.trainable_params(), 0.1)]
    boost.AutoBoost("O1", CONFIG)
    with pytest.raises(ValueError) as caught:
        boost.BoostTrainOneStepWithLossScaleCell(*step, manager)
    assert str(caught.value) == (
        "GroupLossScaleManager(loss_scale_groups=...): 'first.weight' stands in 0 of its groups: expected each Parameter of the optimizer "
        "in one.\n\nhint: set loss_scale_groups before the Model."
    )
    with pytest.raises(TypeError, match="with 'loss_scale_group': expected a GroupLossScaleManager, got Tensor"):
        boost.BoostTrainOneStepWithLossScaleCell(*step, Tensor(4.0))
    boost.AutoBoost("O0", {"boost": {"mode": "disable_all"}})
    with pytest.raises(ValueError, match="expected boost's 'loss_scale_group'"):
        boost.BoostTrainOneStepWithLossScaleCell(*step, manager)
