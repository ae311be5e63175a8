"""Attention of prompts and of single tokens over caches, by its definition: MindSpore has kernels on Ascend alone."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, ops
from mindspore.ops.auto_generate import IncreFlashAttention, MultiScaleDeformableAttn, PromptFlashAttention, RingAttentionUpdate

B, N, KV, S, D = 2, 4, 2, 5, 6
CHANCE = np.random.RandomState(0)
QUERY = CHANCE.randn(B, N, S, D).astype(np.float32)
KEY, VALUE = CHANCE.randn(2, B, KV, 7, D).astype(np.float32)
SCALE = 0.4


@pytest.fixture(params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], autouse=True)
def _mode(request: pytest.FixtureRequest) -> None:
    ms.set_context(mode=request.param)


def expected(query: np.ndarray, hidden: np.ndarray, shift: Any = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The attention, (B, N, S, D), and its log sums, row by row."""
    out, sums = np.zeros(query.shape, np.float32), np.full((*query.shape[:3], 1), -np.inf, np.float32)
    hidden, shift = (np.broadcast_to(array, (B, N, query.shape[2], 7)) for array in (hidden, shift))
    for b, n, row in np.ndindex(*query.shape[:3]):
        seen = [at for at in range(7) if not hidden[b, n, row, at]]
        if seen:
            keys, values = KEY[b, n // 2, seen], VALUE[b, n // 2, seen]
            scores = keys @ query[b, n, row] * SCALE + shift[b, n, row, seen]
            sums[b, n, row] = np.log(np.exp(scores).sum())
            out[b, n, row] = np.exp(scores - sums[b, n, row]) @ values
    return out, sums


def laid(x: np.ndarray, layout: str) -> Tensor:
    if layout != "BNSD":
        x = x.transpose(0, 2, 1, 3)
    return Tensor(np.ascontiguousarray(x.reshape(*x.shape[:2], x.shape[2] * x.shape[3]) if layout == "BSH" else x))


def close(result: Tensor, target: np.ndarray | Tensor) -> None:
    target = target.asnumpy() if isinstance(target, Tensor) else target
    np.testing.assert_allclose(result.asnumpy(), target, rtol=1e-4, atol=1e-5)


DISTANCE = np.arange(7) - np.arange(S)[:, None]
MASK = CHANCE.rand(S, 7) > 0.6
MASK[2] = True
LENGTHS = (np.arange(7) >= np.array([7, 3]).reshape(2, 1, 1, 1)) | (np.arange(S)[:, None] >= np.array([4, 5]).reshape(2, 1, 1, 1))
CORNER = DISTANCE - np.array([7 - 4, 3 - 5]).reshape(2, 1, 1, 1)
WAYS: dict[str, tuple[dict[str, Any], np.ndarray]] = {
    "nothing": ({}, np.zeros((S, 7), bool)),
    "band without a mask": ({"pre_tokens": 1, "next_tokens": 1}, np.zeros((S, 7), bool)),
    "mask": ({"mask": MASK, "next_tokens": 7}, MASK),
    "mask and band": ({"mask": MASK, "pre_tokens": 1, "next_tokens": 2}, MASK | (DISTANCE > 2) | (DISTANCE < -1)),
    "mask alone": ({"mask": MASK[None, None], "sparse_mode": 1, "next_tokens": 0}, MASK),
    "mask of rows": ({"mask": np.stack([MASK, ~MASK]), "sparse_mode": 1}, np.stack([MASK, ~MASK])[:, None]),
    "causal": ({"sparse_mode": 2}, DISTANCE > 0),
    "causal from the lower corner": ({"sparse_mode": 3}, DISTANCE > 2),
    "lengths": ({"lengths": ([4, 5], [7, 3])}, LENGTHS),
    "lengths, lower corner": ({"lengths": ([4, 5], [7, 3]), "sparse_mode": 3}, LENGTHS | (CORNER > 0)),
    "lengths, band": ({"lengths": ([4, 5], [7, 3]), "sparse_mode": 4, "pre_tokens": 2, "next_tokens": 1}, (
        LENGTHS | (CORNER > 1) | (CORNER < -2)
    )),
}


@pytest.mark.parametrize("layout", ["BNSD", "BSH"])
@pytest.mark.parametrize("way", WAYS)
def test_prompt(way: str, layout: str) -> None:
    options, hidden = WAYS[way]
    options = dict(options)
    mask = Tensor(options.pop("mask")) if "mask" in options else None
    lengths = [Tensor(np.array(array)) for array in options.pop("lengths", ())] or [None, None]
    out, sums = expected(QUERY, hidden)
    parts = [laid(value, layout) for value in (QUERY, KEY, VALUE)]
    shared = {"num_heads": N, "num_key_value_heads": KV, "input_layout": layout, **options}
    close(ops.prompt_flash_attention(*parts, mask, *lengths, scale_value=SCALE, **shared), laid(out, layout))
    close(PromptFlashAttention(scale_value=SCALE, **shared)(*parts, mask, *lengths), laid(out, layout))
    named = {"atten_mask": mask, "actual_seq_lengths": lengths[0], "actual_seq_lengths_kv": lengths[1]}
    if mask is not None and "next_tokens" not in options:
        shared["next_tokens"] = 0
    fused, log_sums = ops.fused_infer_attention_score(*parts, scale=SCALE, softmax_lse_flag=True, **named, **shared)
    close(fused, laid(out, layout))
    close(log_sums, sums)


def test_prompt_shifted_and_turned() -> None:
    shift = CHANCE.randn(1, N, S, 7).astype(np.float32)
    out, _ = expected(QUERY, np.zeros(1, bool), shift)
    parts = [laid(part, "BNSD") for part in (QUERY, KEY, VALUE)]
    inputs = {"num_heads": N, "num_key_value_heads": KV, "scale": SCALE, "pse_shift": Tensor(shift)}
    result, sums = ops.fused_infer_attention_score(*parts, input_layout="BNSD_BSND", **inputs)
    close(result, laid(out, "BSND"))
    assert sums.asnumpy().tolist() == [0.0]
    halves = ops.fused_infer_attention_score(*[t.half() for t in parts], input_layout="BNSD", **inputs)[0]
    assert halves.dtype == ms.float16
    np.testing.assert_allclose(halves.asnumpy(), out, rtol=1e-2, atol=1e-2)


def blocks(x: np.ndarray, layout: str) -> tuple[np.ndarray, np.ndarray]:
    """Keys or values in blocks of two, which lie as they like, and the table that finds them."""
    table = np.array([[3, 0, 6, 1], [2, 7, 4, 5]], np.int32)
    cache = np.zeros((8, KV, 2, D), np.float32)
    padded = np.concatenate([x, x[:, :, :1] * 0 + 9], 2)
    for b, at in np.ndindex(2, 4):
        cache[table[b, at]] = padded[b, :, 2 * at : 2 * at + 2]
    return cache if layout == "BNSD" else cache.transpose(0, 2, 1, 3).reshape(8, 2, -1), table


@pytest.mark.parametrize("layout", ["BNSD", "BSH"])
def test_one_token(layout: str) -> None:
    query, lengths = QUERY[:, :, :1], Tensor([7, 3])
    first, last = (np.array(rows).reshape(2, 1, 1, 7) for rows in ([[0] * 7, [0, 0, 0, 1, 1, 1, 1]], [[1] * 7, [1, 1, 1, 0, 0, 0, 1]]))
    inputs = {"num_heads": N, "num_key_value_heads": KV, "input_layout": layout}
    token, key, value = (laid(part, layout) for part in (query, KEY, VALUE))
    out = laid(expected(query, first)[0], layout)
    close(ops.incre_flash_attention(token, [key], [value], None, lengths, scale_value=SCALE, **inputs), out)
    close(ops.fused_infer_attention_score(token, key, value, actual_seq_lengths_kv=lengths, scale=SCALE, **inputs)[0], out)
    close(ops.incre_flash_attention(token, key, value, Tensor(first.reshape(2, 7) > 0), scale_value=SCALE, **inputs), out)
    close(IncreFlashAttention(scale_value=SCALE, **inputs)(token, [key], [value], None, lengths), out)
    padded = ops.incre_flash_attention(token, key, value, None, lengths, kv_padding_size=Tensor(1), scale_value=SCALE, **inputs)
    close(padded, laid(expected(query, last)[0], layout))
    (keys, table), (values, _) = blocks(KEY, layout), blocks(VALUE, layout)
    more = {"block_table": Tensor(table), "block_size": 2, "scale_value": SCALE, **inputs}
    close(ops.incre_flash_attention(token, Tensor(keys), Tensor(values), None, lengths, **more), out)


def test_a_cache_in_blocks() -> None:
    table = blocks(KEY, "BNSD")[1]
    caches = [Parameter(Tensor(np.zeros((8, 2, KV, D), np.float32)), name=name) for name in ("keys", "values")]
    slots = Tensor((table[:, :, None] * 2 + np.arange(2)).reshape(-1)[[*range(7), *range(8, 11), 11]].astype(np.int32))
    slots[-1] = -1
    new = [Tensor(np.concatenate([array[0].transpose(1, 0, 2), array[1].transpose(1, 0, 2)[:4]])) for array in (KEY, VALUE)]
    assert ops.ReshapeAndCache()(*new, *caches, slots).shape == (11, KV, D)
    np.testing.assert_array_equal(caches[0].asnumpy()[table[0]].reshape(8, KV, D)[:7], KEY[0].transpose(1, 0, 2))
    np.testing.assert_array_equal(caches[1].asnumpy()[table[1, 1]][1], VALUE[1].transpose(1, 0, 2)[3] * 0)
    attend = ops.PagedAttention(N, SCALE, KV)
    hidden = np.arange(7) >= np.array([7, 3]).reshape(2, 1, 1, 1)
    result = attend(Tensor(QUERY[:, :, 0]), *caches, Tensor(table), Tensor([7, 3], ms.int32))
    close(result, expected(QUERY[:, :, :1], hidden)[0][:, :, 0])


def test_two_parts_of_the_keys_together() -> None:
    hidden = np.zeros((S, 7), bool)
    expected_output, _ = expected(QUERY, hidden)
    parts: list[Tensor] = []
    for some in (slice(0, 3), slice(3, 7)):
        part = hidden | True
        part[:, some] = False
        scores = np.einsum("bnsd,bnkd->bnsk", QUERY, np.repeat(KEY, 2, 1))[..., some] * SCALE
        most = scores.max(-1, keepdims=True)
        sums = np.exp(scores - most).sum(-1, keepdims=True)
        out = expected(QUERY, part)[0].transpose(2, 0, 1, 3).reshape(S, B, -1)
        parts += [Tensor(out), *[Tensor(np.repeat(array, 8, -1)) for array in (most, sums)]]
    out, most, sums = ops.ring_attention_update(*parts)
    close(RingAttentionUpdate()(*parts)[0], out)
    close(out, expected_output.transpose(2, 0, 1, 3).reshape(S, B, -1))
    close(ops.log(sums) + most, np.repeat(expected(QUERY, hidden)[1], 8, -1))
    flat = [piece.reshape(S, B, N, D).swapaxes(0, 1).reshape(S * B, N, D) if piece.ndim == 3 else (
        piece.swapaxes(1, 2).reshape(S * B, N, 8)
    ) for piece in parts]
    result = ops.ring_attention_update(*flat, Tensor([0, S * B]), "TND")[0]
    close(result, expected_output.transpose(0, 2, 1, 3).reshape(S * B, N, D))


def test_deformable_attention_at_pixels() -> None:
    shape, offset = np.array([[2, 3], [1, 2]]), np.array([0, 6])
    value = CHANCE.randn(1, 8, 2, 8).astype(np.float32)
    cells = [[(1, 2), (0, 0)], [(0, 1), (0, 0)]]                 # (row, column) of two points on each level: the middle of a cell is a cell
    sampling_offsets = np.zeros((1, 1, 2, 2, 2, 2), np.float32)
    weight = CHANCE.rand(1, 1, 2, 2, 2).astype(np.float32)
    expected_row = np.zeros((2, 8), np.float32)
    for level, points in enumerate(cells):
        for at, (row, column) in enumerate(points):
            sampling_offsets[:, :, :, level, at] = (column + 0.5) / shape[level, 1], (row + 0.5) / shape[level, 0]
            expected_row += weight[0, 0, :, level, at, None] * value[0, offset[level] + row * shape[level, 1] + column]
    tensors = [Tensor(part) for part in (value, shape, offset, sampling_offsets, weight)]
    close(ops.multi_scale_deformable_attn_function(*tensors), expected_row.reshape(1, 1, 16))
    close(MultiScaleDeformableAttn()(*tensors), expected_row.reshape(1, 1, 16))
    slope = ms.grad(lambda value: ops.multi_scale_deformable_attn_function(value, *tensors[1:]).sum())(tensors[0]).asnumpy()
    np.testing.assert_allclose(slope.sum(), weight.sum() * 8, rtol=1e-4)


def test_what_is_refused() -> None:
    q, k, v = (laid(value, "BNSD") for value in (QUERY, KEY, VALUE))
    inputs = {"num_heads": N, "num_key_value_heads": KV, "input_layout": "BNSD"}
    prompt, fused, incremental = ops.prompt_flash_attention, ops.fused_infer_attention_score, ops.incre_flash_attention
    scale = Tensor([1.0])
    for call, message in (
        (lambda: prompt(q, k, v, quant_scale2=scale, **inputs), r"prompt_flash_attention\(quant_scale2=\.\.\.\): expected None"),
        (lambda: prompt(q.astype(ms.int8), k, v, **inputs), r"quantized query: expected float16, bfloat16 or float32"),
        (lambda: prompt(q, k, v, num_heads=N, input_layout="BNSD"), r"key: \[2, 2, 7, 6\]\): expected BNSD with 4 heads"),
        (lambda: prompt(q, k, v, **{**inputs, "num_key_value_heads": 3}), r"expected a number of heads, and 0 or one that divides it"),
        (lambda: prompt(q, k, v, sparse_mode=5, **inputs), r"sparse_mode=5\): expected 0 or 1 or 2 or 3 or 4"),
        (lambda: prompt(q, k, v, sparse_mode=1, **inputs), r"sparse_mode=1\): expected a mask"),
        (lambda: prompt(q, k, v, None, Tensor([1, 2, 3]), **inputs), r"actual_seq_lengths of 3 lengths\): expected 1 or 2"),
        (lambda: prompt(q, k, v, **{**inputs, "input_layout": "TND"}), r"input_layout='TND'\): expected 'BSH' or 'BNSD' or 'BSND'"),
        (lambda: fused(q, k, v, key_shared_prefix=k, **inputs), r"key_shared_prefix=\.\.\.\): expected None"),
        (lambda: fused(q, k, v, kv_padding_size=Tensor(1), **inputs), r"kv_padding_size=\.\.\.\) of several queries: expected None"),
        (lambda: fused(q, k, v, antiquant_mode=1, **inputs), r"antiquant_mode=\.\.\.\): expected None"),
        (lambda: incremental(q[:, :, :1], [k, k], [v, v], **inputs), r"key of 2 Tensors\): expected one"),
        (lambda: incremental(q[:, :, :1], k, v, None, Tensor([7]), block_table=Tensor([[0], [1]]), block_size=9, **inputs), (
            r"block_size=9\) of blocks \[2, 2, 7, 6\]: expected 7"
        )),
        (lambda: ops.reshape_and_cache(q, v), r"expected a key_cache and a slot_mapping"),
        (lambda: ops.PagedAttention(N, 1.0, KV)(q, k), r"expected a value_cache, block_tables and context_lens"),
        (lambda: ops.PagedAttention(N, 1.0, KV)(q, k, v, scale, scale, attn_mask=q), r"PagedAttention\(attn_mask=\.\.\.\): expected None"),
        (lambda: ops.ring_attention_update(q, q, q, q, q, q, None, "TND"), r"layout='TND'\): expected an actual_seq_qlen"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("layout", ["BSH", "BNSD", "BSND"])
def test_where_there_is_nothing(layout: str) -> None:
    """No sequences, no queries; and no keys, over which a query finds zeros."""
    inputs = {"num_heads": N, "num_key_value_heads": KV, "input_layout": layout}
    for q, k in ((QUERY[:0], KEY[:0]), (QUERY[:, :, :0], KEY), (QUERY, KEY[:, :, :0])):
        query, key = laid(q, layout), laid(k, layout)
        results = [ops.prompt_flash_attention(query, key, key, **inputs), ops.fused_infer_attention_score(query, key, key, **inputs)[0]]
        if layout == "BNSD":
            results.append(ops.flash_attention_score(query, key, key, N, input_layout=layout))
        assert all(output.shape == query.shape and not output.asnumpy().any() for output in results)
    entry, key = laid(QUERY[:0, :, :1], layout), laid(KEY[:0], layout)
    assert ops.incre_flash_attention(entry, key, key, **inputs).shape == entry.shape


def test_no_tokens_for_a_cache() -> None:
    cache = Parameter(Tensor(np.ones((2, 3, KV, D), np.float32)), name="cache")
    nothing = Tensor(np.zeros((0, KV, D), np.float32))
    ops.reshape_and_cache(nothing, nothing, cache, cache, Tensor(np.zeros(0, np.int32)))
    assert (cache.asnumpy() == 1).all()
    query, table, lengths = (Tensor(np.zeros(shape, kind)) for shape, kind in (((0, N, D), np.float32), ((0, 2), np.int32), (0, np.int32)))
    assert ops.PagedAttention(N, 1.0, KV)(query, cache, cache, table, lengths).shape == (0, N, D)


def test_a_part_in_which_a_query_sees_nothing() -> None:
    """It adds nothing: neither its output nor its sums are NaN, and what it is joined with stays as it is."""
    from mindspore.ops.auto_generate import FlashAttentionScore

    query, key = Tensor(CHANCE.randn(2, 1, 6).astype(np.float32)), Tensor(CHANCE.randn(3, 1, 6).astype(np.float32))
    attention = FlashAttentionScore(head_num=1, input_layout="SBH")
    hidden = np.array([[True] * 3, [False] * 3])
    captured = []
    for mask in (hidden, hidden & False):
        most, sums, _, out = attention(query, key, key, attn_mask=Tensor(mask))
        captured.append([out, most, sums])
    of_first, of_second = captured[0][2].asnumpy()[0, 0]
    assert of_first.tolist() == [0.0] * 8 and of_second.all()
    out, _, sums = ops.ring_attention_update(*captured[0], *captured[1])
    close(out[0], captured[1][0].asnumpy()[0])
    close(sums[0, 0, 0], captured[1][2].asnumpy()[0, 0, 0])
    twice, _, sums = ops.ring_attention_update(*captured[0], *captured[0])
    assert twice.asnumpy()[0].tolist() == [[0.0] * 6] and not sums.asnumpy()[0, 0, 0].any()


def test_one_token_is_one_token() -> None:
    q, k = laid(QUERY[:, :, :2], "BNSD"), laid(KEY, "BNSD")
    text = r"incre_flash_attention\(query: \[2, 4, 2, 6\]\) in BNSD: expected one query of each sequence"
    with pytest.raises(ValueError, match=text):
        ops.incre_flash_attention(q, k, k, num_heads=N, num_key_value_heads=KV, input_layout="BNSD")
