"""The transformer library of MindSpore 1.x, which 2.10 has no more: compared with formulas in NumPy."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn
from mindspore.nn import transformer as library

RANDOM = np.random.RandomState(2)


def norm(x: Any) -> Any:
    """Layer norm without scale and shift."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def heads(x: Any, layer: Any, count: int) -> Any:
    """x through a linear layer, as (batch, heads, length, size)."""
    weight = layer.weight.asnumpy()
    out = x @ (weight.T if layer.transpose_b else weight) + layer.bias.asnumpy()
    return out.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def attended(cell: Any, query: Any, memory: Any, mask: Any) -> Any:
    """Attention of two heads."""
    q, k, v = heads(query, cell.dense1, 2), heads(memory, cell.dense2, 2), heads(memory, cell.dense3, 2)
    products = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]) + (1 - mask[:, None]) * -10000
    weights = np.exp(products - products.max(-1, keepdims=True))
    out = (weights / weights.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(query.shape)
    return out @ cell.projection.weight.asnumpy() + cell.projection.bias.asnumpy()


def net(cell: Any, x: Any) -> Any:
    """Two layers with ReLU between."""
    inner = np.maximum(x @ cell.mapping.weight.asnumpy() + cell.mapping.bias.asnumpy(), 0)
    return inner @ cell.projection.weight.asnumpy() + cell.projection.bias.asnumpy()


def encoded(layer: Any, x: Any, mask: Any, post: bool) -> Any:
    first = norm(x)
    x = (first if post else x) + attended(layer.attention, first, first, mask)
    second = norm(x)
    return (second if post else x) + net(layer.output, second)


def enlarged(cell: Any) -> Any:
    """The Cell with Parameters large enough to see."""
    for p in cell.get_parameters():
        if "layernorm" not in p.name and "past" not in p.name:
            p.set_data(Tensor(RANDOM.randn(*p.shape).astype(np.float32) * 0.3))
    return cell


OPTIONS = {"attention_dropout_rate": 0.0, "hidden_dropout_rate": 0.0, "hidden_act": "relu"}


@pytest.mark.parametrize("post", [False, True])
def test_encoder(mode: int, post: bool) -> None:
    cell = enlarged(library.TransformerEncoder(2, 2, 8, 16, 4, 2, post_layernorm_residual=post, **OPTIONS))
    x, mask = RANDOM.randn(2, 4, 8).astype(np.float32), np.tril(np.ones((2, 4, 4), np.float32))
    expected = x
    for layer in cell.blocks:
        expected = encoded(layer, expected, mask, post)
    out, present = cell(Tensor(x), Tensor(mask))
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=0.02, atol=0.02)                      # products are in float16
    assert len(present) == 2 and present[0][0].shape == (2, 2, 4, 4) and present[0][1].shape == (2, 2, 4, 4)
    assert {name.split(".")[2] for name in cell.parameters_dict()} == {"layernorm1", "layernorm2", "attention", "output"}


def test_encoder_and_decoder(mode: int) -> None:
    cell = enlarged(library.Transformer(8, 2, 16, 4, 3, 1, 1, 2, **OPTIONS))
    x, y = RANDOM.randn(2, 4, 8).astype(np.float32), RANDOM.randn(2, 3, 8).astype(np.float32)
    masks = np.ones((2, 4, 4), np.float32), np.tril(np.ones((2, 3, 3), np.float32)), np.ones((2, 3, 4), np.float32)
    memory, layer = encoded(cell.encoder.blocks[0], x, masks[0], False), cell.decoder.blocks[0]
    expected = y + attended(layer.attention, norm(y), norm(y), masks[1])
    expected = expected + attended(layer.cross_attention, norm(expected), memory, masks[2])
    expected = expected + net(layer.output, norm(expected))
    out, first, second, loss = cell(Tensor(x), Tensor(masks[0]), Tensor(y), Tensor(masks[1]), Tensor(masks[2]))
    np.testing.assert_allclose(out.asnumpy(), expected, rtol=0.02, atol=0.03)
    assert len(first) == 1 and len(second[0]) == 4 and loss == 0.0
    with pytest.raises(ValueError, match="one layer or more"):
        library.Transformer(8, 2, 16, 4, 3, 0, 0)


def test_one_token_after_the_other(mode: int) -> None:
    """With `use_past` the last token alone gives what the whole sequence gives there."""
    cell = enlarged(library.TransformerEncoderLayer(1, 8, 16, 2, 4, use_past=True, **OPTIONS))
    x, mask = RANDOM.randn(1, 4, 8).astype(np.float32), np.tril(np.ones((1, 4, 4), np.float32))
    start = x * (np.arange(4) < 2)[:, None]
    cell.add_flags_recursive(is_first_iteration=True)
    cell(Tensor(start), Tensor(mask), Tensor([True]), Tensor([2], ms.int32))
    cell.add_flags_recursive(is_first_iteration=False)
    out, _ = cell(Tensor(x[:, 2:3]), Tensor(mask[:, 2:3]), Tensor([False]), Tensor([3], ms.int32))
    np.testing.assert_allclose(out.asnumpy(), encoded(cell, x, mask, False)[:, 2:3], rtol=0.02, atol=0.02)


def test_embedding_mask_and_loss(mode: int) -> None:
    table, result = library.VocabEmbedding(5, 3), None
    result, weights = table(Tensor([[0, 4]], ms.int32))
    np.testing.assert_array_equal(result.asnumpy()[0], weights.asnumpy()[[0, 4]])
    mask = library.AttentionMask(3)(Tensor([[1, 1, 0]], ms.float32))
    assert mask.asnumpy().tolist() == [[[1, 0, 0], [1, 1, 0], [0, 0, 0]]]
    logits, weight = RANDOM.randn(3, 4).astype(np.float32), np.array([1, 0, 1], np.float32)
    loss = library.CrossEntropyLoss()(Tensor(logits), Tensor([0, 1, 2], ms.int32), Tensor(weight))
    logged = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    np.testing.assert_allclose(loss.asnumpy(), -(logged[0, 0] + logged[2, 2]) / 2, rtol=1e-5)
    assert library.EmbeddingOpParallelConfig().vocab_emb_dp
    with pytest.raises(ValueError, match="an int from 1 on"):
        library.AttentionMask(0)


def test_it_trains() -> None:
    cell = library.TransformerEncoder(2, 1, 8, 16, 4, 2)
    gradient = ms.grad(lambda x, mask: cell(x, mask)[0].sum(), None, cell.trainable_params())
    result = gradient(Tensor(RANDOM.randn(2, 4, 8).astype(np.float32)), Tensor(np.ones((2, 4, 4), np.float32)))
    assert len(result) == len(cell.trainable_params()) and any(np.abs(g.asnumpy()).max() > 0 for g in result)


def test_names_of_later_versions() -> None:
    from mindspore.parallel import nn as later
    from mindspore.parallel._transformer.loss import CrossEntropyLoss
    from mindspore.parallel._transformer.transformer import AttentionMask, TransformerEncoder

    assert CrossEntropyLoss is library.CrossEntropyLoss and TransformerEncoder is library.TransformerEncoder
    assert AttentionMask is library.AttentionMask and later.Pipeline is nn.PipelineCell
    assert later.GradAccumulation is nn.GradAccumulationCell and later.MicroBatchInterleaved is nn.MicroBatchInterleaved
    assert later.PipelineGradReducer is nn.PipelineGradReducer
