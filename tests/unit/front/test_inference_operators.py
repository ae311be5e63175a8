"""Operators of inference that MindSpore has on Ascend alone: routing of experts, quantized products, caches, rotated positions."""
from __future__ import annotations

import contextlib
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.common.api import _cell_graph_executor
from mindspore.ops.auto_generate import (
    ApplyRotaryPosEmb,
    DropoutExt,
    MoeComputeExpertTokens,
    MoeFinalizeRouting,
    MoeInitRouting,
    PagedAttention,
    PagedAttentionMask,
    RotaryPositionEmbedding,
)
from mindspore.ops.auto_generate.gen_ops_prim import Convolution
from mindspore.ops.operations._infer_ops import (
    DynamicQuantExt,
    FusedInferAttentionScore,
    KVCacheScatterUpdate,
    MoeGatingTopKSoftmax,
    QuantBatchMatmul,
    QuantV2,
    WeightQuantBatchMatmul,
)
from mindspore.ops.operations._inner_ops import AntiQuant, Dequant, Quant

from torchspore.errors import StrategyRefused

_RANDOM = np.random.default_rng(0)


def _random(*shape: int) -> Any:
    return _RANDOM.normal(size=shape).astype(np.float32)


def test_experts_of_tokens_and_back() -> None:
    x, logits = _random(5, 4), _random(5, 3)
    scales, experts, rows = MoeGatingTopKSoftmax()(Tensor(logits), None, 2)
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    order = np.argsort(-softmax, -1, kind="stable")[:, :2]
    assert np.array_equal(experts.asnumpy(), order) and np.allclose(scales.asnumpy(), np.take_along_axis(softmax, order, -1), rtol=1e-6)
    assert np.array_equal(rows.asnumpy(), np.arange(10).reshape(2, 5).T)
    sorted_x, positions, sorted_experts = MoeInitRouting()(Tensor(x), rows, experts, 5)
    counts = MoeComputeExpertTokens()(sorted_experts, 3).asnumpy()
    assert np.array_equal(counts, np.cumsum(np.bincount(order.ravel(), minlength=3)))
    bias, skip = _random(3, 4), _random(5, 4)
    result = MoeFinalizeRouting()(sorted_x, Tensor(x), Tensor(skip), Tensor(bias), scales, positions, experts)
    expected = x + skip + sum(scales.asnumpy()[:, k, None] * (x + bias[order[:, k]]) for k in range(2))
    assert np.allclose(result.asnumpy(), expected, atol=1e-5)


def test_finished_tokens_belong_to_no_expert() -> None:
    experts = MoeGatingTopKSoftmax()(Tensor(_random(2, 3)), Tensor([True, False]), 2)[1].asnumpy()
    assert experts[0].tolist() == [3, 3] and experts[1].max() < 3


def test_the_example_of_mindspore() -> None:
    rows = np.array([[0.1] * 4, [0.2] * 4, [0.3] * 4] * 2, np.float16)
    bias = np.array([[0.1] * 4, [0.2] * 4, [0.3] * 4, [0.4] * 4], np.float16)
    result = MoeFinalizeRouting()(
        Tensor(rows), Tensor(np.array([[1] * 4, [0.2] * 4, [0.3] * 4], np.float16)), None, Tensor(bias),
        Tensor(np.array([[0.7, 0.3], [0.8, 0.2], [0.8, 0.2]], np.float16)), Tensor([2, 3, 1, 0, 5, 4], ms.int32),
        Tensor([[0, 1], [0, 2], [1, 3]], ms.int32),
    )
    assert np.allclose(result.asnumpy()[:, 0], [1.37, 0.48, 0.74], atol=1e-3)


def test_quantized_numbers() -> None:
    assert QuantV2()(Tensor([100.0, 1.5]), Tensor([80.0, 4.0]), Tensor([0.0, 2.0]), False, "Round", ms.int8).asnumpy().tolist() == [127, 8]
    values, scales = DynamicQuantExt()(Tensor([[1.0, -2.0], [0.0, 0.0]]))
    assert values.asnumpy().tolist() == [[64, -127], [0, 0]] and np.allclose(scales.asnumpy(), [2 / 127, 0])


