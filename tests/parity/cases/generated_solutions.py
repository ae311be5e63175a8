"""Primitives of `mindspore.ops.auto_generate`: sums of diagonals and solutions of triangular equations."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore.ops import auto_generate
from parity.case import case, raised

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
MATRIX = np.array([[3, 0, 0], [2, 1, 0], [1, 0, 2]], np.float32)
RIGHT = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


@case(rtol=1e-6)
def sums_of_diagonals():
    trace, cube = auto_generate.TraceV2(), ms.Tensor(CUBE)
    return {
        "default": trace(cube).asnumpy(), "offset": trace(cube, 1, -2, -1).asnumpy(), "below": trace(cube, -1, 1, 2).asnumpy(),
        **{str(dtype): trace(cube.astype(dtype), 0, 1, 2).asnumpy() for dtype in (ms.float16, ms.int8, ms.int32, ms.bool_)},
        "dtype": trace(cube, 0, 1, 2, ms.float64).asnumpy(),
        "equal axes": raised(lambda: trace(cube, 0, 1, 1)), "one axis": raised(lambda: trace(ms.Tensor(CUBE[0, 0]))),
    }


@case(rtol=1e-6)
def triangular_equations():
    solve, matrix, right = auto_generate.SolveTriangular(), ms.Tensor(MATRIX), ms.Tensor(RIGHT)
    return {
        "lower": solve(matrix, right, 0, True, False).asnumpy(), "upper": solve(matrix, right).asnumpy(),
        "transposed": solve(matrix, right, 1, True, False).asnumpy(), "unit": solve(matrix, right, 1, True, True).asnumpy(),
        "vector": solve(matrix, ms.Tensor(RIGHT[:, 0]), 2, True, False).asnumpy(),
        "text": raised(lambda: solve(matrix, right, "T", True)),
    }
