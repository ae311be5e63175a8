"""Mathematics as Cells: matrices, moments, ranges, gamma functions."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, with_type
from torchspore.mindspore import ops
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.layer.parts import Part
from torchspore.mindspore.ops.declaration.limits import axes, checked, optional, truth
from torchspore.mindspore.ops.layers import layer_math


class MatMul(Cell):
    """The product of matrices, whose last two axes `transpose_x1` and `transpose_x2` swap first."""

    def __init__(self, transpose_x1: bool = False, transpose_x2: bool = False) -> None:
        super().__init__()
        for name, value in (("transpose_x1", transpose_x1), ("transpose_x2", transpose_x2)):
            if not isinstance(value, bool):
                raise TypeError(message(f"MatMul({name}={value!r:.40})", with_type("a bool", value)))
        self.transpose_x1, self.transpose_x2 = transpose_x1, transpose_x2

    def construct(self, x1: Any, x2: Any) -> Any:
        """x1 @ x2."""
        return ops.matmul(_swapped(x1, self.transpose_x1), _swapped(x2, self.transpose_x2))


def _swapped(x: Any, is_requested: bool) -> Any:
    return ops.swapaxes(x, -1, -2) if is_requested and x.ndim > 1 else x


class Moments(Cell):
    """Mean and variance along `axis` (an int, a tuple, or None for all); `keep_dims` keeps the axes, None does not."""

    def __init__(self, axis: Any = None, keep_dims: bool | None = None) -> None:
        super().__init__()
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, (int, tuple))):
            raise TypeError(f"Moments(axis={axis!r:.40}): expected an int, a tuple or None, got {type(axis).__name__}.")
        if keep_dims is not None and not isinstance(keep_dims, bool):
            raise TypeError(f"Moments(keep_dims={keep_dims!r:.40}): expected a bool or None, got {type(keep_dims).__name__}.")
        self.axis, self.keep_dims = axis, bool(keep_dims)

    def construct(self, x: Any) -> Any:
        """Return (mean, variance)."""
        return layer_math._moments(x, self.axis, self.keep_dims)


class Range(Cell):
    """The numbers from `start` to `limit` (exclusive) by `delta`, int32 or float32; with only `start`, from 0 to it."""

    def __init__(self, start: Any, limit: Any = None, delta: Any = 1) -> None:
        super().__init__()
        if delta == 0:
            raise ValueError("Range(delta=0): expected another number.")
        for name, value in (("start", start), ("limit", limit), ("delta", delta)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
                raise TypeError(message(f"Range({name}={value!r:.40})", with_type("a number", value)))
        values = np.arange(0, start, delta) if limit is None else np.arange(start, limit, delta)
        self.result_tensor = Tensor(values.astype(np.float32 if values.dtype.kind == "f" else np.int32))

    def construct(self) -> Any:
        """The numbers."""
        return self.result_tensor


class ReduceLogSumExp(Cell):
    """log(sum(exp(x))) along `axis`, an int or a tuple; () means all axes."""

    def __init__(self, axis: Any, keep_dims: bool = False) -> None:
        super().__init__()
        if isinstance(axis, bool) or not isinstance(axis, (int, tuple, list)):
            raise TypeError(f"ReduceLogSumExp(axis={axis!r:.40}): expected an int or a tuple, got {type(axis).__name__}.")
        if not isinstance(keep_dims, bool):
            raise TypeError(message(f"ReduceLogSumExp(keep_dims={keep_dims!r:.40})", with_type("a bool", keep_dims)))
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x: Any) -> Any:
        """The logarithm."""
        return layer_math._log_sum_exp(x, self.axis, self.keep_dims)


class LGamma(Cell):
    """log(|gamma(x)|)."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Any) -> Any:
        """The logarithm."""
        return ops.lgamma(x)


