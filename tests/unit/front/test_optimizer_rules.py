"""Where MindSpore's optimizers are not torch's: eps, decay by name, rates by step, and where ours differ from 2.10 on purpose."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn


def steps(make, value, gradient, count=1, name="w"):
    """The Parameter's values after each of `count` steps with one gradient."""
    parameter = Parameter(Tensor(value, ms.float32), name=name)
    optimizer, seen = make([parameter]), []
    for _ in range(count):
        optimizer((Tensor(gradient, ms.float32),))
        seen.append(parameter.asnumpy().copy())
    return np.array(seen)


def test_adam_adds_eps_after_the_correction(mode: int) -> None:
    result = steps(lambda p: nn.Adam(p, 1.0, eps=1.0), [0.0], [1.0])
    np.testing.assert_allclose(result, [[-0.03065324]], rtol=1e-5)


def test_adam_weight_decay_corrects_nothing(mode: int) -> None:
    result = steps(lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.0), [0.0], [1.0])
    np.testing.assert_allclose(result, [[-0.1 * 0.1 / (np.sqrt(0.001) + 1e-6)]], rtol=1e-4)


def test_names_with_beta_and_gamma_do_not_decay(mode: int) -> None:
    named = [Parameter(Tensor([1.0]), name=name) for name in ("dense.weight", "bn.gamma", "bn.beta")]
    optimizer = nn.Momentum(named, 0.1, 0.9, weight_decay=0.5)
    optimizer(tuple(Tensor([0.0]) for _ in named))
    np.testing.assert_allclose([float(p) for p in named], [0.95, 1, 1], rtol=1e-6)
    assert optimizer.decay_flags == (True, False, False)


def test_groups_decay_as_they_say(mode: int) -> None:
    weight, gamma = Parameter(Tensor([1.0]), name="weight"), Parameter(Tensor([1.0]), name="gamma")
    optimizer = nn.SGD([{"params": [gamma], "weight_decay": 0.5, "lr": 0.2}, {"params": [weight]}], 0.1)
    optimizer((Tensor([0.0]), Tensor([0.0])))
    assert float(gamma) == pytest.approx(0.9) and float(weight) == 1


@pytest.mark.parametrize("rates", [[0.1, 0.2, 0.3], Tensor([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3], np.float32)])
def test_rates_are_read_before_the_step_is_counted(rates: object, mode: int) -> None:
    result = steps(lambda p: nn.SGD(p, rates), [1.0], [1.0], 4)
    np.testing.assert_allclose(result[:, 0], [0.9, 0.7, 0.4, 0.1], atol=1e-6)


class ByStep(nn.learning_rate_schedule.LearningRateSchedule):
    def construct(self, global_step):
        return (global_step.astype(ms.float32) + 1) * 0.1


def test_a_schedule_is_asked_before_the_step_is_counted(mode: int) -> None:
    result = steps(lambda p: nn.SGD(p, ByStep()), [1.0], [1.0], 3)
    np.testing.assert_allclose(result[:, 0], [0.9, 0.7, 0.4], atol=1e-6)


def test_the_loss_scale_divides_the_gradients(mode: int) -> None:
    result = steps(lambda p: nn.Momentum(p, 0.1, 0.9, loss_scale=100.0), [1.0], [100.0])
    np.testing.assert_allclose(result, [[0.9]], rtol=1e-6)


@pytest.mark.parametrize("make", [
    lambda p: nn.Momentum(p, 0.1, 0.9, use_nesterov=True), lambda p: nn.SGD(p, 0.1, 0.9, nesterov=True),
], ids=["Momentum", "SGD"])
def test_nesterov_follows_the_documented_formula(make: object, mode: int) -> None:
    value, moment, expected = 1.0, 0.0, []
    for _ in range(3):
        moment = 0.9 * moment + 1
        value -= 0.1 * (1 + 0.9 * moment)
        expected.append(value)
    np.testing.assert_allclose(steps(make, [1.0], [1.0], 3)[:, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(2, 2), (2, 16), (1, 2, 1, 2)])
def test_gradients_of_every_shape_are_centralized(shape: tuple[int, ...], mode: int) -> None:
    gradient = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    result = steps(lambda p: nn.Momentum([{"params": p, "grad_centralization": True}], 0.1, 0.0), np.zeros(shape), gradient)
    expected = -0.1 * (gradient - gradient.mean(tuple(range(1, len(shape))), keepdims=True))
    np.testing.assert_allclose(result[0], expected, atol=1e-6)


def test_the_global_step_counts(mode: int) -> None:
    parameter = Parameter(Tensor([1.0]), name="w")
    optimizer = nn.SGD([parameter], 0.1)
    for _ in range(3):
        optimizer((Tensor([1.0]),))
    assert optimizer.global_step.asnumpy().tolist() == [3] and optimizer.global_step.dtype == ms.int32


@pytest.mark.parametrize("make", [
    lambda p: nn.Adam(p, 0.1), lambda p: nn.SGD(p, 0.1), lambda p: nn.Momentum(p, 0.1, 0.9), lambda p: nn.AdamWeightDecay(p, 0.1),
])
def test_state_counts_as_trainable(make: object, mode: int) -> None:
    # As seen in 2.10: trainable_params() of a TrainOneStepCell lists the optimizer's state too.
    net = nn.Dense(2, 1)
    step = nn.TrainOneStepCell(net, make(net.trainable_params()))
    assert [p.name for p in step.trainable_params()] == [p.name for p in step.get_parameters()]
    assert len(step.trainable_params()) > 3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["SGD", "Momentum"])
