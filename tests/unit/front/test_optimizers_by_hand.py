"""Optimizers that MindSpore 2.10 has no kernel for on the CPU, against the formulas in NumPy."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

START = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)
GRADIENTS = [np.array([[0.5, 1.0], [-1.0, 0.25]], np.float32), np.array([[-0.5, 1.0], [2.0, 0.25]], np.float32)]


def run(make, value=START, name="weight"):
    parameter = Parameter(Tensor(value), name=name)
    optimizer = make([parameter])
    for gradient in GRADIENTS:
        optimizer((Tensor(gradient),))
    return parameter.asnumpy()


def lamb(value, rate, decay):
    m = v = np.zeros_like(value)
    for step, g in enumerate(GRADIENTS, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        expected = m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-6) + decay * value
        length = np.linalg.norm(value)
        value = value - rate * (length / np.linalg.norm(expected) if length else 1.0) * expected
    return value


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lamb(mode: int, decay: float) -> None:
    result = run(lambda p: nn.Lamb(p, 0.1, weight_decay=decay))
    np.testing.assert_allclose(result, lamb(START, 0.1, decay), rtol=1e-4)


def test_lamb_steps_from_zero(mode: int) -> None:
    """A Parameter of length 0 takes the step as it is."""
    result = run(lambda p: nn.Lamb(p, nn.PolynomialDecayLR(0.1, 0.0999999, 1000, 1.0)), np.zeros((2, 2), np.float32))
    np.testing.assert_allclose(result, lamb(np.zeros((2, 2)), 0.1, 0.0), rtol=1e-4)


def test_lamb_keeps_its_state_by_name() -> None:
    optimizer = nn.Lamb([Parameter(Tensor(START), name="w")], 0.1)
    assert [parameter.name for parameter in optimizer.get_parameters()] == ["global_step", "learning_rate", "w", "lamb_m.w", "lamb_v.w"]


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("scale", [1.0, 8.0])
def test_lars(mode: int, clip: bool, scale: float) -> None:
    def make(parameters):
        inner = nn.Momentum(parameters, 0.1, 0.9, weight_decay=0.1, loss_scale=scale)
        return nn.LARS(inner, epsilon=1e-3, coefficient=0.2, use_clip=clip)

    value, moment = START, np.zeros_like(START)
    for g in (g / scale for g in GRADIENTS):
        trust = 0.2 * np.linalg.norm(value) / (np.linalg.norm(g) + 0.1 * np.linalg.norm(value) + 1e-3)
        moment = 0.9 * moment + (g + 0.1 * value) * (min(trust / 0.1, 1.0) if clip else trust)
        value = value - 0.1 * moment
    np.testing.assert_allclose(run(make), value, rtol=1e-5)


def test_lars_leaves_what_the_filter_leaves(mode: int) -> None:
    plain = run(lambda p: nn.Momentum(p, 0.1, 0.9), name="bias")
    np.testing.assert_allclose(run(lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9, weight_decay=0.1)), name="bias"), plain, rtol=1e-6)


def test_lars_wants_an_optimizer() -> None:
    with pytest.raises(TypeError, match=r"^LARS\(optimizer=3\): expected an optimizer, got int\.$"):
        nn.LARS(3)


def test_adagrad_keeps_its_squares_without_update_slots(mode: int) -> None:
    result = run(lambda p: nn.Adagrad(p, 0.25, 0.1, update_slots=False))
    np.testing.assert_allclose(result, START - 0.1 * sum(GRADIENTS) / 0.5, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("call", "text"), [
    (lambda p: nn.AdaFactor(p, 0.1),
     "AdaFactor(learning_rate=0.1): expected None with relative_step=True.\n\nhint: write relative_step=False."),
    (lambda p: nn.RMSProp(p, epsilon=0.0), "RMSProp(epsilon=0.0): expected a number above 0."),
    (lambda p: nn.Adadelta(p, rho=2.0), "Adadelta(rho=2.0): expected a number from 0 to 1."),
    (lambda p: nn.Rprop(p, etas=(1.5, 2.0)), "Rprop(etas=(1.5, 2.0)): expected a number between 0 and 1, and one above 1."),
    (lambda p: nn.Adam(p, use_amsgrad=True, use_nesterov=True), "Adam(use_amsgrad=True, use_nesterov=True): expected one of them."),
])
def test_messages(call, text: str) -> None:
    with pytest.raises(ValueError) as caught:
        call([Parameter(Tensor([1.0]), name="w")])
    assert str(caught.value) == text


def test_broadcast_params_gives_back_what_it_gets() -> None:
    optimizer = nn.SGD([Parameter(Tensor([1.0]), name="w")], 0.1)
    assert optimizer.broadcast_params((1, 2)) == (1, 2)
    assert optimizer.map_(lambda a, b: a + b, (1, 2), (3, 4)) == (4, 6)
    assert ms.nn.AdamOffload([Parameter(Tensor([1.0]), name="w")]).beta1_power.shape == (1,)


def test_epsilon_of_rmsprop_is_under_the_root():
    value, gradient = np.linspace(-1, 1, 20, dtype=np.float32), np.linspace(0.5, 2, 20, dtype=np.float32)
    parameter = Parameter(Tensor(value), name="weight")
    nn.RMSProp([parameter], 0.1, decay=0.9, momentum=0.0, epsilon=0.5)((Tensor(gradient),))
    square = 0.9 + 0.1 * gradient**2                                   # MindSpore's mean square starts at 1
    np.testing.assert_allclose(parameter.asnumpy(), value - 0.1 * gradient / np.sqrt(square + 0.5), rtol=1e-5, atol=1e-7)


STRAIGHT = {
    "adam": lambda p: nn.Adam(p, 0.01), "adam_decay": lambda p: nn.Adam(p, 0.01, weight_decay=0.1), "lazy": lambda p: nn.LazyAdam(p, 0.01),
    "adamw": lambda p: nn.AdamWeightDecay(p, 0.01), "sgd": lambda p: nn.SGD(p, 0.01), "momentum": lambda p: nn.Momentum(p, 0.01, 0.9),
    "rmsprop": lambda p: nn.RMSProp(p, 0.01), "adagrad": lambda p: nn.Adagrad(p, learning_rate=0.01), "lamb": lambda p: nn.Lamb(p, 0.01),
    "experimental": lambda p: ms.experimental.optim.AdamW(p, 0.01), "mint": lambda p: ms.mint.optim.Adam(p, lr=0.01),
}


@pytest.mark.parametrize("name", STRAIGHT)
def test_the_memory_layout_of_a_tensor_changes_nothing(mode: int, name: str) -> None:
    random = np.random.RandomState(0)
    weight, gradient, results = random.randn(2, 3, 4).astype(np.float32), random.randn(2, 3, 4).astype(np.float32), []
    for turned in ((), ("gradient",), ("weight",), ("weight", "gradient")):
        def lying(values: np.ndarray, which: str, turned: tuple[str, ...] = turned) -> Tensor:
            return Tensor(np.ascontiguousarray(values.T)).transpose(2, 1, 0) if which in turned else Tensor(values)

        parameter = Parameter(Tensor(np.zeros_like(weight)), name="w")
        parameter.set_data(lying(weight, "weight"))
        optimizer = STRAIGHT[name]([parameter])
        for _ in range(2):
            optimizer((lying(gradient, "gradient"),))
        results.append(parameter.asnumpy().copy())
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-6)


class Turned(nn.Cell):
    """Gradients of its weights lie otherwise in memory than the weights: channels last, and turned."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, weight_init="ones")
        self.weight = Parameter(Tensor(np.arange(24).reshape(3, 4, 2) / 24, ms.float32), name="weight")

    def construct(self, x: Tensor) -> Tensor:
        h = ops.relu(self.conv(ops.transpose(x, (0, 3, 1, 2)))).mean((2, 3))
        return (ops.matmul(h, self.weight) * Tensor([1.0, -2.0], ms.float32)).sum()


def test_gradients_of_another_layout_step_as_they_should(mode: int) -> None:
    net, x = Turned(), Tensor(np.random.RandomState(1).randn(2, 5, 5, 4), ms.float32)
    before = [parameter.asnumpy().copy() for parameter in net.trainable_params()]
    grads = [grad.asnumpy() for grad in ms.grad(net, None, net.trainable_params())(x)]
    nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1))(x)
    for parameter, old, grad in zip(net.trainable_params(), before, grads):
        np.testing.assert_allclose(parameter.asnumpy(), old - 0.1 * grad, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_step_gives_one_true(mode: int) -> None:
    parameters = [ms.Parameter(ms.Tensor([1.0, 2.0]), name="a"), ms.Parameter(ms.Tensor([3.0]), name="b")]
    with ms.context.scope(mode=mode):
        optimizers = nn.Adam(parameters, 0.1), nn.SGD(parameters, 0.1), nn.Lamb(parameters, 0.1), nn.FTRL(parameters)
        assert [optimizer(tuple(ms.ops.ones_like(p) for p in parameters)) for optimizer in optimizers] == [True] * 4
