"""What MindSpore 2.10 refuses and torch would broadcast, cut off or count from the end: no numbers come of it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, ops


def x(*shape: int) -> Tensor:
    return Tensor(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def parameter(*shape: int) -> Parameter:
    return Parameter(x(*shape), name="p")


def ids(*values: Any) -> Tensor:
    return Tensor(np.array(values, np.int32))


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: ops.unsorted_segment_sum(x(3), ids([0, 1, 1]), 2), "expected segment_ids of the first lengths"),
    (lambda: ops.unsorted_segment_max(x(2, 3), ids(0), 2), "expected segment_ids of the first lengths"),
    (lambda: ops.SegmentMean()(x(2, 2), ids(1)), "expected one segment for each of 2 rows"),
    (lambda: ops.SegmentSum()(x(3), ids(1, 0, 2)), "sorted in ascending order"),
    (lambda: ops.ReduceProd()(x(3), -5), "axis=-5: expected axes from -1 to 0"),
    (lambda: ops.flatten(x(3), end_dim=1), "expected"),
    (lambda: ops.soft_margin_loss(x(2, 3), x(3)), "expected equal shapes"),
    (lambda: ops.SoftMarginLoss()(x(2, 3), x(1)), "expected equal shapes"),
    (lambda: ops.kl_div(x(2, 3), x(3)), "expected equal shapes"),
    (lambda: ops.SoftmaxCrossEntropyWithLogits()(x(2, 3), x(3)), "expected equal shapes"),
    (lambda: ops.cosine_embedding_loss(x(2, 3), x(2, 3), x(5)), "expected a target of shape"),
    (lambda: ops.slice(x(2, 3), (0,), (1,)), "expected 2 numbers as begin and as size"),
    (lambda: ops.strided_slice(x(2, 3), (0, 0), (1,), (1,)), "of one length, got 2, 1, 1"),
    (lambda: ops.MirrorPad("REFLECT")(x(2, 3), ids([1, 1])), "expected 2 pairs of paddings"),
    (lambda: ops.MirrorPad("constant")(x(2, 3), ids([1, 1], [0, 0])), r"mode='constant'\): expected 'REFLECT' or 'SYMMETRIC'"),
    (lambda: ops.LSTM(5, 3, 1, True, False, 0.0)(x(1, 4, 2, 5), x(1, 2, 3), x(1, 2, 3), x(108, 1, 1)), r"of shape \(time, N, 5\)"),
    (lambda: ops.LSTM(5, 3, 1, True, False, 0.0)(x(4, 2, 5), x(1, 9, 3), x(1, 2, 3), x(108, 1, 1)), r"states of shape \(1, 2, 3\)"),
    (lambda: ops.ApplyMomentum()(parameter(1, 3), parameter(3), 0.1, x(3), 0.9), r"accumulation of shape \(1, 3\), as variable, got"),
    (lambda: ops.ApplyAdagrad()(parameter(2, 3), parameter(2, 3), 0.1, x(3)), r"grad of shape \(2, 3\), as var, got \(3,\)"),
    (lambda: ops.Adam()(parameter(3), parameter(3), parameter(3), 0.9, 0.9, 0.1, 0.9, 0.9, 1e-8, x(1)), r"gradient of shape \(3,\)"),
    (lambda: ops.ApplyGradientDescent()(parameter(3), 0.1, Tensor(1.0)), r"delta of shape \(3,\)"),
    (lambda: ops.Pad(((1, 1),))(x(2, 3)), "expected 2 pairs of paddings"),
    (lambda: ops.MaxPoolWithArgmax(2, 1, "reflect")(x(1, 1, 4, 4)), r"MaxPoolWithArgmax\(pad_mode='reflect'\): expected 'same' or 'valid'"),
    (lambda: ops.AvgPool(2, pad_mode="mean")(x(1, 1, 4, 4)), r"AvgPool\(pad_mode='mean'\): expected 'same', 'valid' or 'pad'"),
    (lambda: ops.MaxPool3D(2, 2, "mean")(x(1, 1, 4, 4, 4)), "pad_mode='mean'"),
    (lambda: ops.AvgPool3D(2, 2, "mean")(x(1, 1, 4, 4, 4)), "pad_mode='mean'"),
    (lambda: ops.choice_with_mask(Tensor([True, False]), -1), "count=-1: expected at least 1"),
    (lambda: ops.ResizeBicubic()(x(1, 1, 4, 4), (1,)), "expected a height and a width"),
    (lambda: ops.ResizeNearestNeighbor((1,))(x(1, 1, 4, 4)), "expected a height and a width"),
    (lambda: ops.ResizeBilinearV2()(x(1, 1, 4, 4), (1,)), "expected a height and a width"),
    (lambda: ops.clip_by_global_norm(x(3), -1.0), "clip_norm=-1.0"),
    (lambda: ops.softplus(x(3), 0), "beta=0: expected another number"),
    (lambda: ops.gather_nd(x(2, 3), ids([-1, 0])), "expected indexes from 0 to 1 along axis 0, got a negative one"),
    (lambda: ops.scatter_nd(ids([-1]), x(1), (3,)), "index"),
    (lambda: ops.tensor_scatter_update(x(3), ids([-1]), x(1)), "index"),
    (lambda: ops.tensor_scatter_add(x(3), ids([-1]), x(1)), "index"),
    (lambda: ops.unsorted_segment_max(x(3), ids(0, 1, 2), 2), "index"),
    (lambda: ops.unsorted_segment_prod(x(3), ids(0, 1, 2), 2), "index"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_it_is_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises((ValueError, IndexError), match=text):
        call()


def test_negative_segments_are_omitted() -> None:
    assert ops.unsorted_segment_sum(x(3), ids(0, -1, 1), 2).asnumpy().tolist() == [-1.0, 1.0]
    assert ops.unsorted_segment_max(x(3), ids(0, -1, 1), 2).asnumpy().tolist() == [-1.0, 1.0]


def test_gradients_of_segments_and_rows(mode: int) -> None:
    assert ms.grad(lambda v: ops.unsorted_segment_sum(v, ids(0, -1, 1), 2).sum())(x(3)).asnumpy().tolist() == [1.0, 0.0, 1.0]
    assert ms.grad(lambda v: (ops.gather_nd(v, ids([1], [1])) * 2).sum())(x(3)).asnumpy().tolist() == [0.0, 4.0, 0.0]
