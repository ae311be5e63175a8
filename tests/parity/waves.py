"""Inputs of cases of primitives: numbers that all differ and turn signs; and what several results are recorded as."""
import mindspore as ms
import numpy as np


def t(values, dtype=np.float32):
    return ms.Tensor(np.array(values, dtype))


def of(*shape, start=0.5):
    count = int(np.prod(shape))
    return t((np.sin(np.arange(count) * 1.7 + start) * 3).reshape(shape))


def numbered(*result):
    return {str(at): array.asnumpy() for at, array in enumerate(result)}
