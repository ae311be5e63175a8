"""A forward pass is used by the gradient that follows it, and never when anything has changed in between."""
from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import nn, ops
from support.counted_passes import PLAIN, Net, gradient, make_net

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_the_gradient_uses_the_forward_pass() -> None:
    net, x = make_net()
    loss = net(x)
    assert gradient(net, x) == [1.0, 4.0] and float(loss) == 14.0
    assert float(net.passes) == 1
    assert gradient(net, x) == [1.0, 4.0]                      # a second gradient has a pass of its own
    assert float(net.passes) == 2


CHANGES: dict[str, tuple[Callable[[Net, Any], Any], list[float]]] = {
    "an input, by item": (lambda net, x: x.__setitem__(0, 3.0), [9.0, 4.0]),
    "an input, by NumPy": (lambda net, x: x.asnumpy().__setitem__(0, 3.0), [9.0, 4.0]),
    "an input, assigned": (lambda net, x: x.assign_value(ms.Tensor([3.0, 2.0])), [9.0, 4.0]),
    "a Parameter, assigned": (lambda net, x: ops.assign(net.weight, net.weight * 2), [1.0, 4.0]),
    "a Parameter, set": (lambda net, x: net.weight.set_data(ms.Tensor([5.0, 5.0])), [1.0, 4.0]),
    "a Tensor attribute, in place": (lambda net, x: net.mask.__setitem__(0, 3.0), [3.0, 4.0]),
    "a Tensor attribute, another": (lambda net, x: setattr(net, "mask", ms.Tensor([3.0, 1.0])), [3.0, 4.0]),
    "a number": (lambda net, x: setattr(net, "factor", 2.0), [2.0, 8.0]),
    "training": (lambda net, x: net.set_train(), [1.0, 4.0]),
    "training of a Cell inside": (lambda net, x: net.inner.set_train(), [1.0, 4.0]),
    "the seed": (lambda net, x: ms.set_seed(3), [1.0, 4.0]),
    "a hook": (lambda net, x: net.register_forward_hook(lambda cell, inputs, out: out * 3), [3.0, 12.0]),
    "a hook inside": (lambda net, x: net.inner.register_forward_pre_hook(lambda cell, inputs: None), [1.0, 4.0]),
    "the dtype": (lambda net, x: net.to_float(ms.float16), [1.0, 4.0]),
    "set_grad": (lambda net, x: net.set_grad(False), [1.0, 4.0]),
    "the context": (lambda net, x: ms.set_context(deterministic="ON"), [1.0, 4.0]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_in_between_is_seen(what: str) -> None:
    change, expected = CHANGES[what]
    net, x = make_net()
    net(x)
    change(net, x)
    assert gradient(net, x) == expected
    assert float(net.passes) == 2
    if what == "the context":
        ms.set_context(deterministic="OFF")


def test_other_changes_do_not_matter() -> None:
    net, x = make_net()
    other = Net()
    loss = net(x)
    other.factor = 3.0
    other(x)
    loss += 1.0
    assert gradient(net, x) == [1.0, 4.0]
    assert float(net.passes) == 1


def test_a_result_that_is_written_into_is_no_longer_the_result() -> None:
    class Twice(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(ms.Tensor([1.0, 2.0]), name="weight")

        def construct(self, x: Any) -> Any:
            return ops.exp(x * self.weight)

    net, x = Twice().set_grad(), ms.Tensor([0.0, 1.0])
    fresh = ms.value_and_grad(net, None, [net.weight])(x)
    out = net(x)
    out[0] = 7.0
    value, grads = ms.value_and_grad(net, None, [net.weight])(x)
    np.testing.assert_array_equal(value.asnumpy(), fresh[0].asnumpy())
    np.testing.assert_array_equal(grads[0].asnumpy(), fresh[1][0].asnumpy())


@pytest.mark.parametrize("arguments", [
    ((ms.Tensor([1.0, 2.0]), 2), (ms.Tensor([1.0, 2.0]), 2)), ("x", 3), ("x", 2.0), ("x", True), ("x", [2]),
], ids=["equal Tensor", "number", "float", "bool", "list"])
def test_other_arguments_are_computed(arguments: Any) -> None:
    class Power(Net):
        def construct(self, x: Any, power: Any) -> Any:
            ops.assign_add(self.passes, ms.Tensor(1.0))
            return (x ** (power[0] if isinstance(power, list) else power) * self.weight).sum()

    net, x = Power().set_grad(), ms.Tensor([1.0, 2.0])
    net(x, 2)
    given = (x, arguments[1]) if arguments[0] == "x" else arguments[0]
    PLAIN(net, ms.ParameterTuple([net.weight]))(*given)
    assert float(net.passes) == 2


def test_the_gradient_of_frozen_weights_is_0_and_of_thawed_ones_is_computed() -> None:
    net, x = make_net()
    net.weight.requires_grad = False
    net(x)
    assert gradient(net, x) == [0.0, 0.0]
    assert float(net.passes) == 1
    net(x)
    net.weight.requires_grad = True
    assert gradient(net, x) == [1.0, 4.0]
    assert float(net.passes) == 3


def test_a_weight_that_was_not_used_has_zeros() -> None:
    net, x = make_net()
    other = ms.Parameter(ms.Tensor([1.0, 1.0, 1.0]), name="other")
    net(x)
    grads = PLAIN(net, ms.ParameterTuple([other, net.weight]))(x)
    assert [g.asnumpy().tolist() for g in grads] == [[0.0, 0.0, 0.0], [1.0, 4.0]]
    assert float(net.passes) == 1


def test_one_tensor_in_two_positions_has_a_gradient_for_each() -> None:
    class Mixed(nn.Cell):
        def construct(self, a: Any, b: Any) -> Any:
            return a * a * b

    net, x = Mixed().set_grad(), ms.Tensor(3.0)
    net(x, x)
    assert [float(g) for g in ops.GradOperation(get_all=True)(net)(x, x)] == [18.0, 9.0]


class Assigns(nn.Cell):
    """Reads a Parameter, then assigns to it."""

    def __init__(self, trained: bool) -> None:
        super().__init__()
        self.weight = ms.Parameter(ms.Tensor(3.0), name="weight")
        self.scale = ms.Parameter(ms.Tensor(3.0), name="scale", requires_grad=False)
        self.assigned = self.weight if trained else self.scale

    def construct(self, x: Any) -> Any:
        out = self.weight * self.weight * self.scale * x
        ops.assign(self.assigned, self.assigned + 1)
        return out


@pytest.mark.parametrize("trained", [True, False])
@MODES
def test_a_value_that_was_read_and_assigned_to_is_recomputed(mode: int, trained: bool) -> None:
    ms.set_context(mode=mode)
    net, x = Assigns(trained).set_grad(), ms.Tensor(1.0)

    class Step(nn.Cell):
        def construct(self, x: Any) -> Any:
            return net(x), PLAIN(net, ms.ParameterTuple([net.weight]))(x)[0]

    loss, grad = Step()(x)
    assert float(loss) == 27.0
    assert float(net.assigned) == 5.0
    assert float(grad) == 24.0


def test_without_set_grad_nothing_is_saved() -> None:
    net, x = Net(), ms.Tensor([1.0, 2.0])
    reference = weakref.ref(x)
    net(x)
    del x
    gc.collect()
    assert reference() is None


def test_the_record_goes_with_the_gradient() -> None:
    class Squares(nn.Cell):
        def construct(self, x: Any) -> Any:
            return (x * x).sum()

    net, x = Squares().set_grad(), ms.Tensor(np.ones(1000, np.float32))
    reference = weakref.ref(x)
    net(x)
    ms.grad(net)(x)
    del x
    gc.collect()
    assert reference() is None


def test_copies_and_pickles_have_no_record() -> None:
    net, x = nn.Dense(2, 2).set_grad(), ms.Tensor([[1.0, 2.0]])
    net(x)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert "_forward_" not in other.__dict__


def test_an_error_writes_what_was_written_before_it() -> None:
    class Fails(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.count = ms.Parameter(ms.Tensor(0.0), name="count", requires_grad=False)

        def construct(self, x: Any) -> Any:
            ops.assign(self.count, self.count + 1)
            raise KeyError("mine")

    net = Fails().set_grad()
    with pytest.raises(KeyError, match="mine"):
        net(ms.Tensor(1.0))
    assert float(net.count) == 1.0


def test_another_thread_has_its_pass() -> None:
    net, x = make_net()
    net(x)
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(gradient(net, x)))
    thread.start()
    thread.join()
    assert results == [[1.0, 4.0]]
    assert float(net.passes) == 2


def test_what_leaves_a_recorded_call_is_cut_from_it() -> None:
    class Keeps(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = ms.Parameter(ms.Tensor([1.0, 2.0]), name="weight")
            self.last: Any = None

        def construct(self, x: Any) -> Any:
            self.last = x * self.weight
            return self.last.sum(), [self.last + 1]

    net = Keeps().set_grad()
    loss, (more,) = net(ms.Tensor([1.0, 1.0]))
    for tensor in (loss, more, net.last):
        assert not tensor._t.requires_grad


def test_a_step_that_is_set_grad_itself_trains() -> None:
    class Step(nn.Cell):
        def __init__(self, net: Net) -> None:
            super().__init__(auto_prefix=False)
            self.net, self.grad = net, PLAIN
            self.weights = ms.ParameterTuple([net.weight])
            self.optimizer = nn.SGD([net.weight], 1.0)

        def construct(self, x: Any) -> Any:
            loss = self.net(x)
            self.optimizer(self.grad(self.net, self.weights)(x))
            return loss

    net, x = make_net()
    step = Step(net).set_grad()
    assert [float(step(x)) for _ in range(2)] == [14.0, -3.0]
    assert net.weight.asnumpy().tolist() == [0.0, -5.0]
    assert float(net.passes) == 4                               # as in MindSpore


@pytest.mark.parametrize("seed", range(8))
def test_any_mixture_of_calls_gives_the_gradients_of_plain_ones(seed: int) -> None:
    """Calls, gradients and changes in any order: whatever is shared, the numbers are those of a net that shares nothing."""
    random = np.random.default_rng(seed)
    nets = [Net().set_grad(shares) for shares in (True, False)]
    inputs = [[ms.Tensor(np.float32([1, 2])), ms.Tensor(np.float32([3, 4]))] for _ in nets]
    moves: list[Callable[[Net, Any], Any]] = [
        lambda net, x: net(x), lambda net, x: net(x), gradient, gradient, gradient,
        lambda net, x: ops.GradOperation(get_all=True)(net)(x)[0].asnumpy().tolist(),
        lambda net, x: ms.value_and_grad(net, 0, [net.weight])(x)[0].asnumpy().tolist(),
        lambda net, x: ops.GradOperation(sens_param=True)(net)(x, ms.Tensor(3.0)).asnumpy().tolist(),
        lambda net, x: ops.assign(net.weight, net.weight + 1), lambda net, x: x.__setitem__(1, x[1] + 1),
        lambda net, x: setattr(net, "factor", net.factor + 1), lambda net, x: net.mask.__setitem__(0, net.mask[0] + 1),
    ]
    for _ in range(40):
        move, which = moves[random.integers(len(moves))], random.integers(2)
        expected, other = (move(net, argument[which]) for net, argument in zip(nets, inputs))
        assert np.array_equal(np.asarray(expected, dtype=np.float32), np.asarray(other, dtype=np.float32)) or expected is other is None
    assert float(nets[0].passes) < float(nets[1].passes)


def test_torch_keeps_its_state() -> None:
    before = torch.is_grad_enabled()
    net, x = make_net()
    net(x)
    assert torch.is_grad_enabled() is before


class Writer(nn.Cell):
    """Counts its calls, moves averages, writes into a weight and draws: a second pass shows in each of these."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = ms.Parameter(ms.Tensor([2.0, 3.0]), name="weight")
        self.passes = ms.Parameter(ms.Tensor(0.0), name="passes", requires_grad=False)
        self.norm, self.dropout, self.calls = nn.BatchNorm1d(2), nn.Dropout(p=0.5), 0

    def construct(self, x: Any, y: Any) -> Any:
        self.calls += 1
        ops.assign_add(self.passes, ms.Tensor(1.0))
        out = self.dropout(x * y * self.weight * self.passes) + self.norm(x.astype(ms.float32)) * 0
        ops.assign(self.weight, self.weight * 2)
        return out.sum()


@pytest.mark.parametrize("kind", [np.int32, np.float32], ids=["integers", "one Tensor twice"])
def test_a_pass_that_is_not_recorded_runs_again_from_where_it_began(kind: Any) -> None:
    net = Writer().set_grad().set_train()
    x = ms.Tensor(np.array([[1, 2], [3, 4], [5, 6], [7, 8]], kind))
    loss = net(x, x)
    first, second = ops.GradOperation(get_all=True)(net)(x, x)
    # Of whole numbers weighted by whole numbers: x * (dL/dx) adds up to the loss itself, whatever was dropped.
    assert float((first * x).sum()) == float((second * x).sum()) == float(loss) != 0
    assert (float(net.passes), net.calls, net.weight.asnumpy().tolist()) == (1, 1, [4.0, 6.0])
    np.testing.assert_allclose(net.norm.moving_mean.asnumpy(), [0.4, 0.5], rtol=1e-6)
