"""Reductions that are told a dtype: some cast the values first, others the result, which shows where it cuts fractions or wraps."""
from __future__ import annotations

import mindspore as ms
import mindspore.numpy as mnp
import numpy as np
from mindspore import Tensor, mint, ops
from parity.case import case

draw = np.random.RandomState(0)
VALUES = {
    "real": np.round(draw.randn(3, 8) * 3, 2).astype(np.float32), "narrow": (draw.randn(3, 4) * 60).astype(np.int8),
    "bytes": (np.abs(draw.randn(3, 4)) * 90).astype(np.uint8),
}
FUNCTIONS = {
    "Tensor.sum": lambda x, **to: x.sum(0, **to), "Tensor.prod": lambda x, **to: x.prod(0, **to),
    "Tensor.cumsum": lambda x, **to: x.cumsum(0, **to), "ops.sum": lambda x, **to: ops.sum(x, 0, **to),
    "ops.prod": lambda x, **to: ops.prod(x, 0, **to), "ops.nansum": lambda x, **to: ops.nansum(x, 0, **to),
    "ops.cumsum": lambda x, **to: ops.cumsum(x, 0, **to), "ops.cumprod": lambda x, **to: ops.cumprod(x, 0, **to),
    "mint.nansum": lambda x, **to: mint.nansum(x, 0, **to), "mint.sum": lambda x, **to: mint.sum(x, 0, **to),
    "numpy.sum": lambda x, **to: mnp.sum(x, 0, **to), "numpy.sum and 3": lambda x, **to: mnp.sum(x, 0, initial=3, **to),
    "numpy.cumsum": lambda x, **to: mnp.cumsum(x, 0, **to), "numpy.cumprod": lambda x, **to: mnp.cumprod(x, 0, **to),
    "numpy.nansum": lambda x, **to: mnp.nansum(x, 0, **to), "numpy.nancumsum": lambda x, **to: mnp.nancumsum(x, 0, **to),
    "numpy.trace": lambda x, **to: mnp.trace(x, **to),
}
# Where MindSpore adds up in the bytes themselves, the mean of uint8 wraps: docs/differences.md.
REAL = {
    "mint.mean": lambda x, **to: mint.mean(x, 0, **to), "numpy.mean": lambda x, **to: mnp.mean(x, 0, **to),
    "numpy.nanmean": lambda x, **to: mnp.nanmean(x, 0, **to), "numpy.nanstd": lambda x, **to: mnp.nanstd(x, 0, **to),
    "Tensor.mean": lambda x, **to: x.mean(0, **to),
}
KINDS = {"int8": ms.int8, "int32": ms.int32, "float32": ms.float32, "none": None}


@case(over=VALUES, rtol=1e-5, atol=1e-5)
def reduced(values):
    x, results = Tensor(values), {}
    for name, function in {**FUNCTIONS, **(REAL if values.dtype == np.float32 else {})}.items():
        for kind, dtype in KINDS.items():
            out = function(x, **({} if dtype is None else {"dtype": dtype}))
            results[f"{name} {kind} {out.dtype}"] = out.astype(ms.float32).asnumpy()
    return results
