"""Gradients of forms that torch's own operators have none for: numbers first, integer dtypes, counts, powers as columns."""
from __future__ import annotations

import operator

import mindspore as ms
import mindspore.numpy as mnp
import numpy as np
from mindspore import Tensor, mint, ops
from parity.case import case

X = np.array([0.5, -2.0, 1.5], np.float32)
SQUARE = np.array([[4, 1, 2], [1, 3, 0], [0, 1, 5]], np.float32)
INTEGERS = (ms.int8, ms.int32, ms.int64)
UNARY = {
    "vander": ops.vander, "vander 4": lambda x: ops.vander(x, 4), "vander 1": lambda x: ops.vander(x, 1), "mnp.vander": mnp.vander,
    "dist 0": lambda x: ops.dist(x, x * 2, 0), "dist 0 same": lambda x: ops.dist(x, x * 1, 0), "mnp.arccosh": mnp.arccosh,
    "arccosh": ops.arccosh, "T.acosh": lambda x: x.acosh(),
}
SUMS = {
    "ops.sum": lambda x, d: ops.sum(x, 0, dtype=d), "ops.cumsum": lambda x, d: ops.cumsum(x, 0, d),
    "mint.sum": lambda x, d: mint.sum(x, 0, dtype=d),
    "T.sum": lambda x, d: x.sum(0, dtype=d), "T.cumsum": lambda x, d: x.cumsum(0, dtype=d),
    "mint.mean": lambda x, d: mint.mean(x, 0, dtype=d),
    "mnp.sum": lambda x, d: mnp.sum(x, dtype=d), "mnp.cumsum": lambda x, d: mnp.cumsum(x, dtype=d),
    "mnp.mean": lambda x, d: mnp.mean(x, dtype=d),
    "nansum": lambda x, d: ops.nansum(x, dtype=d), "mnp.nansum": lambda x, d: mnp.nansum(x, dtype=d),
    "mnp.cumprod": lambda x, d: mnp.cumprod(x, dtype=d), "ops.prod": lambda x, d: ops.prod(x * 4, 0, dtype=d),
    "ops.cumprod": lambda x, d: ops.cumprod(x * 4, 0, dtype=d), "mint.prod": lambda x, d: mint.prod(x * 4, 0, dtype=d),
}
BESSEL = tuple(f"bessel_{kind}{order}{end}" for kind in "ik" for order in (0, 1) for end in ("", "e")) + (
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1",
)


@case(over={name: name for name in UNARY}, rtol=1e-5)
def unary(name):
    return {"gradient": ms.grad(UNARY[name])(Tensor(X)).asnumpy()}


@case(rtol=1e-5, graph=True)
def numbers_first():
    x = Tensor(np.array([0.5, -2.0, 1.5, 3.0], np.float32))
    out = {}
    for number in (2, True, 2.5, -1, 0, False):
        for sign in ("mod", "pow", "floordiv", "truediv", "sub"):
            function = getattr(operator, sign)
            if sign != "pow" or number in (1, 2, 2.5):
                out[f"{number} {sign}"] = ms.grad(lambda x: function(number, x))(x).asnumpy()      # noqa: B023
    for name, function in {"remainder": ops.remainder, "mint remainder": mint.remainder, "pow": ops.pow, "mint pow": mint.pow}.items():
        out[name] = ms.grad(lambda x: function(True, x))(x).asnumpy()                                # noqa: B023
    return out


@case(rtol=1e-5)
def integers_divided():
    return {str(number): ms.grad(lambda x: number % x)(Tensor([1, 2, 3], ms.int32)).asnumpy()            # noqa: B023
            for number in (2, 2.5, -1)}


@case(over={name: name for name in SUMS}, rtol=1e-5)
def integer_dtypes(name):
    return {str(dtype): ms.grad(lambda x: SUMS[name](x, dtype))(Tensor(X)).asnumpy() for dtype in INTEGERS}      # noqa: B023


@case(over={name: name for name in BESSEL}, rtol=5e-3, atol=2e-3)
def bessel_functions_of_float16(name):
    return {"gradient": ms.grad(getattr(ops, name))(Tensor([0.5, 1.0, 1.5], ms.float16)).asnumpy()}


@case(over={str(order): order for order in ("fro", 1, float("inf"), 2, None)}, rtol=1e-3, atol=1e-4)
def condition_numbers(order):
    return {"value": ops.cond(Tensor(SQUARE), order).asnumpy(), "gradient": ms.grad(lambda x: ops.cond(x, order))(Tensor(SQUARE)).asnumpy()}


@case()
def running_values_and_weights():
    x, scores = Tensor(SQUARE[:, :2]), Tensor(SQUARE[:2] / 10)
    classes, weights = Tensor([0, 2]), Tensor([1.0, 2.0, 3.0])
    statistics = [Tensor([v, v + 1]) for v in (0.0, 1.0, 1.0, 0.0)]
    return {
        **{f"statistics {p}": ms.grad(lambda x, *s: ops.batch_norm(x, *s), p)(x, *statistics).asnumpy() for p in (1, 2, 4)},
        "nll": ms.grad(lambda w: mint.nn.functional.nll_loss(scores, classes, w))(weights).asnumpy(),
    }


@case()
def vectors_in_other_shapes():
    matrix = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    out = {}
    for shape in ((3,), (1, 3), (3, 1), (1, 1, 3)):
        vector = Tensor(np.array([1, 2, 3], np.float32).reshape(shape))
        out[f"mv {shape}"] = ops.mv(matrix, vector).asnumpy()
        out[f"addmv {shape}"] = ops.addmv(Tensor([1.0, 2.0]), matrix, vector).asnumpy()
    return out


@case()
def dtypes_of_counts_and_places():
    numbers, out = Tensor([0, 1, 1, 3]), {}
    for dtype in (ms.int8, ms.int32, ms.int64, ms.float16, ms.float32, ms.float64):
        weights = Tensor([1, 2, 3, 4]).astype(dtype)
        out[f"bincount {dtype}"], out[f"method {dtype}"] = ops.bincount(numbers, weights).asnumpy(), numbers.bincount(weights).asnumpy()
    out["gradient"] = ms.grad(lambda w: ops.bincount(numbers, w))(Tensor([1.0, 2.0, 3.0, 4.0])).asnumpy()
    out["argmin of a number"], out["argmin"] = mnp.argmin(Tensor(1.8)).asnumpy(), mnp.argmin(Tensor([1.8, 1.0])).asnumpy()
    out["around"] = mnp.around(Tensor([True, False]), 1).asnumpy()
    return out
