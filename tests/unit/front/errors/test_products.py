"""What bad calls say: products of matrices."""
from __future__ import annotations

import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.ops import operations as P
from support.error_messages import Bad, check


def z(*shape, d=np.float32):
    """Zeros."""
    return Tensor(np.zeros(shape, d))


def h(*shape):
    """Zeros in half precision."""
    return z(*shape, d=np.float16)


BAD = {
    "matmul": Bad(
        lambda: ops.matmul(z(2, 3), z(2, 3)), ValueError,
        "matmul(input: Float32[2, 3], other: Float32[2, 3])",
        "expected as many rows in other as input has columns: shapes (2, 3) and (2, 3) have 2 and 3.",
        "transpose other: other.swapaxes(-1, -2).",
    ),
    "matmul2": Bad(
        lambda: ops.matmul(z(2, 3), z(4, 5)), ValueError,
        "matmul(input: Float32[2, 3], other: Float32[4, 5])",
        "expected as many rows in other as input has columns: shapes (2, 3) and (4, 5) have 4 and 3.",
    ),
    "matmul_dtype": Bad(
        lambda: ops.matmul(z(2, 3), h(3, 2)), TypeError,
        "matmul(input: Float32[2, 3], other: Float16[3, 2])",
        "expected one dtype, got Float32 and Float16.",
        "cast one of them, for example with astype(mindspore.float32).",
    ),
    "matmul_batch": Bad(
        lambda: ops.matmul(z(2, 2, 3), z(3, 3, 2)), ValueError,
        "matmul(input: Float32[2, 2, 3], other: Float32[3, 3, 2])",
        "expected batch axes that broadcast, got shapes (2, 2, 3) and (3, 3, 2).",
    ),
    "matmul0": Bad(
        lambda: ops.matmul(Tensor(1.0), z(2)), ValueError,
        "matmul(input: Float32[], other: Float32[2])",
        "expected at least one axis, got shapes () and (2,).",
        "write a * b for the product with a number.",
    ),
    "matmul_arr": Bad(
        lambda: z(2, 2) @ np.zeros((2, 2)), TypeError,
        "matmul(input: Float32[2, 2], other: array([[0., 0.], [0., 0.]]))",
        "expected a Tensor as other, got ndarray.",
        "write Tensor(other).",
    ),
    "MatMul": Bad(
        lambda: P.MatMul()(z(2, 3), z(2, 3)), ValueError,
        "MatMul(input: Float32[2, 3], mat2: Float32[2, 3])",
        "expected as many rows in mat2 as input has columns: shapes (2, 3) and (2, 3) have 2 and 3.",
        "transpose mat2: mat2.swapaxes(-1, -2).",
    ),
    "MatMul3": Bad(
        lambda: P.MatMul()(z(2, 2, 3), z(3, 2)), ValueError,
        "MatMul(input: Float32[2, 2, 3], mat2: Float32[3, 2])",
        "expected two matrices, got shapes (2, 2, 3) and (3, 2).",
        "ops.matmul also takes batches and vectors.",
    ),
    "MatMulT": Bad(
        lambda: P.MatMul(transpose_b=True)(z(2, 3), z(3, 2)), ValueError,
        "MatMul(input: Float32[2, 3], mat2: Float32[3, 2], transpose_b: True)",
        "expected as many rows in mat2 as input has columns: shapes (2, 3) and (2, 3) have 2 and 3.",
        "transpose mat2: mat2.swapaxes(-1, -2).",
    ),
    "bmm": Bad(
        lambda: P.BatchMatMul()(z(2, 2, 3), z(2, 2, 3)), ValueError,
        "BatchMatMul(x: Float32[2, 2, 3], y: Float32[2, 2, 3])",
        "expected as many rows in y as x has columns: shapes (2, 2, 3) and (2, 2, 3) have 2 and 3.",
        "transpose y: y.swapaxes(-1, -2).",
    ),
    "mm": Bad(
        lambda: ops.mm(z(2, 3), z(2, 3)), ValueError,
        "mm(input: Float32[2, 3], mat2: Float32[2, 3])",
        "expected as many rows in mat2 as input has columns: shapes (2, 3) and (2, 3) have 2 and 3.",
        "transpose mat2: mat2.swapaxes(-1, -2).",
    ),
    "dense": Bad(
        lambda: nn.Dense(4, 2)(z(2, 3)), ValueError,
        "dense(input: Float32[2, 3], weight: Float32[2, 4], bias: Float32[2])",
        "expected an input whose last axis is 4, to match weight of shape (2, 4), got shape (2, 3).",
    ),
    "dense_dtype": Bad(
        lambda: nn.Dense(3, 2)(h(2, 3)), TypeError,
        "dense(input: Float16[2, 3], weight: Float32[2, 3], bias: Float32[2])",
        "expected one dtype, got Float16 and Float32.",
        "cast one of them, for example with astype(mindspore.float32).",
    ),
    "dense_int": Bad(
        lambda: nn.Dense(3, 2)(z(2, 3, d=np.int32)), TypeError,
        "dense(input: Int32[2, 3], weight: Float32[2, 3], bias: Float32[2])",
        "expected one dtype, got Int32 and Float32.",
        "cast one of them, for example with astype(mindspore.float32).",
    ),
    "bias_add": Bad(
        lambda: ops.bias_add(z(2, 3), z(4)), ValueError,
        "bias_add(input_x: Float32[2, 3], bias: Float32[4])",
        "expected a bias of shape (3,), the length of axis 1, got (4,).",
    ),
    "BiasAdd": Bad(
        lambda: P.BiasAdd()(z(2, 3), z(4)), ValueError,
        "BiasAdd(input_x: Float32[2, 3], bias: Float32[4])",
        "expected shapes that broadcast, got (2, 3) and (4,): on axis 1 they have 3 and 4.",
    ),
    "inv": Bad(
        lambda: ops.inverse(z(2, 2)), ValueError,
        "inverse(input: Float32[2, 2])",
        "expected a matrix that has an inverse; this one is singular.",
    ),
    "trace": Bad(
        lambda: ops.trace(z(2)), ValueError,
        "trace(input: Float32[2])",
        "expected matrices, 2 axes, got shape (2,).",
    ),
    "einsum": Bad(
        lambda: ops.einsum('ij,jk', z(2, 3), z(2, 3)), ValueError,
        "einsum(equation: 'ij,jk', operands[0]: Float32[2, 3], operands[1]: Float32[2, 3])",
        "subscript j has size 2 for operand 1 which does not broadcast with previously seen size 3.",
    ),
    "dot": Bad(
        lambda: ops.dot(z(2), z(3)), ValueError,
        "dot(input: Float32[2], other: Float32[3])",
        "expected equal lengths, got 2 and 3.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_message(name: str) -> None:
    check(BAD[name], __file__)
