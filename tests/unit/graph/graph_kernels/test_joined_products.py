"""`enable_parallel_op_combine` and `parallel_ops_level`: products as one batched product, and kernels joined across the graph."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from support import kernel_launches

COMBINED = "--opt_level=1 --disable_pass=graph_kernel_cluster --enable_parallel_op_combine"
EVERYWHERE = f"{COMBINED} --parallel_ops_level=1"


@pytest.fixture(autouse=True)
def reset_options() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, graph_kernel_flags="")


def data(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.RandomState(seed).randn(*shape), ms.float32)


def call_in_graph(net: nn.Cell, flags: str, *inputs: Tensor) -> tuple[list[np.ndarray], list[str]]:
    """Return the results of a call with these flags, and the kernels that it launches."""
    ms.set_context(mode=ms.GRAPH_MODE, graph_kernel_flags=flags)
    results = net(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    return [result.asnumpy() for result in results], kernel_launches.launched(lambda: net(*inputs))


class Attention(nn.Cell):
    """Three products of one value, with and without a bias."""

    def __init__(self, has_bias: bool = True, sizes: tuple[int, ...] = (8, 8, 8)) -> None:
        super().__init__()
        self.query, self.key, self.value = [
            nn.Dense(8, size, weight_init=data(size, 8, seed=at), bias_init=data(size, seed=at + 9), has_bias=has_bias)
            for at, size in enumerate(sizes)
        ]

    def construct(self, x):  # type: ignore[no-untyped-def]
        return ops.softmax(self.query(x)).sum() * self.key(x).sum() + self.value(x).mean()


class Far(nn.Cell):
    """Independent products of one shape that share nothing."""

    def construct(self, a, b, c, d):  # type: ignore[no-untyped-def]
        first = ops.tanh(ops.matmul(a, b))
        return first + ops.exp(ops.tanh(ops.matmul(c, d)) * 0.1)


class Chain(nn.Cell):
    """Products that wait for each other."""

    def construct(self, x, w):  # type: ignore[no-untyped-def]
        y = ops.matmul(x, w)
        return ops.tanh(ops.matmul(y, w)) + y.sum()


class SharedWeight(nn.Cell):
    """Two values by one weight."""

    def construct(self, a, b, w):  # type: ignore[no-untyped-def]
        return ops.matmul(a, w) * ops.matmul(b, w)


class Results(nn.Cell):
    """Products that are results: the program may write into each."""

    def construct(self, x, v, w):  # type: ignore[no-untyped-def]
        return ops.matmul(x, v), ops.matmul(x, w)


SQUARE = data(4, 4), data(4, 4, seed=1), data(4, 4, seed=2), data(4, 4, seed=3)


@pytest.mark.parametrize(("net", "inputs", "flags", "products"), [
    (Attention, (data(2, 5, 8),), COMBINED, "baddbmm"),
    (lambda: Attention(False), (data(2, 5, 8),), COMBINED, "bmm"),
    (lambda: Attention(True, (8, 4, 4)), (data(2, 5, 8),), COMBINED, "addmm baddbmm"),
    (lambda: Attention(True, (8, 4, 6)), (data(2, 5, 8),), COMBINED, "addmm addmm addmm"),
    (Far, SQUARE, COMBINED, "mm mm"),
    (Far, SQUARE, EVERYWHERE, "stack stack bmm"),
    (Chain, SQUARE[:2], EVERYWHERE, "mm mm"),
    (SharedWeight, SQUARE[:3], COMBINED, "stack bmm"),
    (Results, SQUARE[:3], EVERYWHERE, "mm mm"),
    (Attention, (data(2, 5, 8),), "--opt_level=1 --disable_pass=graph_kernel_cluster", "addmm addmm addmm"),
])  # fmt: skip
def test_the_products_of_a_call(net: Any, inputs: tuple[Tensor, ...], flags: str, products: str) -> None:
    cell = net()
    expected = cell(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    results, launched = call_in_graph(cell, flags, *inputs)
    assert " ".join(name for name in launched if name == "stack" or "mm" in name) == products
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, value.asnumpy(), rtol=1e-5, atol=1e-6)


def test_new_values_of_weights_are_repacked() -> None:
    net, x = Attention(), data(2, 5, 8)
    call_in_graph(net, COMBINED, x)
    for change in (lambda: net.query.weight.set_data(data(8, 8, seed=50)), lambda: ops.assign(net.key.weight, data(8, 8, seed=51)),
                   lambda: net.value.bias.assign_value(data(8, seed=52))):
        change()
        result = net(x).asnumpy()
        with ms.context.scope(mode=ms.PYNATIVE_MODE):
            np.testing.assert_allclose(result, net(x).asnumpy(), rtol=1e-5)


def test_training_gives_the_same_losses() -> None:
    def losses(flags: str) -> list[float]:
        ms.set_context(mode=ms.GRAPH_MODE, graph_kernel_flags=flags)
        net = Attention()
        step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.01, 0.9))
        return [float(step(data(4, 8, seed=number)).asnumpy()) for number in range(6)]

    expected = losses("")
    np.testing.assert_allclose(losses(COMBINED), expected, rtol=1e-5)
    np.testing.assert_allclose(losses(EVERYWHERE), expected, rtol=1e-5)


class Writes(nn.Cell):
    """A weight that is written between two products of it."""

    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(data(4, 4), name="w")

    def construct(self, x):  # type: ignore[no-untyped-def]
        before = ops.tanh(ops.matmul(x, self.w))
        self.w += 1
        return before + ops.tanh(ops.matmul(x, self.w))


@pytest.mark.parametrize("flags", [COMBINED, EVERYWHERE])
def test_a_write_between_two_products(flags: str) -> None:
    net, expected = Writes(), Writes()
    for _ in range(3):
        results, _ = call_in_graph(net, flags, SQUARE[1])           # two calls: one counts the kernels
        with ms.context.scope(mode=ms.PYNATIVE_MODE):
            expected_value = expected(SQUARE[1]).asnumpy()
            expected(SQUARE[1])
        np.testing.assert_allclose(results[0], expected_value, rtol=1e-5)


class Steps(nn.Cell):
    """A generated straight line of products, elementwise operators and reductions."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self.weights = ms.ParameterTuple([Parameter(data(4, 4, seed=seed + at) * 0.5, name=f"w{at}") for at in range(3)])

    def construct(self, x):  # type: ignore[no-untyped-def]
        random = np.random.RandomState(self.seed)
        values = [x, x + 1]
        for _ in range(12):
            kind, a, b = random.randint(5), values[random.randint(len(values))], values[random.randint(len(values))]
            values.append(
                ops.matmul(a, self.weights[random.randint(3)]) if kind < 2 else ops.matmul(a, b) * 0.3 if kind == 2
                else ops.tanh(a) if kind == 3 else a - b * 0.5
            )
        return sum(ops.tanh(value).sum() for value in values)


