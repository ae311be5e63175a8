"""What a Tensor made from Python and NumPy values is, and plain arithmetic on it."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from parity.case import case, raised


@case(over={"float": 1.0, "int": 1, "bool": True, "list": [1.5, 2], "float64": np.zeros(2), "int32": np.zeros(2, np.int32)})
def made_from(value):
    tensor = ms.Tensor(value)
    return {"dtype": str(tensor.dtype), "shape": list(tensor.shape), "value": tensor.asnumpy()}


@case(over=["__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__pow__"], graph=True)
def dunder(name):
    left = ms.Tensor(np.array([[1.0, -2.5], [3.0, 7.0]], np.float32))
    right = ms.Tensor(np.array([2.0, 3.0], np.float32))
    return {"output": getattr(left, name)(right).asnumpy()}


@case()
def wrong_dtype():
    return {"error": raised(lambda: ms.Tensor([1.0], ms.float_))}
