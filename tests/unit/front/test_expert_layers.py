"""FFN and FFNExt: two products with an activation between them, also of several experts, and their strategies."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.api import _cell_graph_executor
from mindspore.ops.auto_generate import FFNExt
from mindspore.ops.operations._inner_ops import FFN

RANDOM = np.random.default_rng(0)


def _random(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.normal(size=shape).astype(np.float32)


def _fast_gelu(x: np.ndarray[Any, Any]) -> Any:
    return x * np.exp(0.851 * (x - np.abs(x))) / (1 + np.exp(-1.702 * np.abs(x)))


@pytest.mark.parametrize("primitive", [FFN, FFNExt])
@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
def test_experts_share_the_rows(primitive: Any, mode: int) -> None:
    ms.set_context(mode=mode)
    x, w1, w2, b1, b2 = _random(6, 4), _random(3, 4, 8), _random(3, 8, 4), _random(3, 8), _random(3, 4)
    tokens = np.array([2, 0, 3], np.int64)
    expected = np.zeros((6, 4), np.float32)
    for row, expert in enumerate([0, 0, 2, 2, 2]):
        expected[row] = _fast_gelu(x[row] @ w1[expert] + b1[expert]) @ w2[expert] + b2[expert]
    result = primitive("fastgelu", 1)(*map(Tensor, (x, w1, w2, tokens, b1, b2)))
    assert np.allclose(result.asnumpy(), expected, atol=1e-5)
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.parametrize("activation,function", [("fastgelu", _fast_gelu), ("relu", lambda x: np.maximum(x, 0))])
def test_one_layer(activation: str, function: Any) -> None:
    x, w1, w2, b1 = _random(2, 3, 4), _random(4, 8), _random(8, 4), _random(8)
    result = FFN(activation, 0)(Tensor(x), Tensor(w1), Tensor(w2), None, Tensor(b1))
    assert np.allclose(result.asnumpy(), function(x @ w1 + b1) @ w2, atol=1e-5)


@pytest.mark.parametrize("arguments,keywords,expected", [
    (("tanh", 0), {}, r"FFN\(activation='tanh'\): expected fastgelu, gelu, relu, silu"),
    (("relu", 2), {}, "expected 0 or 1; both compute the sums in float32"),
    (("relu", 0), {"scale": Tensor(1.0)}, r"FFN of x float32 and weights float32: expected scale, deq_scale1 and deq_scale2 for x of int8"),
    (("relu", 0), {"antiquant_scale1": Tensor(1.0)}, "antiquant_scale1 and antiquant_scale2 for weights of int8 alone"),
    (("relu", 0), {"expert_tokens": Tensor([1])}, r"expected \(H, F\) and \(F, H\), or with expert_tokens"),
])
def test_refusals(arguments: Any, keywords: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        FFN(*arguments)(Tensor(_random(2, 4)), Tensor(_random(4, 8)), Tensor(_random(8, 4)), **keywords)


def test_numbers_of_tokens_for_another_number_of_experts() -> None:
    with pytest.raises(ValueError, match=r"expected \(2,\), a number for each expert"):
        FFN("relu", 0)(Tensor(_random(2, 4)), Tensor(_random(2, 4, 8)), Tensor(_random(2, 8, 4)), Tensor([1, 1, 0]))


def test_the_inner_axis_is_split() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.ffn = FFN("fastgelu", 1).shard(((1, 1), (1, 1, 8), (1, 8, 1), (1,), (1, 8), (1, 1)))
            shapes = {"w1": (2, 4, 16), "w2": (2, 16, 4), "b1": (2, 16), "b2": (2, 4)}
            self.w1, self.w2, self.b1, self.b2 = (Parameter(Tensor(_random(*shape)), name=name) for name, shape in shapes.items())

        def construct(self, x: Tensor, tokens: Tensor) -> Tensor:
            return self.ffn(x, self.w1, self.w2, tokens, self.b1, self.b2)

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    net = Net()
    _cell_graph_executor.compile(net, Tensor(_random(6, 4)), Tensor([2, 4]))
    parts = {name: layout[2] for name, layout in net.parameter_layout_dict.items()}
    assert parts == {"w1": [2, 4, 2], "w2": [2, 2, 4], "b1": [2, 2], "b2": [2, 4]}


def test_index_and_slices() -> None:
    from mindspore.ops.auto_generate import Index, MaxDim, MinDim, SliceExt

    x = Tensor(np.arange(12).reshape(3, 4))
    assert Index()(x, (Tensor([0, 2]), Tensor([1, 3]))).asnumpy().tolist() == [1, 11]
    assert SliceExt()(x, 1, 1, 4, 2).asnumpy().tolist() == [[1, 3], [5, 7], [9, 11]]
    assert [t.asnumpy().tolist() for t in MaxDim()(x, 0, True)] == [[[8, 9, 10, 11]], [[2, 2, 2, 2]]]
    assert [t.asnumpy().tolist() for t in MinDim()(x, 1)] == [[0, 4, 8], [0, 0, 0]]
    with pytest.raises(TypeError, match="expected a Tensor"):
        ops.auto_generate.SliceExt()(1, 0, 0, 1, 1)


def test_weights_of_int8() -> None:
    x = _random(5, 4)
    w1, w2 = (np.arange(-8, 24, dtype=np.int8).reshape(shape) for shape in ((4, 8), (8, 4)))
    scales, offset = [np.full(n, 0.1, np.float32) for n in (8, 4)], np.full(8, 2, np.float32)
    result = FFN("relu", 0)(
        Tensor(x), Tensor(w1), Tensor(w2), antiquant_scale1=Tensor(scales[0]), antiquant_scale2=Tensor(scales[1]),
        antiquant_offset1=Tensor(offset),
    )
    assert np.allclose(result.asnumpy(), np.maximum(x @ ((w1 + 2.0) * 0.1), 0) @ (w2 * 0.1), rtol=1e-4)


def test_rows_of_int8_of_two_experts() -> None:
    x = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    w1, w2 = np.ones((2, 4, 8), np.int8), np.ones((2, 8, 4), np.int8)
    w1[1], scale = 2, np.array([0.5, 0.25], np.float16)
    deq = np.full((2, 8), 0.5, np.float32), np.full((2, 4), 2.0, np.float32)
    packed = deq[0].view(np.uint32).astype(np.uint64)                  # the form of Ascend's matrix unit
    result = FFN("relu", 0)(
        Tensor(x), Tensor(w1), Tensor(w2), Tensor([1, 2]), scale=Tensor(scale), deq_scale1=Tensor(packed), deq_scale2=Tensor(deq[1]),
    )
    expected = []
    for row, expert in zip(x, (0, 1, 1)):
        hidden = np.maximum(row.astype(int) @ w1[expert].astype(int) * 0.5, 0) * float(scale[expert])
        expected.append(np.clip(np.round(hidden), -128, 127) @ w2[expert].astype(int) * 2.0)
    assert str(result.dtype) == "Float16" and np.array_equal(result.asnumpy(), np.array(expected, np.float16))