def test_quantized_numbers_of_constructors() -> None:
    x, scale = Tensor(np.array([0.2, -3.3, 100], np.float32)), Tensor(np.array([0.5, 2], np.float32))
    assert Quant(2.0, 1.0)(x).asnumpy().tolist() == [1, -6, 127] and Quant(2.0, 1.0, True)(x).asnumpy().tolist() == [2, -12, 127]
    with pytest.raises(ValueError, match="Quant\\(round_mode='Floor'\\): expected 'Round'"):
        Quant(2.0, 1.0, False, "Floor")(x)
    integers = Tensor(np.array([[2, -3]], np.int32))
    assert Dequant()(integers, scale).asnumpy().tolist() == [[1, -6]] and Dequant()(integers, scale).dtype == ms.float16
    assert Dequant(True, True, ms.float32)(integers, scale).asnumpy().tolist() == [[0.5, 0]]
    packed = Tensor(scale.asnumpy().view(np.uint32).astype(np.uint64))
    assert Dequant()(integers, packed).asnumpy().tolist() == [[1, -6]]
    small, offset = Tensor(np.array([2, -3], np.int8)), Tensor([1.0])
    assert AntiQuant()(small, Tensor([0.5]), offset).asnumpy().tolist() == [1.5, -1]
    assert AntiQuant(True, ms.float32)(small, Tensor([0.5]), offset).asnumpy().tolist() == [0.75, -0.5]


def test_generated_convolution() -> None:
    x, weight = Tensor(_random(2, 3, 5, 5)), Tensor(_random(4, 3, 2, 2))
    convolution, bias = Convolution(), Tensor(_random(4))
    expected = ms.ops.conv2d(x, weight, bias, 2, "pad", 1, 1, 1)
    assert np.allclose(convolution(x, weight, bias, 2, 1).asnumpy(), expected.asnumpy(), atol=1e-5)
    wider = convolution(x, Tensor(_random(3, 4, 2, 2)), None, (2, 2), (0, 0), (1, 1), True, (1, 1), 1)
    assert wider.shape == (2, 4, 11, 11)


@pytest.mark.parametrize("call,strategy,is_refused", [
    (lambda: Convolution(), ((2, 2, 1, 1), (2, 2, 1, 1)), False), (lambda: Convolution(), ((1, 1, 8, 1), (1, 1, 1, 1)), True),
    (lambda: Convolution(), ((1, 1, 1, 8), (1, 1, 1, 1)), True),
])
def test_generated_convolutions_split_no_images(call: Any, strategy: Any, is_refused: bool) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=8, dataset_strategy="full_batch")
    try:
        net = _Call(call().shard(strategy))
        with pytest.raises(StrategyRefused) if is_refused else contextlib.nullcontext():
            _cell_graph_executor.compile(net, Tensor(_random(4, 4, 8, 8)), Tensor(_random(8, 4, 3, 3)))
    finally:
        ms.reset_auto_parallel_context()
        ms.set_context(mode=ms.PYNATIVE_MODE)


class _Call(nn.Cell):
    def __init__(self, primitive: Any) -> None:
        super().__init__()
        self.primitive = primitive

    def construct(self, *tensors: Tensor) -> Tensor:
        return self.primitive(*tensors)


