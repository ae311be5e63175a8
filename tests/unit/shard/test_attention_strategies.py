"""Strategies of FlashAttentionScore by Layouts and of packed sequences: MindSpore's answers, and the numbers of one device."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Layout, Tensor, nn, ops

from torchspore.distributed.shard.strategy_validation import layouts_of
from torchspore.distributed.shard.strategy_validation.layout import read

GRID = Layout((2, 2, 2), ("dp", "sp", "mp"))
ENDS = (16, 32, 48, 64)
PACKED = ("input_layout", "TND"), ("sparse_mode", 3)
TOKENS = (64, 8, 16)
FULL_MASK = ("None", "None")


def fits(shapes: list[tuple[int, ...]], strategy: Any, **attributes: Any) -> bool:
    laid = tuple(read(GRID(*part)) for part in strategy) if isinstance(strategy[0][0], (str, tuple)) else strategy
    try:
        layouts_of("FlashAttentionScore", {"head_num": 8, **attributes}, shapes, laid, None, 8)
    except ValueError:
        return False
    return True


# What MindSpore 2.10 answers to each strategy, compiled for eight devices; ends of sequences are tuples or Tensors alike.
PACKED_STRATEGIES: list[tuple[Any, bool]] = [
    (((("dp", "sp"), "mp", "None"), ("dp", "mp", "None"), ("dp", "mp", "None"), FULL_MASK, ("dp",), ("dp",)), True),
    (((("sp", "dp"), "mp", "None"), ("dp", "mp", "None"), ("dp", "mp", "None"), FULL_MASK, ("dp",), ("dp",)), True),
    ((("dp", "mp", "None"), ("None", "mp", "None"), ("None", "mp", "None"), FULL_MASK, ("None",), ("None",)), True),
    ((("dp", "mp", "None"), ("dp", "mp", "None"), ("dp", "mp", "None"), FULL_MASK, ("dp",), ("dp",)), True),
    (((2, 2, 1), (2, 2, 1), (2, 2, 1), (1, 1), (2,), (2,)), True),
    (((4, 2, 1), (4, 2, 1), (4, 2, 1), (1, 1), (4,), (4,)), True),
    (((4, 2, 1), (2, 2, 1), (2, 2, 1), (1, 1), (2,), (2,)), False),
    (((2, 2, 1), (2, 2, 1), (2, 2, 1), (1, 1), (1,), (1,)), False),
    (((2, 2, 1), (1, 2, 1), (1, 2, 1), (1, 1), (2,), (2,)), False),
    (((2, 2, 1), (2, 2, 1), (2, 2, 1), (1, 1)), False),
]


@pytest.mark.parametrize(("strategy", "is_accepted"), PACKED_STRATEGIES)
def test_packed_sequences(strategy: Any, is_accepted: bool) -> None:
    shapes = [TOKENS, TOKENS, TOKENS, (2048, 2048), (4,), (4,)]
    assert fits(shapes, strategy, **dict(PACKED)) == is_accepted


@pytest.mark.parametrize(("strategy", "is_accepted"), [
    ((("dp", "None", ("sp", "mp")), ("dp", "None", "mp"), ("dp", "None", "mp"), FULL_MASK), True),
    ((("dp", "None", ("sp", "mp")), ("dp", "None", "sp"), ("dp", "None", "sp"), FULL_MASK), True),
    ((("dp", "None", ("sp", "mp")), ("dp", "None", "None"), ("dp", "None", "None"), FULL_MASK), False),
    ((("dp", "sp", "mp"), ("dp", "None", "mp"), ("dp", "None", "mp"), FULL_MASK), True),
    (((2, 1, 4), (2, 1, 2), (2, 1, 2), (1, 1)), False),
    (((2, 1, 4), (2, 1, 1), (2, 1, 1), (1, 1)), False),
])
def test_groups_of_heads(strategy: Any, is_accepted: bool) -> None:
    shapes = [(8, 16, 128), (8, 16, 64), (8, 16, 64), (2048, 2048)]
    assert fits(shapes, strategy, input_layout="BSH", sparse_mode=2) == is_accepted


class Attention(nn.Cell):
    def __init__(self, strategy: Any, **settings: Any) -> None:
        super().__init__()
        self.attention = ops.operations.nn_ops.FlashAttentionScore(8, scale_value=0.25, **settings)
        if strategy is not None:
            self.attention.shard(tuple(GRID(*part) for part in strategy))

    def construct(self, query, key, value, mask, query_ends, key_ends):
        return self.attention(query, key, value, None, None, None, mask, None, query_ends, key_ends)[3]


def computed(strategy: Any, shapes: list[tuple[int, ...]], ends: Any, **settings: Any) -> list[np.ndarray[Any, Any]]:
    net = Attention(strategy, **settings)
    rng = np.random.default_rng(3)
    inputs = [Tensor(rng.standard_normal(shape).astype(np.float32)) for shape in shapes]
    mask = Tensor(np.triu(np.ones((2048, 2048), np.uint8), 1))

    def loss(query, key, value):
        return net(query, key, value, mask, ends, ends).square().sum()

    result = net(*inputs, mask, ends, ends)
    return [result.asnumpy(), *(gradient.asnumpy() for gradient in ms.grad(loss, (0, 1, 2))(*inputs))]


@pytest.mark.parametrize(("strategy", "shapes", "ends", "settings"), [
    (PACKED_STRATEGIES[0][0], [(64, 8, 16), (64, 4, 16), (64, 4, 16)], ENDS, dict(PACKED)),
    pytest.param(PACKED_STRATEGIES[2][0], [(64, 8, 16)] * 3, (5, 40, 64), dict(PACKED), marks=pytest.mark.slow),
    (((("dp"), "None", ("sp", "mp")), ("dp", "None", "sp"), ("dp", "None", "sp"), FULL_MASK),
     [(4, 16, 128), (4, 16, 64), (4, 16, 64)], None, {"input_layout": "BSH", "sparse_mode": 2}),
])
def test_eight_devices_give_the_numbers_of_one(
    strategy: Any, shapes: list[tuple[int, ...]], ends: Any, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch,
) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    alone = computed(None, shapes, ends, **settings)
    monkeypatch.setenv("TORCHSPORE_SIMULATE", "8")
    ms.set_auto_parallel_context(parallel_mode="semi_auto_parallel", dataset_strategy="full_batch")
    named = strategy if ends is not None else strategy[:4]
    for actual, expected in zip(computed(named, shapes, ends, **settings), alone, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["FusedInferAttentionScore", "PromptFlashAttention"])
def test_numbers_of_fused_attention_that_mindspore_does_not_read(name: str) -> None:
    query, keys, mask = (8, 16, 128, 32), (8, 16, 128, 32), (8, 128, 128)
    strategy = ((1, 2, 4, 1), (1, 2, 1, 1), (1, 2, 1, 1), (1, 1, 1, 1), (1, 4, 4))
    attributes = {"num_heads": 16, "input_layout": "BNSD"}
    fit = layouts_of(name, attributes, [query, keys, keys, (8, 16, 128, 128), mask], strategy, None, 8)
    assert fit.inputs[0].cuts() == fit.outputs[0].cuts() == (1, 2, 4, 1) and fit.inputs[4].cuts() == (1, 1, 1)
    with pytest.raises(ValueError, match="axis 1 of input 1"):
        layouts_of(name, attributes, [query, keys, keys], ((1, 2, 1, 1), (1, 4, 1, 1), (1, 4, 1, 1)), None, 8)
