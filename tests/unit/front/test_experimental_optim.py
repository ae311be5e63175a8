"""Optimizers of `mindspore.experimental.optim` and their schedulers, where MindSpore 2.10 gives no answer or another."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn
from mindspore.experimental import optim
from mindspore.experimental.optim import lr_scheduler

GRADIENTS = ([0.5, 1.0], [-0.2, 0.3], [0.1, -2.0])


def parameter(name="w"):
    return Parameter(Tensor([1.0, -2.0]), name=name)


def test_amsgrad_of_experimental_adam(mode: int) -> None:
    expected_parameter = parameter()
    optimizer = optim.Adam([expected_parameter], 0.1, (0.8, 0.9), 0.1, amsgrad=True)
    value, m, v, top = np.array([1.0, -2.0]), 0.0, 0.0, np.zeros(2)
    for step, gradient in enumerate(GRADIENTS, 1):
        optimizer((Tensor(gradient),))
        g = np.array(gradient)
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        top = np.maximum(top, v)
        value = value - 0.1 * np.sqrt(1 - 0.9**step) / (1 - 0.8**step) * m / (np.sqrt(top) + 0.1)
        np.testing.assert_allclose(expected_parameter.asnumpy(), value, rtol=1e-5)


def test_a_training_loop_with_a_scheduler(mode: int) -> None:
    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    optimizer = optim.SGD(net.trainable_params(), lr=0.1)
    scheduler = lr_scheduler.StepLR(optimizer, 1, 0.1)
    step = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
    for expected in (0.9, 0.89, 0.889):
        _, gradients = step(Tensor([[1.0, 1.0]]))
        optimizer(gradients)
        scheduler.step()
        np.testing.assert_allclose(net.weight.asnumpy(), [[expected] * 2], rtol=1e-5)
    assert [round(float(rate), 6) for rate in scheduler.get_last_lr()] == [1e-4]


def test_groups_are_shown_and_added() -> None:
    optimizer = optim.SGD([parameter()], lr=0.5)
    optimizer.add_param_group({"params": [parameter("v")], "lr": 0.25})
    assert str(optimizer).splitlines()[:2] == ["SGD (", "Parameter Group 0"] and "    lr: 0.25" in str(optimizer)
    assert [float(rate) for rate in optimizer.lrs] == [0.5, 0.25] and len(optimizer.parameters) == 2


def test_a_scheduler_goes_to_a_named_epoch() -> None:
    optimizer = optim.SGD([parameter()], lr=1.0)
    scheduler = lr_scheduler.MultiStepLR(optimizer, [2, 4], 0.5)
    scheduler.step(5)
    assert float(optimizer.lrs[0]) == 0.25 and scheduler.last_epoch == 5


def test_warm_restarts_go_far_at_once() -> None:
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD([parameter()], lr=1.0), 4)
    scheduler.step(4 * 10**12 + 2)
    assert (scheduler.T_cur, scheduler.T_i, scheduler.last_epoch) == (2, 4, 4 * 10**12 + 2)
    assert float(scheduler.get_last_lr()[0]) == 0.5


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: optim.Adam(3), TypeError, "Adam(params=int): expected a list of Parameters or of groups."),
    (lambda: optim.Adam([parameter()], -1.0), ValueError, "Adam(lr=-1.0): expected a number from 0 on."),
    (lambda: optim.Adam([parameter()], betas=(1.0, 0.5)), ValueError, "Adam(betas=(1.0, 0.5)): expected numbers below 1."),
    (lambda: optim.SGD([parameter()] * 2, 0.1), ValueError, "SGD: a Parameter occurs twice."),
    (lambda: optim.SGD([parameter()], 0.1)(()), ValueError, "SGD: expected 1 gradients, one for each Parameter, got 0."),
    (lambda: lr_scheduler.StepLR(nn.SGD([parameter()], 0.1), 2), TypeError,
     "StepLR(optimizer=SGD): expected an optimizer of mindspore.experimental.optim."
     "\n\nhint: those of mindspore.nn take a schedule as their learning_rate."),
    (lambda: lr_scheduler.ConstantLR(optim.SGD([parameter()], 0.1), 2.0), ValueError,
     "ConstantLR(factor=2.0): expected a number from 0 to 1."),
])
def test_messages(call, kind, text: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text


def test_bases_name_what_a_program_defines() -> None:
    with pytest.raises(NotImplementedError, match="expected a method construct"):
        optim.Optimizer([parameter()], {"lr": 0.1})(())
    with pytest.raises(NotImplementedError, match=r"expected a method get_lr\(self\)"):
        lr_scheduler.LRScheduler(optim.SGD([parameter()], 0.1))


def test_an_attribute_of_another_class_of_this_name_is_not_promised() -> None:
    with pytest.raises(AttributeError, match=r"^'SGD' object has no attribute 'assignadd'\.$"):
        optim.SGD([parameter()], 0.1).assignadd  # noqa: B018
