"""Primitives of MindSpore's own modules: embedding caches, joins, gradients of pools and sparse sums."""
from __future__ import annotations

import numpy as np
from mindspore import Parameter
from mindspore.ops import operations as P
from mindspore.ops.operations import _embedding_cache_ops as caches
from mindspore.ops.operations import _grad_ops as G
from mindspore.ops.operations import _inner_ops as inner
from mindspore.ops.operations import array_ops, math_ops, nn_ops
from parity.case import case
from parity.waves import numbered, of, t


@case()
def cache_parts():
    table = Parameter(of(4, 2), name="table")
    caches.UpdateCache()(table, t([1, -1, 3, 9], np.int32), of(4, 2, start=1.0), 4)
    other = Parameter(of(4, 2), name="other")
    caches.DynamicAssign()(other, of(4, 2, start=2.0))
    remaining, positions = caches.SubAndFilter()(t([1, 3, 5, 8, 9, 16], np.int32), 10, 5)
    return {
        "table": table.asnumpy(), "other": other.asnumpy(), "kept": remaining.asnumpy(), "places": positions.asnumpy(),
        "dealt": caches.MapUniform()(t(range(8), np.int32), 4, 2).asnumpy(),
        "long": caches.MapUniform()(t(range(7), np.int64), 3, 3).asnumpy(),
        "shifted": caches.PadAndShift()(t([9, 13, -1, -1, -1, -1, -1, -1], np.int32), t([0, 3, 5, 8], np.int32), 1).asnumpy(),
    }


@case(rtol=1e-6)
def joins():
    results = {"offsets": G.ConcatOffset(3, 1)((of(2, 3), of(2, 1), of(2, 4))).asnumpy()}
    parts = array_ops.ConcatOffsetV1()(t(1, np.int32), (t([1, 2, 3], np.int32), t([1, 5, 3], np.int32), t([1, 4, 3], np.int32)))
    return {**results, **numbered(*parts), "same": inner.SameTypeShape()(of(2), of(2)).asnumpy()}


SHAPES = [((4, 2, 1), (2, 7)), ((2, 3), (2, 3)), ((1, 3), (3,)), ((2, 1, 3), (1, 3)), ((3, 1), (1, 1))]


@case()
def stretched_axes():
    results = {}
    for at, pair in enumerate(SHAPES):
        for which, axes in enumerate(inner.DynamicBroadcastGradientArgs()(*[t(index, np.int64) for index in pair])):
            results[f"{at}_{which}"] = axes.asnumpy()
    return results


@case(over={"all": None, "both": (0, 1)}, rtol=1e-5)           # along one axis MindSpore takes the lengths of other rows
def clipped(axis):
    return {"found": inner.ClipByNorm(axis)(of(3, 4), t(4)).asnumpy(), "wide": inner.ClipByNorm(axis)(of(3, 4), t([100])).asnumpy()}


@case(rtol=1e-5, atol=1e-6)
def gradients():
    x, volume = of(1, 2, 4, 4), of(1, 1, 2, 2, 2)
    pooled, indices = P.MaxPoolWithArgmax(2, 2)(x)
    losses, back = nn_ops.SparseSoftmaxCrossEntropyWithLogitsV2()(of(3, 4), t([0, 2, 3], np.int32))
    lower, upper = G.LuUnpackGrad(True, True)(of(3, 3), of(3, 3, start=1.0), of(3, 3, start=2.0))
    return {
        "pool": G.MaxPoolGradWithArgmax(2, 2)(x, pooled, indices).asnumpy(), "losses": losses.asnumpy(), "back": back.asnumpy(),
        "volume": G.MaxPool3DGradGrad(2, 2)(volume, of(1, 1, 1, 1, 1), of(1, 1, 2, 2, 2, start=1.0)).asnumpy(),
        "lower": lower.asnumpy(), "upper": upper.asnumpy(), "added": math_ops.AddV2()(of(2), of(2)).asnumpy(),
    }


@case()
def sparse_sums():
    from mindspore.ops.operations._sparse_grad_ops import SparseAddGrad

    first, second, total = ([[0, 1], [1, 2]], [[0, 1], [2, 0]], [[0, 1], [1, 2], [2, 0]])
    return numbered(*SparseAddGrad()(of(3), *[t(value, np.int64) for value in (first, second, total)]))


@case(rtol=1e-4, atol=1e-5)
def deformable_offsets():
    options = {"strides": (1, 1, 1, 1), "pads": (0, 0, 0, 0), "ksize": (2, 2)}
    x, offsets = of(1, 2, 4, 4), of(1, 12, 3, 3, start=1.0) * 0.2
    result = nn_ops.DeformableOffsets(**options)(x, offsets)
    options["kernel_size"] = options.pop("ksize")
    by_x, by_offsets = G.DeformableOffsetsGrad(**options)(of(*result.shape, start=2.0), x, offsets)
    return {"x": by_x.asnumpy(), "offsets": by_offsets.asnumpy()}
