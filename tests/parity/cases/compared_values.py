"""`==` and `!=` of a Tensor and other values, outer products of other shapes than vectors, and calls without a required limit."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case

X = np.array([1.0, 2.0], np.float32)
OTHERS = {
    "list": [1.0, 2.0], "tuple": (1.0, 2.0), "empty": [], "array": np.array([1.0, 2.0]), "0-d array": np.array(1.0),
    "np.float32": np.float32(1), "np.float64": np.float64(1), "np.int64": np.int64(2), "np.bool_": np.bool_(True), "complex": 1j,
    "none": None, "text": "1", "int": 2, "float": 1.0, "bool": True, "dtype": ms.float32, "set": {1}, "range": range(2),
}
SHAPES = {"vectors": ((2,), (3,)), "a matrix": ((2, 2), (3,)), "a matrix last": ((2,), (2, 2)), "a number": ((), (3,)), "numbers": ((), ())}
OUTER = {
    "ops": ops.outer, "Tensor": lambda a, b: a.outer(b), "ger": ops.ger, "Tensor.ger": lambda a, b: a.ger(b), "numpy": ms.numpy.outer,
}


def shown(call):
    try:
        result = call()
    except (TypeError, ValueError) as error:
        return {"error": type(error).__name__}
    return {"output": result.asnumpy() if isinstance(result, ms.Tensor) else repr(result)}


@case(over=OTHERS, graph=False)
def equal(other):
    return shown(lambda: ms.Tensor(X) == other)


@case(over=OTHERS, graph=False)
def not_equal(other):
    return shown(lambda: ms.Tensor(X) != other)


@case(over={"list": [1.0, 2.0], "tuple": (1.0, 2.0), "complex": 1j, "int": 2})
def reflected(other):
    return shown(lambda: other == ms.Tensor(X))


@case(over={f"{name} of {shapes}": (name, shapes) for name in OUTER for shapes in SHAPES})
def outer(call):
    a, b = (ms.Tensor(np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)) for shape in SHAPES[call[1]])
    return shown(lambda: OUTER[call[0]](a, b))


@case()
def no_limit():
    return shown(lambda: ops.clip_by_value(ms.Tensor(X)))


@case(over={"2": (2, 3), "3": (2, 3, 4), "1": (2,)})
def permuted_without_axes(shape):
    return shown(lambda: ms.Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape)).permute())