class DiGamma(Cell):
    """The derivative of log(gamma(x))."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Any) -> Any:
        """The derivative."""
        return ops.digamma(x)


class IGamma(Cell):
    """The lower incomplete gamma function of (a, x), divided by gamma(a)."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, a: Any, x: Any) -> Any:
        """The value of the function."""
        return layer_math._regularized_gamma(a, x)


class LBeta(Cell):
    """The logarithm of the beta function of (x, y)."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Any, y: Any) -> Any:
        """The logarithm."""
        return layer_math._log_beta(x, y)


class MatInverse(Cell):
    """The inverse of symmetric positive definite matrices (..., M, M)."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, a: Any) -> Any:
        """The inverse."""
        return layer_math._inverse(a)


class MatDet(Cell):
    """The determinant of symmetric positive definite matrices (..., M, M)."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, a: Any) -> Any:
        """The determinant (...)."""
        return layer_math._determinant(a)


class MatrixDiag(Cell):
    """Matrices (..., K, K) with the input (..., K) on their diagonals."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input_x: Any) -> Any:
        """The matrices."""
        return layer_math._diagonal_matrix(input_x)


class MatrixDiagPart(Cell):
    """The diagonals of matrices (..., M, N)."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input_x: Any) -> Any:
        """The diagonals (..., min(M, N))."""
        return layer_math._diagonal(input_x)


class MatrixSetDiag(Cell):
    """Matrices (..., M, N) with the diagonal replaced by (..., min(M, N))."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, input_x: Any, diagonal: Any) -> Any:
        """The matrices."""
        return layer_math._with_diagonal(input_x, diagonal)


class Norm(Cell):
    """The root of the sum of squares along `axis`, an int or a tuple; () means all axes."""

    reduce_sum, sqrt = Part(lambda cell: ops.ReduceSum(cell.keep_dims)), Part(lambda _: ops.Sqrt())

    @checked(axis=optional(axes(tuple, list)), keep_dims=truth)
    def __init__(self, axis: Any = (), keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, keep_dims

    def construct(self, x: Any) -> Any:
        """The norm."""
        return ops.sqrt(ops.ReduceSum(self.keep_dims)(ops.square(x), self.axis))

    def extend_repr(self) -> str:
        return f"axis={self.axis}, keep_dims={self.keep_dims}"


class Tril(Cell):
    """The lower triangle of matrices, up to the diagonal `k`; zeros above."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Any, k: int = 0) -> Any:
        """The triangle."""
        return ops.tril(x, k)


class Triu(Cell):
    """The upper triangle of matrices, from the diagonal `k` on; zeros below."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, x: Any, k: int = 0) -> Any:
        """The triangle."""
        return ops.triu(x, k)


class Roll(Cell):
    """Shifts elements along `axis` by `shift` positions; elements that leave one end enter at the other."""

    def __init__(self, shift: Any, axis: Any) -> None:
        super().__init__()
        for name, value in (("shift", shift), ("axis", axis)):
            if isinstance(value, bool) or not isinstance(value, (int, tuple, list)):
                raise TypeError(f"Roll({name}={value!r:.40}): expected an int, a tuple or a list, got {type(value).__name__}.")
        if not isinstance(shift, int) and not isinstance(axis, int) and len(shift) != len(axis):
            raise ValueError(f"Roll(shift={shift!r:.40}, axis={axis!r:.40}): expected equal lengths.")
        self.shift, self.axis = shift, axis

    def construct(self, input_x: Any) -> Any:
        """The shifted input."""
        shift = self.shift if isinstance(self.shift, int) else tuple(self.shift)
        return ops.roll(input_x, shift, self.axis if isinstance(self.axis, int) else tuple(self.axis))


__all__ = [
    "DiGamma", "IGamma", "LBeta", "LGamma", "MatDet", "MatInverse", "MatMul", "MatrixDiag", "MatrixDiagPart", "MatrixSetDiag", "Moments",
    "Norm", "Range", "ReduceLogSumExp", "Roll", "Tril", "Triu",
]
