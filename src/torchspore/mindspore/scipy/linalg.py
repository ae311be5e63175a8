"""`mindspore.scipy.linalg`: matrix decompositions and solvers with SciPy's names.

Integers are computed in float64; dtypes other than float32, float64, int32 and int64 raise TypeError. `overwrite_a`, `overwrite_b` and
`check_finite` are MindSpore's: nothing is overwritten, and nothing is checked for numbers that are not finite.
"""
from __future__ import annotations

from typing import Any

import torch

from torchspore.base.text import message, with_type
from torchspore.engine.tensors.dtypes import FROM_TORCH
from torchspore.mindspore.common import dtype as types
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.ops import matrix_determinant as det
from torchspore.mindspore.ops.declaration.declare import bridged, part_of
from torchspore.mindspore.ops.linear_algebra.matrices import hermitian
from torchspore.mindspore.scipy.ops import decompose, triangular
from torchspore.public_names import missing

__getattr__ = missing(__name__)
__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "inv", "lstsq", "lu", "lu_factor", "lu_solve", "solve_triangular",
]

T = torch.Tensor
_INTEGERS = (types.int32, types.int64)
_FLOATS = (types.float32, types.float64)
_COMPLEX = (types.complex64, types.complex128)


def _matrix(value: Any, name: str, square: bool = True, can_be_complex: bool = False) -> Any:
    """Return `value` as floating-point or complex matrices. Raises TypeError or ValueError with the argument's name."""
    if not isinstance(value, Tensor):
        raise TypeError(message(f"{name}", with_type("a Tensor", value)))
    if value.dtype not in (*_INTEGERS, *_FLOATS, *(_COMPLEX if can_be_complex else ())):
        raise TypeError(f"{name}: expected int32, int64, float32 or float64, got {value.dtype}.")
    if square and (value.ndim < 2 or value.shape[-1] != value.shape[-2]):
        raise ValueError(f"{name}: expected square matrices (..., N, N), got shape {value.shape}.")
    return value.astype(types.float64) if value.dtype in _INTEGERS else value


def _switches(**values: Any) -> None:
    for name, value in values.items():
        if not isinstance(value, bool):
            raise TypeError(message(f"{name}={value!r:.40}", with_type("a bool", value)))


@bridged
def block_diag(*arrs: T) -> T:
    """The block-diagonal matrix of the blocks; vectors and numbers count as one row. Without arguments, shape (1, 0).

    Raises ValueError for more than two axes.
    """
    for block in arrs:
        if block.ndim > 2:
            raise ValueError(f"expected at most two axes, got shape {tuple(block.shape)}.")
    return torch.block_diag(*arrs) if arrs else torch.zeros(1, 0)


@part_of("inv")
def _inverse(a: T) -> T:
    return torch.linalg.inv(a)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The inverses of matrices a (..., N, N). Raises ValueError for a singular matrix."""
    _switches(overwrite_a=overwrite_a, check_finite=check_finite)
    return _inverse(_matrix(a, "inv(a)"))


@part_of("cholesky")
def _factor(a: T, lower: bool) -> T:
    return torch.linalg.cholesky(a if lower else a.mT, upper=not lower)


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The upper triangular U with U^T @ U = a (..., N, N), or with `lower` the L with L @ L^T = a; it reads only that half of `a`.

    Raises ValueError if a matrix is not positive definite.
    """
    _switches(lower=lower, overwrite_a=overwrite_a, check_finite=check_finite)
    return _factor(_matrix(a, "cholesky(a)"), lower)


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, bool]:
    """Return (the factor of `cholesky`, `lower`), the argument of `cho_solve`."""
    return cholesky(a, lower, overwrite_a, check_finite), lower


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The solution x of A @ x = b; `c_and_lower` is `cho_factor`'s result for A (..., N, N), b has shape (..., N) or (..., N, M)."""
    _switches(overwrite_b=overwrite_b, check_finite=check_finite)
    factor, lower = c_and_lower
    factor, b = _matrix(factor, "cho_solve(c)"), _matrix(b, "cho_solve(b)", square=False)
    return triangular(factor, triangular(factor, b, 0 if lower else 1, lower), 1 if lower else 0, lower)


@part_of("eigh")
def _eigen(a: T, lower: bool, only: bool) -> Any:
    matrix, half = hermitian(a, lower), "L" if lower else "U"
    return torch.linalg.eigvalsh(matrix, half) if only else tuple(torch.linalg.eigh(matrix, half))


