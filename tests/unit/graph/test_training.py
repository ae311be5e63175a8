"""Training in Graph mode: one graph for a step inside one Cell or `@jit` function, two from plain Python; the numbers are PyNative's."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.graph import dispatch


@pytest.fixture(autouse=True)
def pynative_after() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Small(nn.Cell):
    """Every kind of state that a step has: convolution, batch norm, dropout, a dense layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, has_bias=True)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(p=0.3)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc = nn.Dense(4 * 4 * 4, 5)

    def construct(self, x):
        h = self.pool(ops.relu(self.norm(self.conv(x))))
        return self.fc(self.drop(h.reshape(h.shape[0], -1)))


OPTIMIZERS = {
    "SGD": lambda p: nn.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "Momentum": lambda p: nn.Momentum(p, [0.1, 0.05, 0.02], 0.9),
    "Adam": lambda p: nn.Adam(p, nn.ExponentialDecayLR(0.01, 0.9, 2), weight_decay=0.01),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.1),
}


def build(optimizer: str) -> tuple[Any, Any, Any]:
    ms.set_seed(7)
    net = Small().set_train()
    return net, nn.CrossEntropyLoss(), OPTIMIZERS[optimizer](net.trainable_params())


def batches() -> list[tuple[Tensor, Tensor]]:
    rng = np.random.RandomState(0)
    return [(Tensor(rng.randn(6, 1, 8, 8).astype(np.float32)), Tensor(rng.randint(0, 5, 6).astype(np.int32))) for _ in range(4)]


def in_one_cell(net, loss, optimizer):
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    cell.set_train()
    return cell, [cell]


def in_one_function(net, loss, optimizer):
    gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    @ms.jit
    def step(x, y):
        value, gradients = gradient(x, y)
        optimizer(gradients)
        return value

    return step, [step]


def in_plain_python(net, loss, optimizer):
    gradient = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)

    def step(x, y):
        value, gradients = gradient(x, y)
        optimizer(gradients)
        return value

    return step, [gradient, optimizer]


def trained(way, optimizer: str, mode: int) -> tuple[list[float], list[np.ndarray], list[Any]]:
    ms.set_context(mode=mode)
    net, loss, updater = build(optimizer)
    step, owners = way(net, loss, updater)
    ms.set_seed(11)
    losses = [float(step(x, y).asnumpy()) for x, y in batches()]
    return losses, [p.asnumpy().copy() for p in (*net.get_parameters(), *updater.get_parameters())], owners


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("way", [in_one_cell, in_one_function, in_plain_python])
def test_steps_are_equal_to_the_last_bit(way, optimizer: str) -> None:
    losses, state, _ = trained(way, optimizer, ms.PYNATIVE_MODE)
    graphed, graphed_state, owners = trained(way, optimizer, ms.GRAPH_MODE)
    assert losses == graphed
    for a, b in zip(state, graphed_state):
        np.testing.assert_array_equal(a, b)
    assert [len(dispatch.graphs(owner)) for owner in owners] == [1] * len(owners)


def test_the_step_is_one_graph() -> None:
    _, _, (cell,) = trained(in_one_cell, "Momentum", ms.GRAPH_MODE)
    text = str(dispatch.graphs(cell)[0])
    for part in ("convolution.default", "convolution_backward", "_fused_sgd_", "native_batch_norm", "copy_"):
        assert part in text
    assert all(not dispatch.graphs(inner) for _, inner in cell.cells_and_names() if inner is not cell)


def test_a_dropout_whose_result_is_unused_still_draws() -> None:
    class Wasteful(nn.Cell):
        def construct(self, x):
            ops.dropout(x, 0.5)
            return ops.dropout(x, 0.5)

    x, answers = Tensor(np.ones((4, 64), np.float32)), []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        ms.set_seed(3)
        answers.append(Wasteful()(x).asnumpy())
    np.testing.assert_array_equal(*answers)


def test_a_hook_added_after_a_capture_is_called() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = nn.Dense(3, 2), Tensor(np.ones((1, 3), np.float32))
    plain = net(x).asnumpy()
    handle = net.register_forward_hook(lambda cell, inputs, output: output * 2)
    np.testing.assert_allclose(net(x).asnumpy(), plain * 2, rtol=1e-6)
    handle.remove()
    np.testing.assert_array_equal(net(x).asnumpy(), plain)


def test_a_method_under_jit_is_captured_per_object() -> None:
    class Scaled(nn.Cell):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        @ms.jit
        def construct(self, x):
            return x * self.factor

    first, other, x = Scaled(2.0), Scaled(3.0), Tensor([1.0])
    assert [float(first(x)), float(other(x)), float(first(x))] == [2.0, 3.0, 2.0]
    assert len(dispatch.graphs(first)) == len(dispatch.graphs(other)) == 1


def test_a_helper_that_is_defined_again_is_recaptured() -> None:
    space: dict[str, Any] = {"ms": ms}
    exec("def helper(x):\n    return x * 2\n@ms.jit\ndef f(x):\n    return helper(x)\n", space)
    assert float(space["f"](Tensor([1.0]))) == 2.0
    exec("def helper(x):\n    return x * 5\n", space)
    assert float(space["f"](Tensor([1.0]))) == 5.0


def test_a_frozen_parameter_is_seen() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x = nn.Dense(2, 1), Tensor(np.ones((1, 2), np.float32))
    gradient = ops.GradOperation(get_by_list=True)(net)
    assert len(gradient(x)) == 2
    net.bias.requires_grad = False
    assert len(gradient(x)) == 1


def test_another_thread_runs_the_same_cell_while_one_captures() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    seen, x = [], Tensor(np.ones((2, 3), np.float32))
    shared = nn.Dense(3, 3)
    expected = ops.matmul(x, shared.weight.transpose(1, 0)).asnumpy() + shared.bias.asnumpy()

    class Meets(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = shared

        def construct(self, x):
            other = threading.Thread(target=lambda: seen.append((shared.construct(x_outside).asnumpy(), type(shared.weight._t).__name__)))
            other.start()
            other.join()
            return self.inner(x)

    x_outside = Tensor(np.ones((2, 3), np.float32))
    np.testing.assert_allclose(Meets()(x).asnumpy(), expected, rtol=1e-5)
    assert all(kind == "Tensor" for _, kind in seen) and len(seen) >= 1
    for value, _ in seen:
        np.testing.assert_allclose(value, expected, rtol=1e-5)
