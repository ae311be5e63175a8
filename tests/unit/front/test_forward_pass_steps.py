"""A step that computes a forward pass and then its gradient runs the pass once, in both modes, in graphs and in parts of a call."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn, ops
from support.counted_passes import PLAIN, Net, gradient, make_net

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def _graph_step(net: Net, between: Callable[[Any, Any], Any]) -> Any:
    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__(auto_prefix=False)
            self.net, self.weights = net, ms.ParameterTuple([net.weight])

        def construct(self, x: Any) -> Any:
            loss = self.net(x)
            x = between(self.net, x)
            return loss, PLAIN(self.net, self.weights)(x)[0]

    return Step()


@MODES
@pytest.mark.parametrize(("between", "expected"), [
    (lambda net, x: x, 1), (lambda net, x: x + 0, 2), (lambda net, x: ops.assign(net.weight, net.weight * 2) * 0 + x, 2),
    (lambda net, x: (ops.assign(net.weight, net.weight * 2), x)[1], 2), (lambda net, x: (x.__setitem__(0, 3.0), x)[1], 2),
    (lambda net, x: (net(x * 2), x)[1], 2), (lambda net, x: (net(x * 2), ops.assign(net.passes, net.passes + 0), x)[2], 3),
], ids=["nothing", "another Tensor", "both", "an assignment", "an input in place", "another call", "another call and an assignment"])
def test_modes_agree(mode: int, between: Callable[[Any, Any], Any], expected: int) -> None:
    ms.set_context(mode=mode)
    net, x = make_net()
    loss, grad = _graph_step(net, between)(x)
    assert float(net.passes) == expected
    ms.set_context(mode=ms.PYNATIVE_MODE)
    other, y = make_net()
    expected_outcome = (other(y), gradient(other, between(other, y)))
    assert float(loss) == float(expected_outcome[0]) and grad.asnumpy().tolist() == expected_outcome[1]


@MODES
def test_a_call_that_is_only_sometimes_executed_changes_nothing(mode: int) -> None:
    """A number with three values becomes an input of the graph, and the `if` one on a Tensor."""
    ms.set_context(mode=mode)

    class Step(nn.Cell):
        def __init__(self, net: Net) -> None:
            super().__init__(auto_prefix=False)
            self.net, self.weights = net, ms.ParameterTuple([net.weight])

        def construct(self, x: Any, k: int) -> Any:
            loss = self.net(x)
            if k == 2:
                loss = loss + self.net(x * 10) * 0
            return loss, PLAIN(self.net, self.weights)(x)[0]

    net, x = make_net()
    step = Step(net)
    for k, passes in ((0, 1), (1, 2), (2, 4), (3, 5), (2, 7)):
        assert step(x, k)[1].asnumpy().tolist() == [1.0, 4.0] and float(net.passes) == passes


@pytest.mark.parametrize("how", ["both", "loop", "call", "gradient"])
def test_what_a_tensor_decides_shares_as_pynative_does(how: str) -> None:
    class Step(nn.Cell):
        def __init__(self, net: Net) -> None:
            super().__init__(auto_prefix=False)
            self.net, self.weights = net, ms.ParameterTuple([net.weight])

        def construct(self, x: Any) -> Any:
            grad = ops.zeros_like(x)
            if how == "gradient":
                self.net(x)
            i = 0
            while how == "loop" and x.sum() > i:
                self.net(x)
                grad = PLAIN(self.net, self.weights)(x)[0]
                i += 2
            if how != "loop" and x.sum() > 0:
                if how != "gradient":
                    self.net(x)
                if how != "call":
                    grad = PLAIN(self.net, self.weights)(x)[0]
            return PLAIN(self.net, self.weights)(x)[0] if how == "call" else grad

    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net, _ = make_net()
        step = Step(net)
        results.append([(step(ms.Tensor([x, x])).asnumpy().tolist(), float(net.passes)) for x in (1.0, -1.0, 1.0, 1.0)])
    assert results[0] == results[1]


def test_a_part_of_a_call_never_holds_the_gradient_of_a_call_before_it() -> None:
    """Also where there was none when it was captured: the graph would be used where there is one, and the pass would run twice."""
    from torchspore.graph.forward_cache import Calls, Learned
    from torchspore.graph.refusal import Refusal

    net, x = make_net()
    with pytest.raises(Refusal, match="requests the gradient of a call outside of the graph"):
        Calls(Learned(), may_learn=True, is_piece=True).find_recorded(net, (x,), {})
    assert Calls(Learned(), may_learn=True, is_piece=False).find_recorded(net, (x,), {}) is None
    assert Calls(Learned(), may_learn=True, is_piece=True).find_recorded(net.set_grad(False), (x,), {}) is None


@pytest.mark.parametrize("asks", [True, False])
def test_a_graph_holds_one_forward_pass(asks: bool) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)

    class Step(nn.Cell):
        def __init__(self, net: Any) -> None:
            super().__init__(auto_prefix=False)
            self.net, self.weights = net, ms.ParameterTuple(net.trainable_params())

        def construct(self, x: Any) -> Any:
            loss = self.net(x).sum()
            return loss, PLAIN(self.net, self.weights)(x)

    net = nn.SequentialCell(nn.Dense(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(p=0.5)).set_train()
    step = Step(net.set_grad(asks))
    step(ms.Tensor(np.random.rand(8, 3).astype(np.float32)))
    from torchspore.graph import dispatch

    (graph,) = dispatch.graphs(step)
    assert sum(str(graph).count(f"aten.{name}.default(") for name in ("linear", "addmm")) == 1           # accelerators call addmm


@MODES
def test_a_jit_function_runs_it_once(mode: int) -> None:
    ms.set_context(mode=mode)
    net, x = make_net()
    net.set_grad(False)

    @ms.jit
    def step(x: Any) -> Any:
        loss = net(x)
        return loss, PLAIN(net, ms.ParameterTuple([net.weight]))(x)[0]

    for count in (1, 2, 3):
        loss, grad = step(x)
        assert float(loss) == 14.0 and grad.asnumpy().tolist() == [1.0, 4.0] and float(net.passes) == count


@MODES
def test_two_steps_in_one_call_have_a_pass_each(mode: int) -> None:
    ms.set_context(mode=mode)

    class Steps(nn.Cell):
        def __init__(self, net: Net) -> None:
            super().__init__(auto_prefix=False)
            self.net, self.weights = net, ms.ParameterTuple([net.weight])
            self.optimizer = nn.SGD([net.weight], 1.0)

        def construct(self, x: Any) -> Any:
            losses = []
            for _ in range(2):
                losses.append(self.net(x))
                self.optimizer(PLAIN(self.net, self.weights)(x))
            return losses

    net, x = make_net()
    assert [float(loss) for loss in Steps(net)(x)] == [14.0, -3.0]
    assert float(net.passes) == 2 and net.weight.asnumpy().tolist() == [0.0, -5.0]


@MODES
def test_a_step_that_no_graph_holds_shares_too(mode: int) -> None:
    ms.set_context(mode=mode)
    seen: list[float] = []

    class Step(nn.Cell):
        def __init__(self, net: Any) -> None:
            super().__init__(auto_prefix=False)
            self.net, self.weights = net, ms.ParameterTuple(net.trainable_params())
            self.optimizer = nn.SGD(self.weights, 0.5)

        def construct(self, x: Any) -> Any:
            loss = self.net(x)
            seen.append(float(loss.asnumpy().sum()))
            grads = PLAIN(self.net, self.weights)(x)
            self.optimizer(grads)
            return loss, grads

    net = nn.SequentialCell(nn.Dense(3, 4, weight_init="ones"), nn.BatchNorm1d(4), nn.ReLU()).set_train().set_grad()
    step, x = Step(net), ms.Tensor(np.arange(15).reshape(5, 3).astype(np.float32))
    for count in range(1, 4):
        step(x)
        mean = float(net[1].moving_mean.asnumpy()[0])
        assert mean == pytest.approx(float(net[0](x).asnumpy()[:, 0].mean()) * (1 - 0.9**count), rel=0.2)
        assert len(seen) == count