def eigh(
    a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    turbo: bool = True, eigvals: Any = None, type: int = 1, check_finite: bool = True,
) -> Any:
    """The eigenvalues of a symmetric or Hermitian matrix a (N, N), ascending, and the eigenvectors as columns unless `eigvals_only`.

    It reads only the half that `lower` names. Raises ValueError for another number of axes, and for `b` and `eigvals`, which MindSpore
    does not support; `turbo` and `type` have a meaning only with `b`.
    """
    _switches(lower=lower, eigvals_only=eigvals_only, overwrite_a=overwrite_a, overwrite_b=overwrite_b)
    _switches(turbo=turbo, check_finite=check_finite)
    for name, value in (("b", b), ("eigvals", eigvals)):
        if value is not None:
            raise ValueError(f"eigh({name}=...): expected None, as in MindSpore.\n\nhint: slice the eigenvalues afterwards.")
    if type not in (1, 2, 3):
        raise ValueError(f"eigh(type={type!r}): expected 1, 2 or 3.")
    if isinstance(a, Tensor) and a.ndim != 2:
        raise ValueError(f"For 'eigh', the dimension of 'a' should be 2, but got {a.ndim}."
                         "\n\nhint: use mindspore.ops.Eigh for several matrices.")
    return _eigen(_matrix(a, "eigh(a)", can_be_complex=True), lower, eigvals_only)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """(L without its ones and U in one matrix, the index of the row exchanged with each row, int32) of matrices a (..., N, N)."""
    _switches(overwrite_a=overwrite_a, check_finite=check_finite)
    packed, pivots, _ = decompose(_matrix(a, "lu_factor(a)"))
    return packed, pivots


@part_of("lu")
def _parts(packed: T) -> Any:
    rows, columns = packed.shape[-2:]
    least = min(rows, columns)
    lower = packed[..., :, :least].tril(-1) + torch.eye(rows, least, dtype=packed.dtype, device=packed.device)
    return lower, packed[..., :least, :].triu()


def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """(P, L, U) with P @ L @ U = a (..., M, N), P of int32; with `permute_l` (P @ L, U)."""
    _switches(permute_l=permute_l, overwrite_a=overwrite_a, check_finite=check_finite)
    packed, _, permutation = decompose(_matrix(a, "lu(a)", square=False))
    lower, upper = _parts(packed)
    if permute_l:
        return permutation.astype(lower.dtype).matmul(lower), upper
    return permutation, lower, upper


@part_of("lu_solve")
def _solve_factored(packed: T, pivots: T, b: T, trans: int) -> T:
    vector = b.ndim == packed.ndim - 1
    right = b.unsqueeze(-1) if vector else b
    out = torch.linalg.lu_solve(packed, (pivots + 1).to(torch.int32), right, adjoint=trans != 0)
    return out.squeeze(-1) if vector else out


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """The solution x of A @ x = b (A transposed for `trans` 1 or 2); `lu_and_piv` is `lu_factor`'s result for A."""
    _switches(overwrite_b=overwrite_b, check_finite=check_finite)
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve(trans={trans!r}): expected 0, 1 or 2.")
    packed, pivots = lu_and_piv
    return _solve_factored(_matrix(packed, "lu_solve(lu)"), pivots, _matrix(b, "lu_solve(b)", square=False), trans)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, overwrite_b: bool = False, debug: Any = None,
    check_finite: bool = True,
) -> Any:
    """The solution x of A @ x = b for triangular A (..., N, N) and b (..., N) or (..., N, M).

    `trans` 1 or 'T' transposes A, 2 or 'C' also conjugates it; with `unit_diagonal` its diagonal counts as ones. Raises TypeError if the
    dtypes differ or `debug`, which MindSpore does not use, is not None; ValueError for shapes that do not fit.
    """
    _switches(lower=lower, unit_diagonal=unit_diagonal, overwrite_b=overwrite_b, check_finite=check_finite)
    if debug is not None:
        raise TypeError(f"solve_triangular(debug={debug!r:.40}): expected None.")
    return triangular(_matrix(a, "solve_triangular(a)"), _matrix(b, "solve_triangular(b)", square=False), trans, lower, unit_diagonal)


@bridged
def lstsq(A: T, B: T, rcond: Any = None, driver: Any = None) -> Any:
    """(x, residuals, ranks, singular values) that minimize |A @ x - B|, A (..., M, N) and B (..., M) or (..., M, K).

    Parts that the LAPACK `driver` ('gels', 'gelsy', 'gelsd', 'gelss'; None is 'gelsy') does not compute are empty.
    """
    if A.dtype not in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        raise TypeError(f"A: expected floating-point or complex numbers, got {FROM_TORCH[A.dtype]}.")
    vector = B.ndim == A.ndim - 1
    solution = torch.linalg.lstsq(A, B.unsqueeze(-1) if vector else B, rcond=rcond, driver=driver)
    return (solution.solution.squeeze(-1) if vector else solution.solution), solution.residuals, solution.rank, solution.singular_values
