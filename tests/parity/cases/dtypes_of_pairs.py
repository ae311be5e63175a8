"""The dtype and the value of functions for pairs of dtypes, which MindSpore does not promote by one rule."""
from __future__ import annotations

import mindspore.numpy as mnp
import numpy as np
from mindspore import Tensor, nn, ops
from parity.case import case

FLOATS, INTEGERS = ("float16", "float32", "float64"), ("int32", "int64", "uint8")
ALL = (*FLOATS, *INTEGERS, "bool_")


def tensor(dtype, shape=(4,)):
    values = np.arange(1, 1 + int(np.prod(shape))).reshape(shape) % 5
    return Tensor((values + (0.5 if dtype in FLOATS else 0)).astype(np.bool_ if dtype == "bool_" else dtype))


PAIRS = {
    "copysign": lambda a, b: a.copysign(b),
    "mse_loss": ops.mse_loss,
    "l1_loss": ops.l1_loss,
    "huber_loss": ops.huber_loss,
    "numpy.divide": mnp.divide,
    "numpy.true_divide": mnp.true_divide,
}
SINGLE = {
    "L1Regularizer": lambda a: nn.L1Regularizer(0.5)(a),
    "ops.trapz": ops.trapz,
    "numpy.trapz": mnp.trapz,
    "Tensor.trace": lambda a: a.reshape(2, 2).trace(),
    "cumprod": lambda a: ops.cumprod(a, 0),
    "numpy.mean": mnp.mean,
    "numpy.std": mnp.std,
}


def answer(call, *dtypes):
    result = call(*map(tensor, dtypes))
    return [str(result.dtype), np.round(result.asnumpy().astype(np.float64), 2).reshape(-1).tolist()]


@case(over={f"{name} {kind}": (call, kind) for name, call in PAIRS.items() for kind in ("float16", "float32", "float64", "int32")})
def pair(item):
    call, first = item
    return {second: answer(call, first, second) for second in ALL}


@case(over=FLOATS)
def poisson(first):
    return {second: answer(lambda a, b: nn.PoissonNLLLoss()(a, b), first, second) for second in FLOATS}


@case(over=SINGLE)
def single(call):
    return {dtype: answer(call, dtype) for dtype in ALL if dtype != "bool_"}
