"""Calls of linear, matmul and layer_norm in place of their parts: equal bits, fewer calls, and graphs in which they do not fit."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

from torchspore.graph.dispatch import graphs
from torchspore.graph.passes.composite_calls import call_composites

_aten = torch.ops.aten
rows = np.random.RandomState(0)


@pytest.fixture(autouse=True)
def graph_mode() -> Any:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def random(*shape: int) -> Tensor:
    return Tensor(rows.randn(*shape).astype(np.float32))


class Net(nn.Cell):
    """Calls a function with a Dense layer and a LayerNorm."""

    def __init__(self, function: Callable[..., Any], has_bias: bool = True) -> None:
        super().__init__()
        self.function, self.dense, self.norm = function, nn.Dense(6, 4, has_bias=has_bias), nn.LayerNorm((6,))

    def construct(self, *arguments):
        return self.function(self, *arguments)


def calls_of(net: Net, *arguments: Tensor) -> Counter[str]:
    """Run the net in both modes, compare the bits, and count the operators of its code."""
    ms.set_context(mode=ms.PYNATIVE_MODE)
    expected = net(*arguments)
    ms.set_context(mode=ms.GRAPH_MODE)
    result = net(*arguments)
    for ours, theirs in zip(*(value if isinstance(value, tuple) else (value,) for value in (result, expected)), strict=True):
        np.testing.assert_array_equal(ours.asnumpy(), theirs.asnumpy())
    (graph,) = graphs(net)
    return operators_of(graph)


def operators_of(graph: Any) -> Counter[str]:
    return Counter(node.target._opname for node in graph.module.graph.nodes if hasattr(node.target, "_opname"))


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("shape", [(3, 6), (2, 3, 6), (2, 1, 3, 6), (1, 1, 6)])
def test_dense_is_one_call(shape: tuple[int, ...], has_bias: bool) -> None:
    calls = calls_of(Net(lambda self, x: self.dense(x), has_bias), random(*shape))
    expected = {"linear": 1} if has_bias or len(shape) > 2 else {"t": 1, "mm": 1}
    assert calls == expected


def test_a_dense_of_an_image_with_other_strides() -> None:
    calls = calls_of(Net(lambda self, x: self.dense(x.transpose(0, 2, 1))), random(2, 6, 3))
    assert calls["linear"] == 0 and calls["bmm"] == 1


def test_layer_norm_without_its_statistics() -> None:
    assert calls_of(Net(lambda self, x: self.norm(x)), random(5, 6)) == {"layer_norm": 1}


@pytest.mark.parametrize("shapes", [((2, 3, 4, 5), (2, 3, 5, 6)), ((2, 1, 3, 4, 5), (2, 1, 3, 5, 2))])
def test_matmul_of_several_batch_axes(shapes: tuple[tuple[int, ...], ...]) -> None:
    assert calls_of(Net(lambda self, a, b: ops.matmul(a, b)), *(random(*shape) for shape in shapes)) == {"matmul": 1}


@pytest.mark.parametrize("shapes", [
    ((2, 3, 4, 5), (1, 3, 5, 6)), ((3, 4, 5), (2, 3, 5, 6)), ((2, 3, 4, 5), (5, 6)), ((4, 5), (2, 3, 5, 6)),
])
def test_matmul_that_broadcasts(shapes: tuple[tuple[int, ...], ...]) -> None:
    calls_of(Net(lambda self, a, b: ops.matmul(a, b)), *(random(*shape) for shape in shapes))


def test_a_product_of_one_operand_with_itself() -> None:
    calls_of(Net(lambda self, a: ops.matmul(a, a)), random(2, 3, 4, 4))


def test_a_folded_result_with_other_lengths() -> None:
    calls = calls_of(Net(lambda self, x: self.dense(x.reshape(-1, 6)).reshape(3, 2, 4)), random(2, 3, 6))
    assert calls["linear"] == 1 and calls["view"] == 2


def test_intermediate_values_that_are_read_elsewhere() -> None:
    def function(self, x):
        folded = x.reshape(-1, 6)
        product = self.dense(folded)
        return product.reshape(2, 3, 4), product + 1, folded * 2

    calls_of(Net(function), random(2, 3, 6))


def test_writes_into_a_result_that_is_a_view_act_as_in_pynative() -> None:
    values = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        x = Tensor(np.zeros((2, 3), np.float32))
        result, turned = Net(lambda self, x: (x.reshape(2, 3), x.reshape(2, 3).reshape(3, 2)))(x)
        result[0, 0] = 7.0
        turned[2, 1] = 8.0
        values.append([item.asnumpy().tolist() for item in (x, result, turned)])
    assert values[0] == values[1]


def test_gradients_have_pynatives_bits() -> None:
    net = Net(lambda self, x: ops.gelu(self.dense(self.norm(x))).sum())
    x = random(2, 3, 6)
    gradient = ms.grad(net, grad_position=0, weights=net.trainable_params())
    graph_result = gradient(x)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    pynative_result = ms.grad(net, grad_position=0, weights=net.trainable_params())(x)
    np.testing.assert_array_equal(graph_result[0].asnumpy(), pynative_result[0].asnumpy())
    for ours, theirs in zip(graph_result[1], pynative_result[1], strict=True):
        np.testing.assert_array_equal(ours.asnumpy(), theirs.asnumpy())


def test_open_lengths_add_no_conditions() -> None:
    net = Net(lambda self, x: ops.matmul(self.dense(x).reshape(2, 1, -1, 4), self.dense(x).reshape(2, 1, -1, 4).swapaxes(2, 3)))
    for length in (*range(2, 9), 31, 17):
        x = random(2, length, 6)
        result = net(x)
        ms.set_context(mode=ms.PYNATIVE_MODE)
        np.testing.assert_array_equal(result.asnumpy(), net(x).asnumpy())
        ms.set_context(mode=ms.GRAPH_MODE)
    last = graphs(net)[-1]
    assert last.has_open_lengths and last.runs >= 4
    calls = operators_of(last)
    assert calls["linear"] >= 1 and calls["matmul"] == 1 and calls["bmm"] == 0


def test_a_write_between_the_product_and_its_view() -> None:
    graph = torch.fx.Graph()
    x, weight, bias = map(graph.placeholder, ("x", "weight", "bias"))
    values = {x: torch.ones(2, 3, 6), weight: torch.ones(4, 6), bias: torch.zeros(4)}

    def call(target: Any, *arguments: Any) -> Any:
        node = graph.call_function(target, arguments)
        values[node] = node.meta["val"] = target(*[values.get(a, a) if isinstance(a, torch.fx.Node) else a for a in arguments])
        return node

    for node, value in values.items():
        node.meta["val"] = value
    product = call(_aten.addmm.default, bias, call(_aten.view.default, x, [6, 6]), call(_aten.t.default, weight))
    written = graph.call_function(_aten.zero_.default, (x,))
    written.meta["val"] = values[x]
    graph.output((call(_aten.view.default, product, [2, 3, 4]),))
    module = call_composites(torch.fx.GraphModule({}, graph))
    assert [node.target for node in module.graph.nodes if node.op == "call_function"] == [_aten.linear.default, _aten.zero_.default]
    (result,) = module(torch.ones(2, 3, 6), torch.ones(4, 6), torch.zeros(4))
    assert torch.equal(result, torch.full((2, 3, 4), 6.0))
