"""Primitives that MindSpore 2.10 has no kernel of on the CPU, or that are one another's gradients: what they must give by definition."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops
from mindspore.ops import operations as P
from mindspore.ops.operations import _embedding_cache_ops as caches
from mindspore.ops.operations import _grad_ops as G
from mindspore.ops.operations import _inner_ops as inner_ops
from mindspore.ops.operations import _scalar_ops as scalars
from mindspore.ops.operations import _sequence_ops as sequences
from mindspore.ops.operations import math_ops


def of(*shape: int, start: float = 0.5) -> Tensor:
    """Numbers that all differ and turn signs."""
    count = int(np.prod(shape))
    return Tensor((np.sin(np.arange(count) * 1.7 + start) * 3).reshape(shape).astype(np.float32))


def longs(*values: Any) -> Tensor:
    return Tensor(np.array(values, np.int64))


def close(result: Tensor, expected: Tensor) -> None:
    np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), rtol=1e-4, atol=1e-5)


def gradient(function: Callable[[Tensor], Tensor], x: Tensor, sens: Tensor) -> Tensor:
    return ms.grad(lambda x: (function(x) * sens).sum())(x)


def test_sequences() -> None:
    first, two = of(2), of(2, start=1.0)
    close(sequences.SequenceAddN()((first, two, first)), first + two + first)
    close(sequences.SequenceStack(1)([first, two]), ops.stack([first, two], 1))
    assert sequences.SequenceMax()((3, 1)) == 3 and sequences.SequenceMin()([3, 1]) == 1
    assert sequences.SequenceSliceSetItem()([1, 2, 3], (7, 8), 0, 2, 1) == [7, 8, 3]
    zeros = sequences.SequenceZerosLike()((first, 2, 1.5))
    assert zeros[0].asnumpy().tolist() == [0, 0] and zeros[1:] == (0, 0.0)
    numbers = [1, 2]
    assert sequences.ListAppend()(numbers, 3) == [1, 2, 3] and sequences.ListInsert()(numbers, 1, 9) == [1, 9, 2] and numbers == [1, 2]
    with pytest.raises(TypeError, match="expected a tuple or list, got int"):
        sequences.SequenceMax()(3)


def test_numbers() -> None:
    results = [
        scalars.ScalarAdd()(7, 2), scalars.ScalarSub()(7, 2), scalars.ScalarMul()(7, 2), scalars.ScalarDiv()(7, 2),
        scalars.ScalarFloorDiv()(7, 2), scalars.ScalarMod()(7, 2), scalars.ScalarPow()(7, 2), scalars.ScalarEq()(7, 2),
        scalars.ScalarGe()(7, 2), scalars.ScalarGt()(7, 2), scalars.ScalarLe()(7, 2), scalars.ScalarLt()(7, 2),
        scalars.ScalarMax()(7, 2), scalars.ScalarMin()(7, 2), scalars.bit_and()(7, 2), scalars.bit_or()(5, 2),
    ]
    assert results == [9, 5, 14, 3.5, 3, 1, 49, False, True, True, False, False, 7, 2, 2, 7]
    assert scalars.ScalarLog()(1.0) == 0
    with pytest.raises(TypeError, match="expected a Python number, got a Tensor"):
        scalars.ScalarAdd()(Tensor(1.0), 2)


def test_the_gradient_of_a_pools_gradient_is_its_transpose() -> None:
    x, direction = of(1, 2, 4, 4), of(1, 2, 4, 4, start=1.0)
    out = P.MaxPool(2, 2)(x)
    sens = of(*out.shape, start=2.0)
    back = G.MaxPoolGrad(2, 2)(x, out, sens)
    ahead = G.MaxPoolGradGrad(2, 2)(x, out, direction)
    assert float((back * direction).sum()) == pytest.approx(float((ahead * sens).sum()), rel=1e-5)


def test_pools_in_fractions_go_back_to_where_they_took_from() -> None:
    x, indices, sens = of(1, 1, 3, 3), longs([[[0, 2], [6, 8]]]), of(1, 1, 2, 2, start=1.0)
    result = G.FractionalMaxPoolGradWithFixedKsize()(x, sens, indices).asnumpy().reshape(-1)
    assert result[[0, 2, 6, 8]].tolist() == sens.asnumpy().reshape(-1).tolist() and (result[[1, 3, 4, 5, 7]] == 0).all()
    volume = G.FractionalMaxPool3DGradWithFixedKsize()(of(1, 1, 2, 2, 2), of(1, 1, 1, 1, 2), longs([[[[0, 7]]]]))
    assert volume.asnumpy().reshape(-1)[[0, 7]].tolist() == of(1, 1, 1, 1, 2).asnumpy().reshape(-1).tolist()
    with pytest.raises(ValueError, match="data_format='NHWC': expected 'NCHW'"):
        G.FractionalMaxPoolGradWithFixedKsize("NHWC")(x, sens, indices)


def test_volumes_and_unpooling() -> None:
    x = of(1, 2, 4, 4, 4)
    pool = P.MaxPool3DWithArgmax(2, 2, 0)
    out, indices = pool(x)
    sens = of(*out.shape, start=1.0)
    close(G.MaxPool3DGradWithArgmax(2, 2, 0)(x, sens, indices), gradient(lambda x: pool(x)[0], x, sens))
    flat, where = P.MaxPoolWithArgmaxV2(2, 2)(x[0])
    unpool, pooled = P.MaxUnpool2D(2, 2), of(2, 4, 4, 4, start=2.0)
    close(G.MaxUnpool2DGrad(2, 2)(flat, pooled, where), gradient(lambda y: unpool(y, where), flat, pooled))
    unpool3d, volume = P.MaxUnpool3D(2, 2), of(1, 2, 4, 4, 4, start=2.0)
    close(G.MaxUnpool3DGrad(2, 2)(out, volume, indices), gradient(lambda y: unpool3d(y, indices), out, volume))


def test_norms() -> None:
    x, gamma, sens = of(3, 4), of(4, start=1.0), of(3, 4, start=2.0)
    _, rstd = ops.rms_norm(x, gamma, 1e-6)
    by_x, by_gamma = G.RmsNormGrad()(sens, x, rstd, gamma)
    close(by_x, gradient(lambda x: ops.rms_norm(x, gamma, 1e-6)[0], x, sens))
    close(by_gamma, gradient(lambda gamma: ops.rms_norm(x, gamma, 1e-6)[0], gamma, sens))


def test_the_gradient_of_a_layer_norms_gradient() -> None:
    x, dy, gamma = of(3, 4), of(3, 4, start=1.0), of(4, start=2.0)
    directions = of(3, 4, start=3.0), of(4, start=4.0), of(4, start=5.0)

    def total(x: Tensor, dy: Tensor, gamma: Tensor) -> Tensor:
        mean = x.mean(-1, keep_dims=True)
        variance = ((x - mean) ** 2).mean(-1, keep_dims=True)
        output = G.LayerNormGrad(-1, -1)(x, dy, variance, mean, gamma)
        return sum((part * direction).sum() for part, direction in zip(output, directions))

    mean = x.mean(-1, keep_dims=True)
    variance = ((x - mean) ** 2).mean(-1, keep_dims=True)
    result = G.LayerNormGradGrad(-1, -1)(x, dy, variance, mean, gamma, *directions)
    for part, expected in zip(result, ms.grad(total, (0, 1, 2))(x, dy, gamma)):
        close(part, expected)


def test_margins() -> None:
    x, target = of(2, 4), Tensor(np.array([[0, 2, -1, 1], [3, -1, 0, 1]], np.int32))
    loss, is_target = P.MultilabelMarginLoss()(x, target)
    result = G.MultilabelMarginLossGrad()(Tensor(2.0), x, target, is_target)
    close(result, gradient(lambda x: P.MultilabelMarginLoss()(x, target)[0], x, Tensor(2.0)))
    assert loss.shape == ()


def test_sparse_rows() -> None:
    rows, ids, x = longs(0, 2, 3), longs(0, 0, 1), of(4, 3)
    close(math_ops.SparseSegmentMean()(x, rows, ids), ops.stack([(x[0] + x[2]) / 2, x[3]]))
    sens = of(2, 3, start=1.0)
    close(G.SparseSegmentSumGrad()(sens, rows, ids, longs(4)[0]), ops.stack([sens[0], ops.zeros(3), sens[0], sens[1]]))
    values, default = G.SparseFillEmptyRowsGrad()(longs(1, 3), Tensor([1.0, 2.0, 4.0, 8.0, 16.0]))
    assert (values.asnumpy().tolist(), float(default)) == ([2, 8], 21)
    back = G.SparseSliceGrad()(Tensor([5.0]), longs((0, 1), (1, 2), (2, 0)), longs(1, 0), longs((0, 2)))
    assert back.asnumpy().tolist() == [0, 5, 0]
    shape, thresh = longs(2, 2), Tensor(0.0)
    result = ops.functional.sparse_add_op(longs((0, 0)), Tensor([1.0]), shape, longs((0, 0), (1, 1)), Tensor([2.0, 3.0]), shape, thresh)
    assert result[1].asnumpy().tolist() == [3, 3]


def test_joins_and_lengths() -> None:
    stitched = inner_ops.DynamicStitch()([longs(3), longs(1, 0), longs(2)], [of(1, 2), of(2, 2, start=1.0), of(1, 2, start=2.0)])
    close(stitched, ops.stack([of(2, 2, start=1.0)[1], of(2, 2, start=1.0)[0], of(1, 2, start=2.0)[0], of(1, 2)[0]]))
    with pytest.raises(ValueError, match=r"expected data of shape \(2, 2\), got \(1, 2\)"):
        inner_ops.DynamicStitch()([longs(0), longs(1, 2)], [of(1, 2), of(1, 2)])
    x = of(3, 4)
    for axis in (0, 1):
        lengths = np.linalg.norm(x.asnumpy(), axis=axis, keepdims=True)
        close(inner_ops.ClipByNorm(axis)(x, Tensor(4.0)), Tensor(x.asnumpy() * 4 / np.maximum(lengths, 4)))
    matrix = of(3, 3)
    both, order = math_ops.Lu(ms.int32)(matrix)
    lower, upper = np.tril(both.asnumpy(), -1) + np.eye(3), np.triu(both.asnumpy())
    np.testing.assert_allclose(lower @ upper, matrix.asnumpy()[order.asnumpy()], rtol=1e-5)
    with pytest.raises(ValueError, match=r"expected one shape, got \(2,\) and \(3,\)"):
        inner_ops.SameTypeShape()(of(2), of(3))


def test_pooling_indices_are_taken_twice() -> None:
    x = of(1, 2, 4, 4)
    _, indices = P.MaxPoolWithArgmax(2, 2)(x)
    close(G.MaxPoolGradGradWithArgmax(2, 2)(x, x, indices), P.MaxPoolWithArgmax(2, 2)(x)[0])
    with pytest.raises(ValueError, match="shift_idx=5: expected a number from 0 to 1"):
        caches.PadAndShift()(longs(1, 2, 3), longs(0, 1, 3), 5)
