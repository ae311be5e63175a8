"""What branches and loops of a graph do besides giving values: random numbers, writes, asserts, raises, prints; gradients of gradients."""
from __future__ import annotations

import linecache
import types
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

import torchspore
from tests.unit.graph.control_flow.running import flat

X = [1.0, 2.0, 3.0]
W = Tensor(np.array([0.5, -1.0, 2.0], np.float32))
FACTOR = 2.0


def tensor(values: Any) -> Tensor:
    return Tensor(np.array(values, np.float32))


def is_single_graph(call: Any) -> bool:
    return len(torchspore.graphs(call)) == 1 and torchspore.graphs(call)[0].runs > 0


def test_random_operators_draw_when_the_graph_runs() -> None:
    def drop(x):
        if x.sum() > 0:
            x = ops.dropout(x, 0.5)
        i = Tensor(0)
        while i < 2:
            x = ops.dropout(x, 0.25)
            i = i + 1
        return x

    change = ops.value_and_grad(drop, 0)
    call = ms.jit(lambda x: change(x))
    x = tensor(np.arange(1, 65))
    for function in (change, call):
        ms.set_seed(7)
        results = [[t.asnumpy() for t in function(x)] for _ in range(3)]
        assert not np.array_equal(results[0][0], results[1][0])
        for value, gradient in results:  # the gradient belongs to the very numbers that were drawn
            np.testing.assert_allclose(gradient, value / x.asnumpy(), rtol=1e-6)
        if function is change:
            expected = results
    np.testing.assert_array_equal(results, expected)
    assert is_single_graph(call)


class Counter(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(tensor(X), name="weight")
        self.steps = Parameter(Tensor(0, ms.int32), name="steps", requires_grad=False)
        self.norm = nn.BatchNorm1d(3)
        self.set_train()

    def construct(self, x):
        if x.sum() > 0:
            ops.assign_add(self.steps, Tensor(1, ms.int32))
            x = self.norm(x)
        else:
            self.weight[0] = self.weight[1] * 2
        i = Tensor(0)
        while i < 2:
            ops.assign(self.steps, self.steps + 1)
            i = i + 1
        return (x * self.weight).sum()


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
def test_writes_to_parameters_happen_on_the_way_that_is_taken(gradient: bool) -> None:
    def run(mode: int) -> tuple[list[Any], Any]:
        ms.set_context(mode=mode)
        net = Counter()
        change = ops.value_and_grad(net, None, [net.weight])
        step: Any = ms.jit(lambda x: change(x)) if mode == ms.GRAPH_MODE else change
        results = []
        for sign in (1, -1, 1):
            result = step(tensor([X, X]) * sign) if gradient else net(tensor([X, X]) * sign)
            results += [v.copy() for v in flat(result)]
            results += [p.asnumpy().copy() for p in net.get_parameters()]
        ms.set_context(mode=ms.PYNATIVE_MODE)
        return results, step if gradient else net

    (expected, _), (output, call) = run(ms.PYNATIVE_MODE), run(ms.GRAPH_MODE)
    for a, b in zip(output, expected):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert is_single_graph(call)


class Skipping(nn.TrainOneStepCell):
    """Updates only where no gradient overflows, as the zoo's training cells do."""

    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y, ops.ones_like(loss))
        overflow = Tensor(False)
        for g in grads:
            overflow = ops.logical_or(overflow, ops.logical_not(ops.isfinite(g).all()))
        if not overflow:
            self.optimizer(grads)
        return loss, overflow


