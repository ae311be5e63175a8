"""Masks of `flash_attention_score`: bits of DropoutGenMask, and the band that is aligned to the lower right corner."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

B, N, D = 2, 4, 8


def tensors(queries: int, keys: int) -> list[Tensor]:
    rng = np.random.default_rng(5)
    return [Tensor(rng.standard_normal((B, N, length, D)).astype(np.float32)) for length in (queries, keys, keys)]


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_bits_are_those_of_dropout(mode: int) -> None:
    ms.set_context(mode=mode)
    shape = (B, N, 16, 32)
    bits = ops.operations.DropoutGenMask()(shape, Tensor(0.75, ms.float32))
    kept = ops.operations.DropoutDoMask()(ops.ones(shape, ms.float32), bits, Tensor(1.0, ms.float32))
    assert 0 < kept.asnumpy().mean() < 1
    results = [
        ops.flash_attention_score(*tensors(16, 32), N, drop_mask=mask, keep_prob=0.75, input_layout="BNSD").asnumpy()
        for mask in (bits.reshape(B, N, 16, 4), kept)
    ]
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


@pytest.mark.parametrize(("queries", "keys"), [(16, 16), (8, 16), (16, 8)])
@pytest.mark.parametrize(("before", "behind"), [(3, 2), (4, 0)])
def test_a_band_is_aligned_to_the_lower_right_corner(queries: int, keys: int, before: int, behind: int) -> None:
    offset = np.arange(keys) - np.arange(queries)[:, None] - (keys - queries)
    hidden: Any = ((offset > behind) | (offset < -before)).astype(np.uint8)
    inputs = tensors(queries, keys)
    band = ops.flash_attention_score(*inputs, N, pre_tokens=before, next_tokens=behind, input_layout="BNSD", sparse_mode=4)
    masked = ops.flash_attention_score(*inputs, N, attn_mask=Tensor(hidden), input_layout="BNSD", sparse_mode=1)
    np.testing.assert_allclose(band.asnumpy(), masked.asnumpy(), rtol=1e-6, atol=1e-7)


def test_a_band_of_packed_sequences_is_refused() -> None:
    query = Tensor(np.ones((8, N, D), np.float32))
    with pytest.raises(ValueError, match="input_layout='TND' with sparse_mode=4: expected 2 or 3"):
        ops.flash_attention_score(query, query, query, N, actual_seq_qlen=(8,), actual_seq_kvlen=(8,), input_layout="TND", sparse_mode=4)
