"""`flash_attention_score` of sequences of several lengths, one after the other (input_layout TND), beside one call for each sequence."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

HEADS, WIDTH = 4, 8
QUERY_ENDS, KEY_ENDS = (3, 3, 8), (5, 6, 12)


def draw(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def tensors(key_heads: int = HEADS) -> list[Tensor]:
    return [Tensor(draw(length, heads, WIDTH)) for length, heads in ((8, HEADS), (12, key_heads), (12, key_heads))]


def attend(query: Tensor, key: Tensor, value: Tensor, mode: int, ends: Any = (QUERY_ENDS, KEY_ENDS), **more: Any) -> Tensor:
    return ops.flash_attention_score(query, key, value, HEADS, actual_seq_qlen=ends[0], actual_seq_kvlen=ends[1], scalar_value=0.5,
                                     input_layout="TND", sparse_mode=mode, **more)


def attend_one_by_one(query: Tensor, key: Tensor, value: Tensor, mode: int, **more: Any) -> Tensor:
    results = []
    for q0, q1, k0, k1 in zip((0, *QUERY_ENDS), QUERY_ENDS, (0, *KEY_ENDS), KEY_ENDS):
        if q1 > q0:
            parts = [t.expand_dims(0) for t in (query[q0:q1], key[k0:k1], value[k0:k1])]
            results.append(ops.flash_attention_score(*parts, HEADS, scalar_value=0.5, input_layout="BSND", sparse_mode=mode, **more)[0])
    return ops.cat(results)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize("key_heads", [HEADS, 1])
@pytest.mark.parametrize(("sparse_mode", "more"), [(0, {}), (0, {"pre_tokens": 1, "next_tokens": 1}), (2, {}), (3, {})])
def test_packed_sequences_see_themselves_alone(mode: int, key_heads: int, sparse_mode: int, more: dict[str, int]) -> None:
    ms.set_context(mode=mode)
    try:
        query, key, value = tensors(key_heads)
        ends = tuple(Tensor(list(ends)) for ends in (QUERY_ENDS, KEY_ENDS))
        expected = attend_one_by_one(query, key, value, sparse_mode, **more)
        gradients = ms.grad(lambda *parts: attend_one_by_one(*parts, sparse_mode, **more).square().sum(), (0, 1, 2))(query, key, value)
        for each in ((QUERY_ENDS, KEY_ENDS), ends):
            result = attend(query, key, value, sparse_mode, each, **more)
            np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)
            packed = ms.grad(lambda *parts, e=each: attend(*parts, sparse_mode, e, **more).square().sum(), (0, 1, 2))(query, key, value)
            for actual, wanted in zip(packed, gradients):
                np.testing.assert_allclose(actual.asnumpy(), wanted.asnumpy(), rtol=1e-4, atol=1e-5)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_statistics_are_those_of_tokens() -> None:
    largest, total, _, out = ops.operations.nn_ops.FlashAttentionScore(HEADS, scale_value=0.5, input_layout="TND", sparse_mode=3)(
        *tensors(), None, None, None, None, None, QUERY_ENDS, KEY_ENDS)
    assert largest.shape == total.shape == (8, HEADS, 8) and out.shape == (8, HEADS, WIDTH)


def test_tokens_behind_the_last_sequence_are_zeros() -> None:
    query, key, value = tensors()
    result = attend(query, key, value, 2, (Tensor([3, 3, 6]), Tensor([5, 6, 12])))
    assert not result.asnumpy()[6:].any() and result.asnumpy()[:6].all()


@pytest.mark.parametrize(("ends", "more", "text"), [
    ((None, KEY_ENDS), {}, "actual_seq_qlen=None"), (((3, 2, 8), KEY_ENDS), {}, "which do not decrease"),
    (((3, 3, 7), KEY_ENDS), {}, "the last one 8"), (((3, 8), KEY_ENDS), {}, "as many sequences"),
    ((QUERY_ENDS, KEY_ENDS), {"attn_mask": Tensor(np.zeros((8, 12), np.uint8))}, "a mask of all keys"),
])
def test_what_packed_sequences_refuse(ends: Any, more: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        attend(*tensors(), 0, ends, **more)


@pytest.mark.filterwarnings("ignore:device_num=2 in one process")
def test_a_split_graph_splits_the_heads() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.attention = ops.operations.nn_ops.FlashAttentionScore(HEADS, scale_value=0.5, input_layout="TND", sparse_mode=3)
            self.attention.shard(((1, 2, 1), (1, 2, 1), (1, 2, 1), (1,), (1,)))

        def construct(self, query: Tensor, key: Tensor, value: Tensor, query_ends: Tensor, key_ends: Tensor) -> Tensor:
            return self.attention(query, key, value, None, None, None, None, None, query_ends, key_ends)[3]

    query, key, value = tensors()
    expected = attend(query, key, value, 3)
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", device_num=2, dataset_strategy="full_batch")
    try:
        result = Net()(query, key, value, Tensor(list(QUERY_ENDS)), Tensor(list(KEY_ENDS)))
    finally:
        ms.reset_auto_parallel_context()
        ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)