@pytest.mark.parametrize("shape,groups", [((3,), 1), ((2, 3), 2), ((1,), 1)])
def test_product_with_a_quantized_matrix(shape: tuple[int, ...], groups: int) -> None:
    x, weight = _random(2, 4), _RANDOM.integers(-9, 9, (4, 3)).astype(np.int8)
    scale, offset = np.abs(_random(*shape)), _random(*shape)
    rows = [np.repeat(t.reshape(groups, -1), 4 // groups, 0) for t in (scale, offset)]
    expected = x @ ((weight + rows[1]) * rows[0])
    for flag in (False, True):
        matrix = weight.T.copy() if flag else weight
        result = WeightQuantBatchMatmul(False, flag)(Tensor(x), Tensor(matrix), Tensor(scale), Tensor(offset))
        assert np.allclose(result.asnumpy(), expected, atol=1e-4)


def test_product_of_integers() -> None:
    x, y = (_RANDOM.integers(-9, 9, shape).astype(np.int8) for shape in ((2, 4), (4, 3)))
    scale, bias, token = np.float32([0.5, 1, 2]), np.int32([1, 2, 3]), np.float32([1, 3])
    result = QuantBatchMatmul(dtype=ms.float16)(Tensor(x), Tensor(y), Tensor(scale), None, Tensor(bias), Tensor(token))
    assert np.array_equal(result.asnumpy(), ((x.astype(int) @ y + bias) * scale * token[:, None]).astype(np.float16))


def test_cache_written_at_positions() -> None:
    cache, new = np.zeros((2, 1, 4, 3), np.float32), _random(2, 1, 2, 3)
    var = Tensor(cache)
    result = KVCacheScatterUpdate()(var, Tensor([1, 2]), Tensor(new), -2, "update")
    cache[0, :, 1:3], cache[1, :, 2:4] = new[0], new[1]
    assert np.array_equal(result.asnumpy(), cache) and np.array_equal(var.asnumpy(), cache)


def test_rotated_queries_and_keys() -> None:
    q, angles = _random(2, 3, 2, 4), _random(2, 3, 1, 4)
    cos, sin = np.cos(angles), np.sin(angles)
    turned = np.concatenate([-q[..., 2:], q[..., :2]], -1)
    expected = q * cos + turned * sin
    got = ApplyRotaryPosEmb(1)(Tensor(q), Tensor(q), Tensor(cos), Tensor(sin), Tensor([3, 3], ms.int32))
    assert all(np.allclose(t.asnumpy(), expected, atol=1e-6) for t in got)
    assert np.allclose(RotaryPositionEmbedding()(Tensor(q), Tensor(cos), Tensor(sin), 0).asnumpy(), expected, atol=1e-6)


@pytest.mark.parametrize("rows", [5, 9])
def test_rotated_positions_of_sequences_one_after_the_other(rows: int) -> None:
    """mindformers' models without padding pass the table of all positions; each sequence begins with its first row."""
    q, angles = _random(5, 8), _random(rows, 4)
    cos, sin = np.cos(angles), np.sin(angles)
    results = ApplyRotaryPosEmb(2)(*[Tensor(q)] * 2, Tensor(cos), Tensor(sin), Tensor([3, 2], ms.int32))
    heads, positions = q.reshape(5, 2, 4), [0, 1, 2, 0, 1]
    turned = np.concatenate([-heads[..., 2:], heads[..., :2]], -1)
    expected = (heads * cos[positions][:, None] + turned * sin[positions][:, None]).reshape(5, 8)
    assert all(np.allclose(result.asnumpy(), expected, atol=1e-6) for result in results)


def test_rotated_positions_with_a_row_for_each_token() -> None:
    q, angles = _random(2, 3, 8), _random(6, 4)
    cos, sin = np.cos(angles), np.sin(angles)
    result = ApplyRotaryPosEmb(2)(*[Tensor(q)] * 2, Tensor(cos), Tensor(sin), Tensor([3, 2], ms.int32))[0]
    heads = q.reshape(6, 2, 4)
    turned = np.concatenate([-heads[..., 2:], heads[..., :2]], -1)
    assert np.allclose(result.asnumpy(), (heads * cos[:, None] + turned * sin[:, None]).reshape(2, 3, 8), atol=1e-6)


def test_dropout_with_a_mask() -> None:
    x = Tensor(np.ones((64, 64), np.float32))
    out, mask = DropoutExt()(input=x, p=0.25, seed=Tensor(1, ms.int64), offset=Tensor(0, ms.int64))
    assert mask.dtype == ms.bool_ and 0.7 < mask.asnumpy().mean() < 0.8
    assert np.allclose(out.asnumpy(), mask.asnumpy() / 0.75)
    assert not DropoutExt()(x, 1.0, Tensor(1), Tensor(0))[0].asnumpy().any()


def test_attention_over_blocks_with_a_mask() -> None:
    query, keys, values = _random(1, 2, 4), _random(2, 3, 2, 4), _random(2, 3, 2, 4)
    blocks, lengths, mask = Tensor([[1, 0]], ms.int32), Tensor([5, 9], ms.int32), Tensor(_random(1, 2, 1, 6))
    arguments = [*map(Tensor, (query, keys, values)), blocks, lengths]
    expected = PagedAttention(2, 0.5, 2)(*arguments, alibi_mask=mask).asnumpy()
    assert np.allclose(PagedAttentionMask(2, 0.5, 2)(*arguments, None, None, mask).asnumpy(), expected)
    assert np.allclose(PagedAttentionMask(2, 0.5, 2)(*arguments, mask).asnumpy(), expected)      # in the order before 2.4


def test_fused_attention_as_a_primitive() -> None:
    q, k, v = (Tensor(_random(1, 2, 4, 8)) for _ in range(3))
    result = FusedInferAttentionScore(2, 0.3, input_layout="BNSD")(q, [k], [v])
    expected = ms.ops.fused_infer_attention_score(q, [k], [v], num_heads=2, scale=0.3, input_layout="BNSD")
    assert np.array_equal(result[0].asnumpy(), expected[0].asnumpy())


def test_quantized_keys() -> None:
    q, k = _random(1, 2, 1, 4), _RANDOM.integers(-9, 9, (1, 2, 3, 4)).astype(np.int8)
    scale, offset = np.abs(_random(2, 2, 1, 4)), _random(2, 2, 1, 4)
    real = [Tensor(((k + offset[at]) * scale[at]).astype(np.float32)) for at in (0, 1)]
    options = {"num_heads": 2, "input_layout": "BNSD"}
    result = ms.ops.incre_flash_attention(
        Tensor(q), [Tensor(k)], [Tensor(k)], antiquant_scale=Tensor(scale), antiquant_offset=Tensor(offset), **options,
    )
    expected = ms.ops.incre_flash_attention(Tensor(q), [real[0]], [real[1]], **options)
    assert np.allclose(result.asnumpy(), expected.asnumpy(), atol=1e-5)


@pytest.mark.parametrize("call,expected", [
    (lambda: MoeGatingTopKSoftmax()(Tensor(_random(2, 3)), None, 4), r"\(k=4\) of 3 experts: expected a number from 0 to 3"),
    (lambda: MoeComputeExpertTokens()(Tensor([0, 1]), 0), "expected one axis, and a number of experts from 1"),
    (lambda: MoeFinalizeRouting()(Tensor(_random(4, 2)), Tensor(_random(2, 2))), "expected expanded_row_idx, and expanded_expert_idx"),
    (lambda: QuantV2()(Tensor([1.0]), Tensor([1.0]), Tensor([1.0]), False, "FLOOR"), "expected rounding_mode='ROUND'"),
    (lambda: QuantBatchMatmul(dtype=ms.float32)(*[Tensor(np.ones((2, 2), np.int8))] * 2, Tensor([1.0])), "float16, bfloat16 or int8"),
    (lambda: KVCacheScatterUpdate()(Tensor(_random(1, 1, 4, 2)), Tensor([0]), Tensor(_random(1, 1, 1, 2)), 0), "axis -1 or -2"),
    (lambda: ApplyRotaryPosEmb(3)(*[Tensor(_random(2, 3, 2, 4))] * 4, Tensor([1])), r"\(cos_format=3\): expected 0, 1 or 2"),
    (lambda: ApplyRotaryPosEmb(2)(*[Tensor(_random(5, 8))] * 2, *[Tensor(_random(9, 4))] * 2, Tensor([2, 2], ms.int32)),
     "of 5 tokens with 9 rows and position_ids of the sum 4: expected a row for each token, or the lengths of the sequences"),
    (lambda: ApplyRotaryPosEmb(0)(*[Tensor(_random(2, 3, 2, 4))] * 2, *[Tensor(_random(9, 4))] * 2, Tensor([1])), "look them up first"),
    (lambda: PagedAttention(2, 0.5, 2)(
        Tensor(_random(2, 2, 4)), *[Tensor(_random(2, 3, 2, 4))] * 2, Tensor([[0], [1]]), Tensor([1])), r"2, one for each token"),
])
def test_refusals(call: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        call()