def test_descent_without_momentum_moves_every_weight_of_half_precision(dtype: str, kind: str) -> None:
    weight = ms.Parameter(ms.Tensor(np.ones(40, np.float32)).astype(getattr(ms, dtype)), name="weight")
    optimizer = ms.nn.SGD([weight], 0.5) if kind == "SGD" else ms.nn.Momentum([weight], 0.5, 0.0)
    optimizer((ms.Tensor(np.ones(40, np.float32)).astype(getattr(ms, dtype)),))
    assert weight.astype(ms.float32).asnumpy().tolist() == [0.5] * 40


@pytest.mark.parametrize("make", [nn.Adam, nn.AdamWeightDecay, lambda p: nn.SGD(p, 0.1, momentum=0.9), lambda p: nn.Momentum(p, 0.1, 0.9)])
def test_a_state_of_another_shape_is_not_written_beyond(make: object, mode: int) -> None:
    weight = Parameter(Tensor(np.ones(3, np.float32)), name="w")
    optimizer = make([weight])
    weight.set_data(Tensor(np.ones(300, np.float32)), slice_shape=True)
    with pytest.raises(ValueError, match=r"an optimizer's state of shape \[3\]: expected the Parameter's shape, \[300\]\."):
        optimizer((Tensor(np.ones(300, np.float32)),))
    assert weight.asnumpy().tolist() == [1] * 300


@pytest.mark.parametrize("make", [nn.SGD, nn.Adam, lambda p: nn.Momentum(p, 0.1, 0.9), nn.Adagrad, nn.FTRL, nn.RMSProp])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (1, 3)])
def test_a_gradient_has_its_parameters_shape(make: object, shape: tuple[int, ...], mode: int) -> None:
    weights = [Parameter(Tensor(np.ones(3, np.float32)), name=name) for name in "vw"]
    optimizer = make(weights)
    with pytest.raises(ValueError, match="the gradient of 'w' with shape "):
        optimizer((Tensor(np.ones(3, np.float32)), Tensor(np.ones(shape, np.float32))))
    assert [w.asnumpy().tolist() for w in weights] == [[1, 1, 1]] * 2


def grouped(rate: object, other: object = None, default: object = 0.5) -> nn.Optimizer:
    parameters = [Parameter(Tensor([1.0]), name=name) for name in "abc"]
    return nn.Momentum(
        [{"params": parameters[:2], "lr": rate}, {"params": parameters[2:], **({} if other is None else {"lr": other})}], default, 0.9,
    )


def test_rates_of_groups_are_a_tuple(mode: int) -> None:
    optimizer = grouped(0.1)
    assert [rate.name for rate in optimizer.learning_rate] == ["learning_rate_group_0"] * 2 + ["learning_rate"]
    assert [parameter.name for parameter in optimizer.get_parameters()][:3] == ["global_step", "learning_rate_group_0", "learning_rate"]
    assert "learning_rate" not in [parameter.name for parameter in grouped(0.1, 0.2).get_parameters()]
    optimizer.learning_rate[0].set_data(Tensor(1.0))
    optimizer((Tensor([1.0]),) * 3)
    assert [float(parameter) for parameter in optimizer.parameters] == [0.0, 0.0, 0.5]


def test_rates_of_groups_by_step(mode: int) -> None:
    optimizer = grouped([0.1, 0.2], default=0.5)
    assert [rate.learning_rate.asnumpy().tolist() for rate in optimizer.learning_rate][1:] == [np.float32([0.1, 0.2]).tolist(), 0.5]
    rates = optimizer.get_lr_parameter(list(optimizer.parameters))
    assert [rate.name for rate in rates] == ["learning_rate_group_0"] * 2 + ["learning_rate"]
    for _ in range(2):
        optimizer((Tensor([1.0]),) * 3)
    np.testing.assert_allclose([float(parameter) for parameter in optimizer.parameters], [0.52, 0.52, -0.45], rtol=1e-5)


def test_groups_with_other_numbers_of_rates_or_common_parameters() -> None:
    for arguments in (([0.1, 0.2], [0.1]), ([0.1, 0.2], None, [0.1, 0.2, 0.3])):
        with pytest.raises(ValueError, match="the Tensor type dynamic learning rate in group must be the same size"):
            grouped(*arguments)
    parameter = Parameter(Tensor([1.0]), name="w")
    with pytest.raises(RuntimeError, match="the w parameter already exists, it does not support repeated setting"):
        nn.Adam([{"params": [parameter], "lr": 0.1}, {"params": [parameter]}])


def test_options_of_adam_that_exclude_each_other(mode: int) -> None:
    parameter = Parameter(Tensor([1.0]), name="w")
    with pytest.raises(ValueError, match="For 'Adam', 'use_lazy' and 'use_offload' can not both be True"):
        nn.Adam([parameter], use_lazy=True, use_offload=True)
    for options in ({"use_lazy": True}, {"use_offload": True}):
        with pytest.raises(ValueError, match="For lazy Adam and Adam with offload, there is no parameter named 'use_amsgrad'"):
            nn.Adam([parameter], use_amsgrad=True, **options)
    assert nn.Adam([parameter], use_offload=True).use_offload
    offloaded = steps(lambda p: nn.Adam(p, 0.1, use_offload=True), [1.0], [0.5], 3)
    np.testing.assert_array_equal(offloaded, steps(lambda p: nn.Adam(p, 0.1), [1.0], [0.5], 3))


def test_parameters_cannot_be_none() -> None:
    for call in (lambda: nn.SGD(None), lambda: ms.experimental.optim.Adam(None)):
        with pytest.raises(ValueError, match="For 'Optimizer', the argument parameters can not be None"):
            call()