def test_an_optimizer_in_a_branch() -> None:
    def run(mode: int) -> tuple[list[Any], Any]:
        ms.set_context(mode=mode)
        ms.set_seed(2)
        net = nn.Dense(3, 2)
        step = Skipping(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
        results = []
        for scale in (1.0, np.inf, 2.0, 3.0):
            results += [t.asnumpy().copy() for t in step(tensor([X, X]) * scale, tensor([[1, 2], [3, 4]]))]
            results += [p.asnumpy().copy() for p in net.get_parameters()]
        ms.set_context(mode=ms.PYNATIVE_MODE)
        return results, step

    (expected, _), (result, step) = run(ms.PYNATIVE_MODE), run(ms.GRAPH_MODE)
    for a, b in zip(result, expected):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert is_single_graph(step)


def test_a_branch_that_raises_raises_the_programs_error() -> None:
    @ms.jit
    def checked(x):
        if x.sum() > 5:
            raise ValueError(f"too large: {FACTOR}")
        return x * W

    assert checked(tensor([1, 1, 1])).asnumpy().tolist() == [0.5, -1.0, 2.0]
    with pytest.raises(ValueError, match=r"^too large: 2\.0$"):
        checked(tensor(X))
    assert is_single_graph(checked)


def test_an_assert_on_a_tensor() -> None:
    @ms.jit
    def checked(x):
        assert x.sum() < 5, "too large"
        return x * W

    assert checked(tensor([1, 1, 1])).asnumpy().tolist() == [0.5, -1.0, 2.0]
    with pytest.raises(AssertionError, match=r"^too large"):
        checked(tensor(X))
    assert is_single_graph(checked)


def test_numbers_of_tensors_stay_in_the_graph() -> None:
    @ms.jit
    def scaled(x):
        total = float(x.sum())
        n = int((x > 1).sum())
        return x * total + n, total, x.max().item(), bool(x.any()), n

    for values in (X, [-1.0, 0.0, 1.0]):
        x = tensor(values)
        out, total, largest, some, n = scaled(x)
        count = int((x.asnumpy() > 1).sum())
        np.testing.assert_allclose(out.asnumpy(), x.asnumpy() * x.asnumpy().sum() + count)
        assert (total, largest, some, n) == (float(x.asnumpy().sum()), max(values), True, count)
        assert [type(v) for v in (total, largest, some, n)] == [float, float, bool, int]
    assert is_single_graph(scaled)


def test_a_float16_tensor_and_a_carried_number() -> None:
    def halved(x):
        n, rate = 0, 1.5
        while x.sum() > 1:
            x = x * 0.5
            n = n + 1
            rate = rate * 0.7
        return x * rate + n

    call = ms.jit(halved)
    for dtype in (ms.float16, ms.float32, ms.int32):
        x = Tensor(np.array([2, 4, 6]), dtype) if dtype is not ms.int32 else Tensor(np.array([0, 0, 0]), dtype)
        assert call(x).dtype == halved(x).dtype
        np.testing.assert_array_equal(call(x).asnumpy(), halved(x).asnumpy())


def gradient_of(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return ops.grad(lambda v: (ops.grad(function)(v) * ops.grad(function)(v)).sum())


def branched(x):
    y = x * x * W if x.sum() > 0 else ops.exp(x) * W
    return (y * y).sum()


def looped(x):
    i = Tensor(0)
    while i < 3:
        x = x * x * 0.3 + W
        i = i + 1
    return (x * x).sum()


def counted(x):
    for _ in range((x > 0).sum()):
        x = ops.tanh(x * W) + x
    return x.sum()


def mixed(x):
    i = Tensor(0)
    while i < 2:
        if x.sum() > 0:
            x = x * x * 0.2
        else:
            x = ops.sin(x) * W
        i = i + 1
    return (x * x).sum()


@pytest.mark.parametrize("function", [branched, looped, counted, mixed], ids=lambda f: f.__name__)
def test_gradients_of_gradients(function: Callable[[Any], Any]) -> None:
    second = gradient_of(function)
    call = ms.jit(lambda x: second(x))
    for values in (X, [-1.0, -2.0, -3.0], [0.1, 0.2, -0.1]):
        np.testing.assert_allclose(call(tensor(values)).asnumpy(), second(tensor(values)).asnumpy(), rtol=1e-5)
    assert is_single_graph(call)


def test_globals_stay_live() -> None:
    global FACTOR

    @ms.jit
    def scaled(x):
        if x.sum() > 0:
            x = x * FACTOR
        return x

    try:
        assert scaled(tensor(X)).asnumpy().tolist() == [2.0, 4.0, 6.0]
        FACTOR = 3.0
        assert scaled(tensor(X)).asnumpy().tolist() == [3.0, 6.0, 9.0]
    finally:
        FACTOR = 2.0


def test_code_typed_at_a_prompt() -> None:
    text = "def typed(x):\n    if x.sum() > 0:\n        return x * 2\n    return x * 3\n"
    linecache.cache["<ipython-input-1-abc>"] = (len(text), None, text.splitlines(keepends=True), "<ipython-input-1-abc>")
    module = types.ModuleType("typed")
    exec(compile(text, "<ipython-input-1-abc>", "exec"), module.__dict__)
    call = ms.jit(module.typed)
    assert [call(tensor(v)).asnumpy().tolist() for v in ([1], [-1])] == [[2.0], [-3.0]]
    assert is_single_graph(call)


def test_a_function_without_source_runs_as_pynative() -> None:
    module = types.ModuleType("lost")
    exec(compile("def lost(x):\n    return x * 2 if x.sum() > 0 else x * 3\n", "<string>", "exec"), module.__dict__)
    call = ms.jit(module.lost)
    assert [call(tensor(v)).asnumpy().tolist() for v in ([1], [-1])] == [[2.0], [-3.0]]
    ms.set_context(jit_syntax_level=ms.STRICT)
    try:
        with pytest.raises(RuntimeError, match="its source is not at hand"):
            ms.jit(module.lost)(tensor([1]))
    finally:
        ms.set_context(jit_syntax_level=ms.LAX)


@pytest.mark.parametrize("level", ["O0", "O1"])
def test_a_jit_function_inside_a_gradient_that_pynative_takes(level: str) -> None:
    def mixed_up(x):
        y = x * W * x if x.sum() > 0 else ops.exp(x)
        i = Tensor(0)
        while i < 3:
            y = ops.tanh(y * x)
            i = i + 1
        return y.sum()

    call = ms.jit(mixed_up, jit_level=level)
    change, expected = ops.value_and_grad(call), ops.value_and_grad(mixed_up)
    compiled = ms.jit(lambda x: change(x))
    for values in (X, [-1.0, -2.0, -3.0]):
        flat_expected = flat(expected(tensor(values)))
        for actual in (change(tensor(values)), compiled(tensor(values))):
            for a, b in zip(flat(actual), flat_expected):
                np.testing.assert_allclose(a, b, rtol=1e-5)
    assert is_single_graph(call) and is_single_graph(compiled)