@pytest.mark.parametrize("seed", range(4))
def test_generated_programs(seed: int) -> None:
    net = Steps(seed)
    step = ms.value_and_grad(net, 0, net.weights)
    value, (inner, weights) = step(SQUARE[0])
    with_kernels = "--opt_level=3 --enable_parallel_op_combine --parallel_ops_level=1"
    for flags in (EVERYWHERE, f"{EVERYWHERE} --enable_pass=parallel_fusion", with_kernels):
        ms.set_context(mode=ms.GRAPH_MODE, graph_kernel_flags=flags)
        result, (inner_result, weight_results) = step(SQUARE[0])
        for actual, target in zip((result, inner_result, *weight_results), (value, inner, *weights), strict=True):
            np.testing.assert_allclose(actual.asnumpy(), target.asnumpy(), rtol=1e-4, atol=1e-5)


class Apart(nn.Cell):
    """Small kernels of one shape in different layers, of which none waits for another."""

    def construct(self, a, b, c, w):  # type: ignore[no-untyped-def]
        early = ops.matmul(ops.tanh(a * 2) + 1, w)
        late = ops.exp(ops.matmul(c, ops.relu(b * 2) + 1) * 0.1) - 1
        return early, late


@pytest.mark.parametrize(("flags", "launched"), [
    ("--opt_level=3", "generated generated generated mm mm"),
    ("--opt_level=3 --parallel_ops_level=1", "generated generated mm mm"),
    ("--opt_level=3 --parallel_ops_level=1 --enable_parallel_fusion=false", "generated generated generated mm mm"),
])
def test_kernels_of_different_layers_become_one(flags: str, launched: str) -> None:
    net = Apart()
    inputs = SQUARE[0], data(9, 4), data(4, 9), SQUARE[1]
    expected = net(*inputs)
    results, names = call_in_graph(net, flags, *inputs)
    assert sorted(names) == sorted(launched.split())
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, value.asnumpy(), rtol=1e-5)
