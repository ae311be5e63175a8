"""Diagonals of matrices, one or a band: extract them, set them, build matrices from them."""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.arguments import is_int
from torchspore.engine.devices import device
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.arguments import as_dtype
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.promote import alike

T = torch.Tensor


def _ends(k: Any) -> tuple[int, int]:
    """Return the lowest and the highest diagonal of `k` (an int, a pair, or a Tensor of one or two)."""
    values = k.reshape(-1).tolist() if isinstance(k, T) else list(k) if isinstance(k, (tuple, list)) else [k]
    if len(values) not in (1, 2) or any(not is_int(value) for value in values):
        raise ValueError(f"k={values!r:.40}: expected an int, or two with the lower diagonal first.")
    low, high = int(values[0]), int(values[-1])
    if low > high:
        raise ValueError(f"k={(low, high)}: expected the lower diagonal first.")
    return low, high


def _length(rows: int, columns: int, diagonal: int) -> int:
    return min(rows + min(diagonal, 0), columns - max(diagonal, 0))


def _starts(rows: int, columns: int, low: int, high: int, align: str) -> list[tuple[int, int, int]]:
    """Return (diagonal, length, start in its row of the band) for each diagonal, from the highest down."""
    above, _, below = align.upper().partition("_")
    if {above, below} - {"LEFT", "RIGHT"}:
        raise ValueError(f"align={align!r}: expected 'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT' or 'RIGHT_RIGHT'.")
    longest = max(_length(rows, columns, d) for d in range(low, high + 1))
    diagonals = []
    for diagonal in range(high, low - 1, -1):
        length = _length(rows, columns, diagonal)
        diagonals.append((diagonal, length, longest - length if (above if diagonal >= 0 else below) == "RIGHT" else 0))
    return diagonals


def _check_in(low: int, high: int, rows: int, columns: int) -> None:
    """Raises ValueError for a diagonal outside a matrix of these lengths."""
    if not (-rows < low and high < columns):
        raise ValueError(f"k={(low, high)}: expected diagonals above {-rows} and below {columns} of a matrix of shape {(rows, columns)}.")


def _matrix_sides(x: T) -> tuple[int, int]:
    if x.ndim < 2:
        raise ValueError(f"expected matrices as x, got shape {tuple(x.shape)}.")
    return x.shape[-2], x.shape[-1]


def _band(x: T, name: str, low: int, high: int) -> T:
    """Return the diagonals as stacked rows. Raises ValueError if their number does not match `low` to `high`."""
    if low == high:
        if x.ndim == 0:
            raise ValueError(f"{name}: expected at least one axis, got a Tensor without axes.")
        return x.unsqueeze(-2)
    if x.ndim < 2 or x.shape[-2] != high - low + 1:
        raise ValueError(f"{name}: expected {high - low + 1} diagonals, for k={(low, high)}, got a Tensor of shape {tuple(x.shape)}.")
    return x


def _sides(rows: int, columns: int, least: tuple[int, int]) -> tuple[int, int]:
    """Return the sides of a matrix whose longest diagonal fits exactly; -1 means that a side is not specified.

    Raises ValueError where it does not fit.
    """
    if rows == -1 and columns == -1:
        return max(least), max(least)
    for name, value, needed in (("num_rows", rows, least[0]), ("num_cols", columns, least[1])):
        if value != -1 and value < needed:
            raise ValueError(f"{name}={value}: expected at least {needed}, for these diagonals, or -1.")
    sides = least[0] if rows == -1 else rows, least[1] if columns == -1 else columns
    if sides[0] != least[0] and sides[1] != least[1]:
        expected = f"{least[0]} rows or {least[1]} columns, for these diagonals"
        raise ValueError(f"num_rows={rows}, num_cols={columns}: expected {expected}.")
    return sides


def _padding(value: Any, like: T) -> T:
    return (value if isinstance(value, T) else constant(value, like.device)).to(like.dtype).reshape(())


@op(methods=("diag_embed",))
def diag_embed(input: T, offset: int = 0, dim1: int = -2, dim2: int = -1) -> T:
    """Matrices with the last axis of `input` on a diagonal, along two new axes."""
    return torch.diag_embed(input, offset, dim1, dim2)


@op(methods=("diagflat",))
def diagflat(input: T, offset: int = 0) -> T:
    """The matrix with all elements of `input` on a diagonal."""
    return torch.diagflat(input, offset)


@op(primitive="Diag")
def _diag(input: T) -> T:
    """The matrix with this diagonal; for an input of n axes, a Tensor of 2 n axes."""
    return torch.diag(input.reshape(-1)).reshape(*input.shape, *input.shape)


