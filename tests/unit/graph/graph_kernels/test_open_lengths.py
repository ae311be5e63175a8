"""Kernels for axes of any length: `enable_dynamic_batch` and `enable_dynamic_shape_fusion`."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from support import kernel_compilers, kernel_launches

from torchspore.graph.backend import inductor
from torchspore.graph.report import stages


@pytest.fixture(autouse=True)
def reset_options() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE, graph_kernel_flags="")


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One item for each graph that is compiled."""
    counted: list[int] = []
    emitted = stages.emitted
    monkeypatch.setattr(stages, "emitted", lambda *arguments: (counted.append(1), emitted(*arguments)))
    return counted


class Net(nn.Cell):
    """A product between elementwise operators, a new shape and reductions."""

    def __init__(self) -> None:
        super().__init__()
        self.w = ms.Parameter(Tensor(np.linspace(-1, 1, 64).reshape(8, 8), ms.float32), name="w")

    def construct(self, x, b):
        y = ops.relu(ops.matmul(x, self.w) + b) * 2.0
        y = ops.exp(-y) + ops.sigmoid(y)
        z = y.reshape((-1, 4))
        return (z * z + 1).sum(-1), y.mean(0), y / (x.shape[0] + 1)


class Rows(nn.Cell):
    """Elementwise operators on two open axes."""

    def construct(self, x, b):
        y = ops.tanh(x * 2 + b) - ops.exp(-x)
        return y, (y * y).sum(1)


def data(*shape: int) -> Tensor:
    return Tensor(np.random.RandomState(sum(shape)).randn(*shape), ms.float32)


def check(net: nn.Cell, *inputs: Tensor) -> None:
    """Compare a call with PyNative's."""
    outputs = net(*inputs)
    with ms.context.scope(mode=ms.PYNATIVE_MODE):
        expected = type(net)()(*inputs)
    for output, value in zip(outputs, expected, strict=True):
        assert output.shape == value.shape and output.dtype == value.dtype
        np.testing.assert_allclose(output.asnumpy(), value.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("flags", "net", "shape", "launched"), [
    ("", Net, (None, 8), "mm G div"),
    ("--enable_dynamic_batch=false", Net, (None, 8), "mm add_ relu_ mul neg exp sigmoid add mul add_ sum mean div"),
    ("--enable_dynamic_batch=false --enable_dynamic_shape_fusion", Net, (None, 8), "mm G div"),
    ("", Rows, (None, None), "mul add_ tanh neg exp sub mul sum"),
    ("--enable_dynamic_shape_fusion", Rows, (None, None), "G"),
    ("--enable_dynamic_shape_fusion", Rows, (3, None), "G"),
])  # fmt: skip
def test_one_graph_with_kernels_serves_all_lengths(
    flags: str, net: type[nn.Cell], shape: tuple[Any, ...], launched: str, compilations: list[int]
) -> None:
    ms.set_context(mode=ms.GRAPH_MODE, graph_kernel_flags=f"--opt_level=2 {flags}")
    cell = net()
    cell.set_inputs(Tensor(shape=shape, dtype=ms.float32), Tensor(shape=[8] if net is Net else [1], dtype=ms.float32))
    for rows in (3, 5, 2, 33, 128):
        sizes = [rows + axis if size is None else size for axis, size in enumerate(shape)]
        check(cell, data(*sizes), data(8 if net is Net else 1))
    assert len(compilations) == 1
    inputs = data(*[7 if size is None else size for size in shape]), data(8 if net is Net else 1)
    names = kernel_launches.launched(lambda: cell(*inputs))
    assert " ".join(names).replace("generated", "G") == launched


def test_lengths_that_the_program_does_not_declare(compilations: list[int]) -> None:
    """After several lengths of the first axis one graph serves all, and has kernels."""
    ms.set_context(mode=ms.GRAPH_MODE, graph_kernel_flags="--opt_level=2")
    net = Net()
    for rows in (2, 3, 4, 5, 6, 7, 8, 9, 50):
        check(net, data(rows, 8), data(8))
    assert len(compilations) == 6
    assert "generated" in kernel_launches.launched(lambda: net(data(77, 8), data(8)))


def test_a_condition_of_a_kernel_belongs_to_its_graph(compilations: list[int]) -> None:
    """Inductor may compile for lengths that fulfil a condition; a length that does not gets another graph, and right numbers."""
    ms.set_context(mode=ms.GRAPH_MODE, graph_kernel_flags="--opt_level=2")
    net = Net()
    net.set_inputs(Tensor(shape=[None, 8], dtype=ms.float32), Tensor(shape=[8], dtype=ms.float32))

    def compiler(module: Any, inputs: Any, options: Any) -> Any:
        rows = next(item for item in inputs if item.shape[0] != 8).shape[0]
        assert rows % 4 == 0                                    # a guard on the symbol
        return kernel_compilers.OneByOne()(module, inputs, options)

    with inductor.compiled_by(compiler):
        for rows in (4, 12, 40):
            check(net, data(rows, 8), data(8))
        assert len(compilations) == 1
    for rows in (6, 7, 12):
        check(net, data(rows, 8), data(8))
    assert len(compilations) == 2


def test_gradients_of_open_lengths() -> None:
    ms.set_context(mode=ms.GRAPH_MODE, graph_kernel_flags="--opt_level=2")
    net = Net()
    step = ms.value_and_grad(lambda x, b: sum(part.sum() for part in net(x, b)), (0, 1), net.trainable_params())
    for rows in (2, 3, 4, 5, 6, 7, 30):
        inputs = data(rows, 8), data(8)
        value, (inner, weights) = step(*inputs)
        with ms.context.scope(mode=ms.PYNATIVE_MODE):
            expected, (inner_expected, weights_expected) = step(*inputs)
        for result, target in zip((value, *inner, *weights), (expected, *inner_expected, *weights_expected), strict=True):
            np.testing.assert_allclose(result.asnumpy(), target.asnumpy(), rtol=1e-4, atol=1e-4)


def test_measured_kernels_of_open_lengths() -> None:
    ms.set_context(mode=ms.GRAPH_MODE, graph_kernel_flags="--opt_level=2 --online_tuning=1")
    net = Net()
    net.set_inputs(Tensor(shape=[None, 8], dtype=ms.float32), Tensor(shape=[8], dtype=ms.float32))
    for rows in (3, 64):
        check(net, data(rows, 8), data(8))
