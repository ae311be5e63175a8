"""A step whose shapes stay the same is captured once, also where a Python number in it changes: a loss scale, a counter, an epoch."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.context import effects
from torchspore.graph import dispatch
from torchspore.graph.specialization.assigned_numbers import _assigned_by_methods

X = Tensor(np.arange(8, dtype=np.float32).reshape(2, 4) / 4)


@pytest.fixture(autouse=True)
def in_graph_mode() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Scaled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(4, 1, weight_init="ones", has_bias=False)
        self.scale, self.epoch, self.width = 1.0, 0, 4

    def set_epoch(self, epoch):
        self.epoch = epoch

    def construct(self, x, factor=1.0):
        return self.dense(x.reshape(-1, self.width)).sum() * self.scale * factor + self.epoch


def captures(call: Callable[[Any, int], Any], steps: int = 5) -> list[int]:
    """How often each graph ran; the values are compared with those of PyNative mode."""
    results = {}
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net = Scaled()
        results[mode] = [float(call(net, step)) for step in range(steps)]
    assert results[ms.GRAPH_MODE] == pytest.approx(results[ms.PYNATIVE_MODE])
    return [graph.runs for graph in dispatch.graphs(net)]


def test_a_loss_scale_in_python_is_an_input_from_the_first_call() -> None:
    manager = ms.DynamicLossScaleManager(2**10, 2, 1)

    def call(net, step):
        if step == 0:
            manager.loss_scale = 2**10
        loss = net(X, manager.get_loss_scale())
        manager.update_loss_scale(False)
        return loss

    assert captures(call) == [5]


def test_an_attribute_that_the_loop_assigns_after_the_call() -> None:
    def call(net, step):
        loss = net(X)
        net.scale *= 0.5
        net.epoch += 1
        return loss

    assert captures(call) == [5]


def test_an_attribute_that_a_method_assigns() -> None:
    def call(net, step):
        loss = net(X)
        net.set_epoch(step + 1)
        return loss

    assert captures(call) == [5]


def test_an_attribute_that_setattr_assigns_is_captured_twice() -> None:
    assert sorted(captures(lambda net, step: (setattr(net, "scale", 0.5 * step + 1), net(X))[1])) == [1, 4]


def test_a_number_that_is_written_at_the_call_stays_a_constant() -> None:
    net = Scaled()
    net(X, 3.0)
    assert [len(entry.lifted) for entry in net.__dict__["_graphs_"].values()] == [0]


def test_a_number_whose_value_the_trace_needs_stays_a_constant() -> None:
    @ms.jit
    def tiled(x, count):
        return ops.tile(x, (count, 1))

    for count in (2, 3, 2, 3):
        assert tiled(X, count).shape == (2 * count, 4)
    assert [graph.runs for graph in dispatch.graphs(tiled)] == [2, 2]


def test_a_branch_on_a_number_needs_its_value() -> None:
    @ms.jit
    def chosen(x, flag):
        return x * 2 if flag > 0 else x

    for flag in (0, 1, 0, 1):
        assert float(chosen(X, flag)[1, 3]) == X[1, 3] * (flag + 1)
    assert [graph.runs for graph in dispatch.graphs(chosen)] == [2, 2]


def test_gradients_by_a_number_that_changes_are_omitted() -> None:
    step = ms.value_and_grad(lambda x, scale: (x * scale).sum(), (0, 1))
    for scale in (2.0, 3.0, 4.0, 5.0):
        _, gradients = step(X, scale)
        assert float(gradients.reshape(-1)[0]) == scale


@pytest.mark.parametrize("jit", [True, False])
def test_a_training_step_with_a_python_loss_scale(jit: bool) -> None:
    net, manager = nn.Dense(4, 2), ms.DynamicLossScaleManager(2**4, 2, 1)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    gradient = ms.value_and_grad(lambda x, scale: net(x).sum() * scale, None, optimizer.parameters)

    def train(x, scale):
        loss, grads = gradient(x, scale)
        optimizer(tuple(grad / scale for grad in grads))
        return loss / scale

    step = ms.jit(train) if jit else train
    before = len(effects.notes().get("graphs", []))
    for _ in range(5):
        step(X, manager.get_loss_scale())
        manager.update_loss_scale(False)
    assert len(effects.notes().get("graphs", [])) - before == (1 if jit else 2)


def test_a_class_may_receive_attributes_while_it_is_read() -> None:
    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            return x + 1

    class Adding:
        """Sets an attribute of the class when its attributes are read, as another thread may do."""

        def __getattr__(self, name: str) -> Any:
            setattr(Net, f"added_{len(vars(Net))}", 1)
            raise AttributeError(name)

    Net.first, Net.second = Adding(), Adding()  # type: ignore[attr-defined]
    assert _assigned_by_methods(Net) == set()