@op(primitive="DiagPart")
def _diag_part(input_x: T) -> T:
    """The diagonal of a Tensor of 2 n axes, as a Tensor of n axes."""
    half = input_x.shape[: input_x.ndim // 2]
    size = half.numel()
    return torch.diagonal(input_x.reshape(size, size)).reshape(half).clone()


@op()
def matrix_diag(
    x: T, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT",
) -> T:
    """Matrices with the rows of x on the diagonals from k[1] down to k[0], `padding_value` elsewhere."""
    return _matrix(x, k, num_rows, num_cols, padding_value, align)


@op(primitive="MatrixDiagV3", init=("align",))
def _matrix_diag(
    x: T, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT",
) -> T:
    """Matrices with the rows of x on the diagonals from k[1] down to k[0], `padding_value` elsewhere."""
    return _matrix(x, k, num_rows, num_cols, padding_value, align)


def _matrix(x: T, k: Any, num_rows: Any, num_cols: Any, padding_value: Any, align: str) -> T:
    low, high = _ends(k)
    band = _band(x, "x", low, high)
    longest = band.shape[-1]
    rows, columns = _sides(int(num_rows), int(num_cols), (longest - min(high, 0), longest + max(low, 0)))
    _check_in(low, high, rows, columns)
    out = _padding(padding_value, x).expand(*band.shape[:-2], rows, columns).clone()
    return _set(out, band, low, high, align)


def _set(matrix: T, band: T, low: int, high: int, align: str) -> T:
    for row, (diagonal, length, start) in enumerate(_starts(matrix.shape[-2], matrix.shape[-1], low, high, align)):
        matrix = torch.diagonal_scatter(matrix, band[..., row, start : start + length], diagonal, -2, -1)
    return matrix


@op()
def matrix_set_diag(x: T, diagonal: T, k: Any = 0, align: str = "RIGHT_LEFT") -> T:
    """x with the rows of `diagonal` on the diagonals from k[1] down to k[0]."""
    return _with_diagonals(x, diagonal, k, align)


@op(primitive="MatrixSetDiagV3", init=("align",))
def _matrix_set_diag(x: T, diagonal: T, k: Any, align: str = "RIGHT_LEFT") -> T:
    """x with the rows of `diagonal` on the diagonals from k[1] down to k[0]."""
    return _with_diagonals(x, diagonal, k, align)


def _with_diagonals(x: T, diagonal: T, k: Any, align: str) -> T:
    x, diagonal = alike(x, diagonal)
    low, high = _ends(k)
    rows, columns = _matrix_sides(x)
    _check_in(low, high, rows, columns)
    band = _band(diagonal, "diagonal", low, high)
    longest = max(_length(rows, columns, d) for d in range(low, high + 1))
    if band.shape[:-2] != x.shape[:-2] or band.shape[-1] != longest:
        expected_shape = (*x.shape[:-2], *(() if low == high else (high - low + 1,)), longest)
        raise ValueError(f"expected a diagonal of shape {expected_shape}, for k={(low, high)}, got {tuple(diagonal.shape)}.")
    return _set(x, band, low, high, align)


@op()
def matrix_diag_part(x: T, k: Any, padding_value: Any, align: str = "RIGHT_LEFT") -> T:
    """The diagonals of matrices from k[1] down to k[0] as rows, padded with `padding_value`."""
    return _diagonals(x, k, padding_value, align)


@op(primitive="MatrixDiagPartV3", init=("align",))
def _matrix_diag_part(x: T, k: Any, padding_value: Any, align: str = "RIGHT_LEFT") -> T:
    """The diagonals of matrices from k[1] down to k[0] as rows, padded with `padding_value`."""
    return _diagonals(x, k, padding_value, align)


def _diagonals(x: T, k: Any, padding_value: Any, align: str) -> T:
    low, high = _ends(k)
    rows, columns = _matrix_sides(x)
    _check_in(low, high, rows, columns)
    diagonals = _starts(rows, columns, low, high, align)
    longest = max(length for _, length, _ in diagonals)
    fill = _padding(padding_value, x)
    lines = []
    for diagonal, length, start in diagonals:
        taken = torch.diagonal(x, diagonal, -2, -1)
        sides = [fill.expand(*taken.shape[:-1], count) for count in (start, longest - length - start)]
        lines.append(torch.cat([sides[0], taken, sides[1]], -1))
    return lines[0] if low == high else torch.stack(lines, -2)


@op(methods=("diagonal_scatter",))
def diagonal_scatter(input: T, src: T, offset: int = 0, dim1: int = 0, dim2: int = 1) -> T:
    """A copy with `src` on a diagonal of the matrices along two axes."""
    return torch.diagonal_scatter(*alike(input, src), offset, dim1, dim2)


@op(primitive="FillDiagonal", init=("fill_value", "wrap"))
def _fill_diagonal(input_x: T, fill_value: float, wrap: bool = False) -> T:
    """A copy with `fill_value` on the main diagonal, which restarts below in a tall matrix if `wrap`."""
    return input_x.clone().fill_diagonal_(fill_value, wrap)


@op(methods=("fill_diagonal",))
def _fill_diagonal_method(input: T, fill_value: float, wrap: bool = False) -> T:
    """A copy with `fill_value` on the main diagonal, which restarts below in a tall matrix if `wrap`."""
    return input.clone().fill_diagonal_(fill_value, wrap)


def _triangle(function: Any, row: int, col: int, offset: int, dtype: Any) -> T:
    return function(row, col, offset, dtype=as_dtype(dtype), device=device.current())


@op()
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = torch.int64) -> T:
    """The rows and columns of the lower triangle of a (row, col) matrix: shape (2, n)."""
    return _triangle(torch.tril_indices, row, col, offset, dtype)


@op()
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = torch.int64) -> T:
    """The rows and columns of the upper triangle of a (row, col) matrix: shape (2, n)."""
    return _triangle(torch.triu_indices, row, col, offset, dtype)


@op(primitive="TrilIndices", init=("row", "col", "offset", "dtype"))
def _tril_indices(row: int, col: int, offset: int = 0, dtype: Any = torch.int32) -> T:
    """The rows and columns of the lower triangle of a (row, col) matrix: shape (2, n)."""
    return _triangle(torch.tril_indices, row, col, offset, dtype)


@op(primitive="TriuIndices", init=("row", "col", "offset", "dtype"))
def _triu_indices(row: int, col: int, offset: int = 0, dtype: Any = torch.int32) -> T:
    """The rows and columns of the upper triangle of a (row, col) matrix: shape (2, n)."""
    return _triangle(torch.triu_indices, row, col, offset, dtype)
