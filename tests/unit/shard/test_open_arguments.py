"""`compile` of a split graph for Tensors with open lengths: layouts and refusals are those of representative lengths."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Symbol, Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor

from torchspore.errors import StrategyRefused


class _Net(nn.Cell):
    def __init__(self, strategy: Any) -> None:
        super().__init__()
        self.scale = ops.Mul().shard(strategy)
        self.weight = Parameter(Tensor(np.ones(16, np.float32)), name="weight")

    def construct(self, x: Tensor) -> Tensor:
        return self.scale(x, self.weight)


def _compile(length: Any, strategy: Any) -> _Net:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    net = _Net(strategy)
    _cell_graph_executor.compile(net, Tensor(shape=[length, 16], dtype=ms.float32))
    return net


@pytest.mark.parametrize("length,cut", [
    (Symbol(divisor=8), 4), (Symbol(divisor=4, max=8), 4), (None, 1), (Symbol(divisor=4, unique=True), 4),
])
def test_layouts(length: Any, cut: int) -> None:
    assert _compile(length, ((cut, 2), (2,))).parameter_layout_dict["weight"][2] == [8]


@pytest.mark.parametrize("length", [Symbol(divisor=2), None, Symbol(divisor=4, remainder=1)])
def test_a_length_that_the_parts_need_not_divide_is_refused(length: Any) -> None:
    with pytest.raises(StrategyRefused, match="expected a number that divides"):
        _compile(length, ((4, 2), (2,)))


def test_an_open_length_is_that_of_a_parameter_if_the_usual_one_does_not_fit() -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    net = _Net(((1, 1), (1,)))
    _cell_graph_executor.compile(net, Tensor(shape=[8, None], dtype=ms.float32))
    assert net.parameter_layout_dict["weight"][2] == [16]


def test_optimizers_name_their_sparse_primitive() -> None:
    parameters = [Parameter(Tensor(np.ones(2, np.float32)), name="weight")]
    for optimizer, name in (
        (nn.LazyAdam, "FusedSparseLazyAdam"), (nn.Adam, "FusedSparseAdam"), (nn.FTRL, "SparseApplyFtrl"),
        (nn.ProximalAdagrad, "SparseApplyProximalAdagrad"),
    ):
        assert optimizer(parameters).sparse_opt.set_device("CPU").name == name


@pytest.mark.parametrize("word", ["", "Device", "DEVICE"])
def test_set_device_takes_words_for_the_device_of_the_context(word: str) -> None:
    assert ops.Gather().set_device(word).primitive_target == ms.get_context("device_target")


def test_lengths_that_do_not_fit_together_are_no_error() -> None:
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    net = _Net(((1, 1), (1,)))
    _cell_graph_executor.compile(net, Tensor(shape=[8, Symbol(divisor=5, min=10)], dtype=ms.float32))
    assert net.parameter_layout_dict == {}


def test_an_axis_of_devices_of_length_one_is_no_cut() -> None:
    layout = ms.Layout((4, 1, 2), ("dp", "sp", "mp"))
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.add = ops.Add().shard((layout("sp", "mp"), layout("dp", "mp")))
            self.weight = Parameter(Tensor(np.ones((16, 16), np.float32)), name="weight")

        def construct(self, x: Tensor) -> Tensor:
            return self.add(x, self.weight)

    net = Net()
    _cell_graph_executor.compile(net, Tensor(shape=[Symbol(divisor=1), 16], dtype=ms.float32))
    assert net.parameter_layout_dict["weight"][2] == [4, 8]


@pytest.mark.parametrize("name", ["Add", "ReLU", "Softmax", "Squeeze"])
def test_a_layout_of_the_result_is_refused_where_mindspore_refuses_it(name: str) -> None:
    layout = ms.Layout((4, 2), ("dp", "mp"))
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    inputs = 2 if name == "Add" else 1
    operator = getattr(ops, name)().shard((layout("dp", "None"),) * inputs, (layout("dp", "None"),))

    class Net(nn.Cell):
        def construct(self, *x: Tensor) -> Tensor:
            return operator(*x)

    with pytest.raises(StrategyRefused, match="expected no out_strategy, as the layouts of its inputs say it"):
        _cell_graph_executor.compile(Net(), *[Tensor(np.ones((16, 16), np.float32))] * inputs)


def _compiled(operator: Any, *inputs: Tensor) -> None:
    class Net(nn.Cell):
        def construct(self, *x: Any) -> Any:
            return operator(*x)

    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    _cell_graph_executor.compile(Net(), *inputs)


@pytest.mark.parametrize("shape,multiples,before,is_refused", [
    ((128, 1, 32), (1, 64, 1), ("dp", "None", "mp"), False), ((64, 2, 16), (2, 2, 2), ("None", "None", "None"), False),
    ((64, 2, 16), (2, 2, 2), ("dp", "None", "None"), True), ((64, 2, 16), (2, 3, 2), ("None", "None", "None"), True),
])
def test_a_layout_of_the_result_of_tile_may_cut_the_repeats(shape: Any, multiples: Any, before: Any, is_refused: bool) -> None:
    layout = ms.Layout((2, 2, 2), ("dp", "cp", "mp"))
    tile = ops.Tile().shard((layout(*before),), (layout("dp", "cp", "mp"),))
    x = Tensor(np.ones(shape, np.float32))
    if is_refused:
        with pytest.raises(StrategyRefused):
            _compiled(lambda x: tile(x, multiples), x)
    else:
        _compiled(lambda x: tile(x, multiples), x)


def test_none_among_names_is_no_axis() -> None:
    layout = ms.Layout((2, 2, 2), ("dp", "sp", "mp"))
    product = ops.MatMul().shard((layout("dp", ("sp", "None")), layout(("sp", "None"), "mp")), (layout(("dp", "sp", "None"), "mp"),))
    _compiled(product, *[Tensor(np.ones((16, 16), np.float32))] * 2)
