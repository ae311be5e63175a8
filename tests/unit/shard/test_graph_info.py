"""The description of a split graph by MindSpore's operators: exchanges, the inputs of calls, attributes."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Symbol, Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor


def _ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def _describe(net: nn.Cell, *inputs: Any, devices: int = 8, rank: int = 0) -> dict[str, Any]:
    ms.set_auto_parallel_context(
        parallel_mode="semi_auto_parallel", device_num=devices, global_rank=rank, dataset_strategy="full_batch",
    )
    phase, _ = _cell_graph_executor.compile(net, *inputs)
    ms.reset_auto_parallel_context()
    operators: dict[str, Any] = _cell_graph_executor._graph_executor.get_parallel_graph_info(phase)["@graph_0"]
    return operators


class _Chain(nn.Cell):
    """Calls operators one after the other."""

    def __init__(self, *operators: Any) -> None:
        super().__init__()
        self.operators = operators

    def construct(self, x: Tensor) -> Tensor:
        for operator in self.operators:
            x = operator(x)
        return x


@pytest.mark.parametrize("rank,begin", [(0, 0), (5, 1)])
def test_a_device_takes_its_part_by_a_strided_slice(rank: int, begin: int) -> None:
    operators = _describe(_Chain(ops.ReLU().shard(((2, 1),))), _ones(8, 4), rank=rank)
    assert operators["TupleGetItem-0"]["inputs"] == ["MakeTuple-0", 0]
    part = ["TupleGetItem-0", f"({4 * begin}, 0)", f"({4 * begin + 4}, 4)", "(1, 1)", 0, 0, 0, 0, 0]
    assert operators["StridedSlice-0"]["inputs"] == part
    assert operators["ReLU-0"]["inputs"] == ["StridedSlice-0"]


@pytest.mark.parametrize("strategy,last", [((8, 1), "AllGather-0"), ((1, 2), "Concat-0")])
def test_parts_are_gathered_along_the_first_axis_and_concatenated_along_others(strategy: Any, last: str) -> None:
    operators = _describe(_Chain(ops.ReLU().shard((strategy,)), ops.Softmax().shard(((1, 1),))), _ones(8, 4))
    assert operators["AllGather-0"]["inputs"] == ["ReLU-0"] and operators["Softmax-0"]["inputs"][0] == last
    assert ("Split-0" in operators) == (last == "Concat-0")
    if last == "Concat-0":
        assert operators["Split-0"]["inputs"] == ["AllGather-0", 0, 2]
        assert operators["MakeTuple-1"]["inputs"] == ["TupleGetItem-1", "TupleGetItem-2"]
        assert operators["Concat-0"]["inputs"] == ["MakeTuple-1", 1]
        assert operators["AllGather-0"]["attrs"] == {"rank_size": 2, "rank_list": "(0, 4)", "group_ranks": "0-4"}


def test_a_part_of_an_open_length_is_split() -> None:
    operators = _describe(_Chain(ops.ReLU().shard(((2, 1),))), Tensor(shape=[Symbol(divisor=8), 4], dtype=ms.float32), rank=4)
    assert operators["Split-0"]["inputs"] == ["TupleGetItem-0", 0, 2] and operators["TupleGetItem-1"]["inputs"] == ["Split-0", 1]
    assert operators["ReLU-0"]["inputs"] == ["TupleGetItem-1"]


class _Product(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(_ones(4, 8), name="weight")
        self.product = ops.MatMul(transpose_b=True).shard(((4, 1), (1, 1)))
        self.constant = _ones(8, 4)
        self.join = ops.Concat(1).shard(((4, 1), (4, 1)))

    def construct(self, x: Tensor) -> Tensor:
        product = self.product(x, self.weight)
        return self.join((product, self.constant))


def test_arguments_of_a_call_keep_their_form() -> None:
    operators = _describe(_Product(), _ones(8, 8))
    assert operators["MatMul-0"]["inputs"] == ["StridedSlice-0", "weight", False, True]
    assert operators["Concat-0"]["inputs"] == ["MakeTuple-1"] and operators["MakeTuple-1"]["inputs"] == ["MatMul-0", "_GetTensorSlice-0"]
    attributes = operators["MatMul-0"]["attrs"]
    assert (attributes["device_matrix"], attributes["inputs_tensor_map"]) == ("(4, 1, 1, 2)", "((3, -1), (-1, -1))")


def test_weights_whose_gradients_are_summed_have_a_mirror() -> None:
    net = _step(_Product())
    operators = _describe(net, _ones(8, 8))
    assert operators["MatMul-0"]["inputs"][1] == "_MirrorOperator-0"
    assert operators["_MirrorOperator-0"] == {"inputs": ["weight"], "attrs": {"dev_num": 8}}
    assert operators["MatMulGrad-0"]["inputs"] and "MatMul-1" not in operators


def _step(net: nn.Cell) -> nn.Cell:
    return nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))


@pytest.mark.parametrize("rank,sent,received", [
    (0, "[0, 1, 0, 1]", "[0, 1, 0, 1]"), (1, "[0, 1, 1, 1]", "[0, 1, 1, 1]"), (7, "[1, 0, 1, 0]", "[1, 0, 1, 0]"),
])
def test_borders_of_a_convolution(rank: int, sent: str, received: str) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Parameter(_ones(2, 1, 3, 3), name="weight")
            self.convolution = ops.Conv2D(2, 3, pad_mode="same").shard(((1, 1, 2, 4), (1, 1, 1, 1)))

        def construct(self, x: Tensor) -> Tensor:
            return self.convolution(x, self.weight)

    operators = _describe(Net(), _ones(1, 1, 8, 16), rank=rank)
    attributes = operators["NeighborExchangeV2-0"]["attrs"]
    assert (attributes["send_lens"], attributes["recv_lens"]) == (sent, received)
    assert operators["Conv2D-0"]["inputs"][0] == "NeighborExchangeV2-0"
