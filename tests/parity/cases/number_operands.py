"""Numbers next to Tensors of 16 and 32 bits: a number takes the Tensor's dtype before the operator computes, bit for bit."""
import operator

import mindspore as ms
import numpy as np
from parity.case import case

VALUES = np.random.RandomState(0).randn(200)
NUMBERS = (0.1, -0.3, 3, 1e-3, 70000, 1e6)


def _results(dtype, **forms):
    x = ms.Tensor(VALUES.astype(dtype))
    return {f"{name} {number}": form(x, number).asnumpy() for name, form in forms.items() for number in NUMBERS}


@case(rtol=0, graph=True)
def operators_of_float16():
    return _results(
        np.float16, mul=operator.mul, rmul=lambda x, y: y * x, add=operator.add, radd=lambda x, y: y + x, sub=operator.sub,
        rsub=lambda x, y: y - x, div=operator.truediv, less=operator.lt, greater_equal=operator.ge, equal=operator.eq,
    )


@case(rtol=0, graph=True)
def operators_of_float32():
    return _results(
        np.float32, mul=operator.mul, rmul=lambda x, y: y * x, add=operator.add, radd=lambda x, y: y + x, sub=operator.sub,
        rsub=lambda x, y: y - x, div=operator.truediv, less=operator.lt, greater_equal=operator.ge, equal=operator.eq,
    )


@case(rtol=0, graph=True)
def functions_of_mint():
    return _results(np.float16, mul=ms.mint.mul, div=ms.mint.div, add=ms.mint.add)
