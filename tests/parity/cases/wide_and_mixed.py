"""Unsigned integers in products, scatters and unpooling; targets that are stretched."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import Parameter, nn, ops
from mindspore.ops import operations as P
from parity.case import case


def t(values, dtype=np.float32):
    return ms.Tensor(np.array(values, dtype))


def of(*shape, start=0.5):
    count = int(np.prod(shape))
    return t((np.sin(np.arange(count) * 1.7 + start) * 3).reshape(shape))


def filled(kind, *shape):
    count = int(np.prod(shape))
    return t((np.arange(count) % 3 + 1).reshape(shape), kind)


WIDE = {kind.__name__: kind for kind in (np.uint16, np.uint32, np.uint64)}
SMALL = {kind.__name__: kind for kind in (np.uint8, np.int8, np.int16, np.int32, np.int64)}


@case(over=WIDE)
def products(kind):
    a, b = filled(kind, 3, 2, 2), filled(kind, 3, 2, 2) + filled(kind, 1)
    results = {"matmul": ops.matmul(a, b).asnumpy(), "addbmm": ops.addbmm(filled(kind, 2, 2), a, b).asnumpy()}
    if kind is not np.uint32:
        results["baddbmm"] = ops.baddbmm(a, a, b).asnumpy()
    return results


HOW = ("Update", "Add", "Sub", "Mul", "Div", "Max", "Min")


@case(over=WIDE)
def scattered(kind):
    results = {}
    top = np.iinfo(kind).max - 1
    rows, points, updates = t([0, 2], np.int32), t([[0], [2]], np.int32), filled(kind, 2, 2)
    for how in HOW:
        start = np.array([[9, 8], [7, 6], [5, top if how in ("Max", "Min", "Div", "Update") else 4]], kind)
        results[f"rows_{how}"] = getattr(P, f"Scatter{how}")()(Parameter(ms.Tensor(start), name="x"), rows, updates).asnumpy()
        results[f"points_{how}"] = getattr(P, f"ScatterNd{how}")()(Parameter(ms.Tensor(start), name="x"), points, updates).asnumpy()
        if how not in ("Update", "Add"):
            results[f"copy_{how}"] = getattr(ops, f"tensor_scatter_{how.lower()}")(ms.Tensor(start), points, updates).asnumpy()
    return results


@case(over=WIDE)
def sums_choices_and_indexes(kind):
    x, at = filled(kind, 3, 2), (t([0, 0, 2], np.int64), t([1, 1, 0], np.int64))
    return {
        "nansum": ops.nansum(x).asnumpy(), "nansum_axis": ops.nansum(x, 1).asnumpy(),
        "chosen": t([0, 1], np.int32).choose([x[0], x[1]]).asnumpy(),
        "put": x.index_put(at, filled(kind, 3)).asnumpy(), "added": x.index_put(at, filled(kind, 3), True).asnumpy(),
    }


@case(over={**WIDE, **SMALL})
def unpooled(kind):
    at = t([1, 3], np.int64)
    top = np.array([np.iinfo(kind).max, 3], kind)
    return {
        "line": ops.max_unpool1d(ms.Tensor(top.reshape(1, 1, 2)), at.reshape(1, 1, 2), 2).asnumpy(),
        "plane": ops.max_unpool2d(ms.Tensor(top.reshape(1, 1, 1, 2)), at.reshape(1, 1, 1, 2), 2).asnumpy(),
        "room": ops.max_unpool3d(ms.Tensor(top.reshape(1, 1, 1, 1, 2)), at.reshape(1, 1, 1, 1, 2), 2).asnumpy(),
    }


TARGETS = {"one": [1], "each": [1, -1, 1], "column": [[1], [-1], [1]], "row": [[1, -1, 1]], "number": -1}


@case(over=TARGETS, rtol=1e-5, atol=1e-6)
def cosine_targets(target):
    results = {}
    for reduction in ("none", "mean", "sum"):
        loss = nn.CosineEmbeddingLoss(0.1, reduction)
        results[reduction] = loss(of(3, 4), of(3, 4, start=2.0), t(target, np.int32)).asnumpy()
    return results


@case(over={"one": [1], "each": [[1, -1, 1, -1], [-1, 1, -1, 1]], "rows": [[1], [-1]]}, rtol=1e-5, atol=1e-6)
def cosine_of_more_axes(target):
    return {"loss": nn.CosineEmbeddingLoss(0.1, "none")(of(2, 3, 4), of(2, 3, 4, start=2.0), t(target, np.int32)).asnumpy()}


KINDS = {kind.__name__: kind for kind in (np.float16, np.float64, np.int8, np.int32, np.uint8)}


@case(over=KINDS, rtol=1e-3)
def numbers_first(kind):
    x = filled(kind, 2, 3)
    return {"rest": ops.fmod(7, x).asnumpy(), "scaled": ops.ldexp(3, x).asnumpy(), "by_truth": ops.ldexp(of(2, 3), x > 1).asnumpy()}


@case()
def rests_and_differences_of_truths():
    x = t([True, False, True], np.bool_)
    return {"rest": ops.fmod(x, t([True] * 3, np.bool_)).asnumpy(), "other": ops.remainder(x, True).asnumpy(),
            "number": ops.fmod(3, t([True] * 3, np.bool_)).asnumpy(), "difference": ops.subtract(x, x).asnumpy()}


@case(over=WIDE)
def shifts_by_numbers(kind):
    x = filled(kind, 3, 3)
    return {"left": ops.bitwise_left_shift(x, 2).asnumpy(), "right": ops.bitwise_right_shift(x, 1).asnumpy(),
            "of_a_number": ops.bitwise_left_shift(3, x).asnumpy(), "trace": ops.trace(x).asnumpy()}
