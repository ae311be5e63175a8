"""Products of matrices and vectors."""
from __future__ import annotations

import functools
from typing import Any

import torch
import torch.nn.functional as F

from torchspore.base.text import message
from torchspore.engine.formulas.half_precision import HALVES, in_float32
from torchspore.engine.native.operators import with_short_path
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.ops.declaration.declare import op, part_of
from torchspore.mindspore.ops.declaration.wide import Widening

T = torch.Tensor


def require_equal_dtypes(a: T, b: T) -> None:
    """Raises TypeError if the dtypes differ, because MindSpore does not promote here."""
    if a.dtype is not b.dtype:
        raise TypeError(
            f"expected one dtype, got {FROM_TORCH[a.dtype]} and {FROM_TORCH[b.dtype]}."
            "\n\nhint: cast one of them, for example with astype(mindspore.float32)."
        )


@op(methods=("matmul", "__matmul__"), wide=Widening(), plain=torch.matmul)
def matmul(input: T, other: T) -> T:
    """The matrix product, with the batch axes broadcast.

    Raises TypeError if the dtypes differ, ValueError if the shapes do not fit.
    """
    if input.dtype is other.dtype is torch.float32:                        # the most frequent case takes no further call
        return torch.matmul(input, other)
    require_equal_dtypes(input, other)
    return in_float32(torch.matmul, input, other)


@op(primitive="MatMul", init=("transpose_a", "transpose_b"))
def _matmul(input: T, mat2: T, transpose_a: bool = False, transpose_b: bool = False) -> T:
    """The product of two matrices, after the requested transpositions."""
    require_equal_dtypes(input, mat2)
    return in_float32(torch.mm, input.t() if transpose_a else input, mat2.t() if transpose_b else mat2)


@op(primitive="BatchMatMul", init=("transpose_a", "transpose_b"), wide=Widening())
def _batch_matmul(x: T, y: T, transpose_a: bool = False, transpose_b: bool = False) -> T:
    """The products of batches of matrices, after the requested transpositions."""
    require_equal_dtypes(x, y)
    return in_float32(torch.matmul, x.mT if transpose_a else x, y.mT if transpose_b else y)


@op(methods=("bmm",), wide=Widening())
def bmm(input_x: T, mat2: T) -> T:
    """The products of batches of matrices."""
    return in_float32(torch.matmul, input_x, mat2)


@op(methods=("mm",))
def mm(input: T, mat2: T) -> T:
    """The product of two matrices."""
    return in_float32(torch.mm, input, mat2)


@op(short_path="dense")
def dense(input: T, weight: T, bias: T | None = None) -> T:
    """x @ weight.T + bias: shape (..., in) with weight (out, in) gives (..., out)."""
    return _linear(input, weight, bias)


@part_of("dense")
def dense_layer(input: T, weight: T, bias: T | None = None) -> T:
    """`dense` for the layer: in mixed precision its bias is added after the product, in the bias's dtype."""
    if input.dtype is weight.dtype is torch.float32:                       # the most frequent case takes no further call
        return F.linear(input, weight, bias)
    return _linear(input, weight, bias)


def _linear(input: T, weight: T, bias: T | None) -> T:
    require_equal_dtypes(input, weight)
    return in_float32(F.linear, input, weight, bias) if input.dtype in HALVES else F.linear(input, weight, bias)


dense_layer.__name__ = "dense"             # the name in graphs and errors
dense_layer = with_short_path(dense_layer, "dense")


@op(wide=Widening())
def bias_add(input_x: T, bias: T) -> T:
    """Adds `bias` (shape (C,)) along axis 1 of `input_x` (shape (N, C, ...)).

    Raises TypeError if the dtypes differ, ValueError if C differs.
    """
    require_equal_dtypes(input_x, bias)
    if bias.ndim != 1 or bias.shape[0] != input_x.shape[1]:
        raise ValueError(f"expected a bias of shape ({input_x.shape[1]},), the length of axis 1, got {tuple(bias.shape)}.")
    return input_x + bias.reshape(-1, *[1] * (input_x.ndim - 2))


@op(primitive="BiasAdd", init=("data_format",), wide=Widening())
def _bias_add(input_x: T, bias: T, data_format: str = "NCHW") -> T:
    """Adds `bias` (shape (C,)) along the channels of `input_x`: axis 1, or the last in data_format 'NHWC'."""
    require_equal_dtypes(input_x, bias)
    return input_x + (bias if data_format == "NHWC" else bias.reshape(-1, *[1] * (input_x.ndim - 2)))


def _dot(a: T, b: T) -> T:
    return torch.tensordot(a, b, dims=([-1], [-2 if b.ndim > 1 else 0]))


@op(methods=("dot",))
def _dot_method(input: T, other: T) -> T:
    """The sum of products over the last axis of `input` and the second-to-last axis of `other`."""
    return in_float32(_dot, input, other)


@op()
def dot(input: T, other: T) -> T:
    """The sum of products over the last axis of `input` and the second-to-last axis of `other`."""
    return in_float32(_dot, input, other)


@op(methods=("outer",))
def outer(input: T, vec2: T) -> T:
    """The outer product of two vectors; any other `input` is flattened to a column, which is broadcast against `vec2`.

    Raises TypeError for a number.
    """
    if not isinstance(vec2, T):
        raise TypeError(message(f"vec2={vec2!r}", "a Tensor"))
    return input.reshape(-1, 1) * vec2


@op(methods=("ger",))
def ger(input: T, vec2: T) -> T:
    """The outer product of two vectors. Raises ValueError for other shapes."""
    if input.ndim != 1 or vec2.ndim != 1:
        raise ValueError(f"the rank of the input must be 1, but got {input.ndim} and {vec2.ndim}.")
    return torch.outer(input, vec2)


@op()
def einsum(equation: str, *operands: Any) -> T:
    """The sum of products that `equation` describes."""
    return in_float32(functools.partial(torch.einsum, equation), *operands) if operands else torch.einsum(equation)


@op(methods=("t",))
def t(input: T) -> T:
    """The transposed matrix; a Tensor with another number of axes is returned unchanged."""
    return input.t() if input.ndim == 2 else input.view(input.shape)


@op(wide=Widening())
def trace(input: T) -> T:
    """The sum of the diagonal."""
    return torch.trace(input).to(input.dtype)


@op(methods=("inverse",))
def inverse(input: T) -> T:
    """The inverse of square matrices."""
    return torch.inverse(input)
