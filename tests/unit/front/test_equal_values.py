"""The order of equal values in `topk`: what the records of `tests/parity/cases/equal_values.py` do not reach."""
from __future__ import annotations

import warnings

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, mint, ops, train

from torchspore.engine.formulas import topk as engine
from torchspore.engine.formulas.bitonic_sort import bitonic_order

random = np.random.RandomState(0)


@pytest.mark.parametrize("seed", range(40))
def test_selection_is_that_of_nth_element(seed: int) -> None:
    """`torch.topk` calls `std::nth_element` where k is large enough, so both must agree there."""
    draw = np.random.RandomState(seed)
    length = int(draw.randint(2, 400))
    values = draw.randint(0, draw.randint(1, 40), length).astype(np.float32)
    k = int(draw.randint((length + 63) // 64, length)) if length > 64 else int(draw.randint(1, length))
    expected = torch.topk(torch.from_numpy(values), k + 1, sorted=False).indices[:k]
    assert engine.nth_element(values, k)[:k].tolist() == expected.tolist(), (length, k, values.tolist())


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64, torch.uint8))
@pytest.mark.parametrize("largest", (True, False))
def test_other_devices_give_the_lowest_index_first(dtype: torch.dtype, largest: bool) -> None:
    values = torch.from_numpy(random.randint(-4, 5, (3, 50)))
    x = (values.abs() if dtype is torch.uint8 else values).to(dtype)
    if dtype.is_floating_point:
        x[0, :6] = torch.tensor([0.0, -0.0, torch.nan, -torch.nan, torch.inf, -torch.inf])
    expected = torch.sort(x, dim=-1, descending=largest, stable=True).indices[:, :9]
    assert engine._lowest_first(x, 9, largest).tolist() == expected.tolist()


def test_lowest_index_first_where_k_is_more_than_half(mode: int) -> None:
    x = Tensor([[1, 0, 2, 1], [1, 3, 2, 2], [0, 0, 0, 0]], ms.int32)
    expected = [[2, 0, 3], [1, 2, 3], [0, 1, 2]]
    for form in (lambda x: ops.topk(x, 3)[1], lambda x: x.topk(3)[1], lambda x: ops.TopK()(x, 3)[1], lambda x: mint.topk(x, 3)[1]):
        assert form(x).asnumpy().tolist() == expected
        assert ms.jit(form)(x).asnumpy().tolist() == expected


def test_vmap_of_topk_has_a_rule() -> None:
    x = Tensor(random.randint(0, 3, (4, 9, 5)).astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = ops.vmap(lambda row: ops.topk(row, 2)[1], 1, 1)(x)
    assert (result.asnumpy() == np.stack([ops.topk(x[:, i], 2)[1].asnumpy() for i in range(9)], 1)).all()


def test_metrics_count_the_first_of_equal_scores() -> None:
    scores = Tensor([[0.2, 0.2, 0.2, 0.2], [0.5, 0.5, 0.0, 0.0], [0.1, 0.4, 0.4, 0.1], [0.0, 0.0, 0.0, 0.0], [np.nan, 1.0, 1.0, 0.0]])
    for k, labels, share in ((1, [0, 1, 2, 3, 0], 0.2), (1, [3, 0, 1, 0, 1], 0.8), (2, [0, 1, 2, 3, 0], 0.6), (1, [1, 1, 1, 1, 2], 0.2)):
        metric = train.TopKCategoricalAccuracy(k)                      # the shares are those of MindSpore 2.10
        metric.update(scores, Tensor(labels, ms.int32))
        assert metric.eval() == share


def test_nms_takes_equal_scores_in_the_order_of_a_bitonic_sort(mode: int) -> None:
    scores = [0.9, 0.9, 0.9, 0.5, 0.5, 0.3, 0.9]
    boxes = Tensor(np.array([[20 * i, 0, 20 * i + 10, 10, score] for i, score in enumerate(scores)], np.float32))
    result = ops.NMSWithMask(0.5)(boxes)[0].asnumpy()[:, 0] / 20
    assert result.astype(int).tolist()[:4] == [1, 6, 2, 0]              # as 2.10
    assert bitonic_order(np.random.RandomState(0).rand(100)).shape == (100,)
    for count in (0, 1, 5, 64):
        values = np.random.RandomState(count).rand(count)
        assert bitonic_order(values).tolist() == np.argsort(-values).tolist()


def test_empty_and_single_values() -> None:
    assert ops.topk(Tensor(3.0), 1)[1].shape == ()
    assert ops.topk(Tensor(np.zeros((0, 4), np.float32)), 2)[0].shape == (0, 2)
    with pytest.raises(ValueError, match=r"topk\(input: Int64\[2\], k: 0\): expected ints from 1 on\."):
        ops.topk(Tensor([1, 2]), 0)
    with pytest.raises(ValueError, match=r"topk\(input: Float32\[2\], k: 3\): expected k up to the length of the axis\."):
        ops.topk(Tensor([1.0, 2.0]), 3)
    with pytest.raises(IndexError, match=r"expected"):
        ops.topk(Tensor([1.0, 2.0]), 1, 3)


def test_the_gradient_of_logsumexp_sums_to_one() -> None:
    x = Tensor([2000.0, 2000.0, 2000.0], ms.float16)
    np.testing.assert_allclose(ms.grad(lambda x: ops.logsumexp(x, 0))(x).asnumpy(), [1 / 3] * 3, rtol=1e-3)
    for form in (lambda x: ops.logsumexp(x, (0, 1), True), lambda x: mint.logsumexp(x, 1), lambda x: ops.logsumexp(x, ())):
        gradient = ms.grad(form)(Tensor([[1.0, -np.inf], [3.0, 4.0]], ms.float32)).asnumpy()
        assert np.isfinite(gradient).all() and gradient.min() >= 0
