"""What the case files of `mindspore.numpy` share: their inputs, by which a call names its arguments, and how a call is run and answered."""
import mindspore as ms
import numpy as onp
from mindspore import Tensor as T

INPUTS = {
    "f": T(onp.array([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]], onp.float32)), "i": T(onp.array([[1, -2, 3], [4, 5, -6]], onp.int32)),
    "g": T(onp.array([1, 2], onp.int64)), "h": T(onp.array([0.5, 1.5], onp.float16)), "d": T(onp.array([0.5, 1.5], onp.float64)),
    "b": T(onp.array([True, False])), "u": T(onp.array([1, 2], onp.uint8)), "e": T(onp.zeros((0, 3), onp.float32)),
    "c": T(onp.array([1 + 2j], onp.complex64)), "v": T(onp.array([1.0, 2.0, 3.0], onp.float32)), "z": T(2.0),
    "nan": T(onp.array([1.0, onp.nan, 3.0, -onp.inf], onp.float32)),
}


class Net(ms.nn.Cell):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def construct(self, *inputs):
        return self.call(*inputs)


def run(call):
    code = call.__code__
    return Net(call)(*(INPUTS[name] for name in code.co_varnames[: code.co_argcount]))


def answer(value):
    if isinstance(value, (tuple, list)) and any(isinstance(element, (T, tuple, list)) for element in value):
        parts = {f"{i}{key}": part for i, element in enumerate(value) for key, part in answer(element).items()}
        return {**parts, "kind": type(value).__name__, "length": len(value)}
    return {"": value.asnumpy() if isinstance(value, T) else str(value)}


def named(table):
    return {f"{name}{n}": call for name, calls in table.items() for n, call in enumerate(calls)}
