"""Matrix decompositions, solvers, determinants, inverses and norms."""
from __future__ import annotations

import math
from typing import Any

import torch

from torchspore.engine.formulas import clamping
from torchspore.engine.tensors.creation import constant
from torchspore.mindspore.ops.declaration.declare import op
from torchspore.mindspore.ops.declaration.split_capture import is_split
from torchspore.mindspore.ops.reductions.norms import in_dtype_of_norm, norm_of_extremes

T = torch.Tensor
L = torch.linalg


@op(primitive="MatrixDeterminant", methods=("det", "matrix_determinant"))
def matrix_determinant(input: T) -> T:
    """The determinants of square matrices."""
    return L.det(input)


@op(primitive="LogMatrixDeterminant", methods=("log_matrix_determinant",))
def log_matrix_determinant(input: T) -> Any:
    """The signs of the determinants of square matrices, and the logarithms of their absolute values."""
    return _slogdet(input)


def _slogdet(input: T) -> tuple[T, T]:
    """As torch's function; both results have the dtype of the input, complex ones too."""
    sign, size = L.slogdet(input)
    return sign, size.to(input.dtype)


@op(methods=("slogdet",))
def slogdet(input: T) -> Any:
    """The signs of the determinants of square matrices, and the logarithms of their absolute values."""
    return _slogdet(input)


@op(methods=("logdet",))
def logdet(input: T) -> T:
    """The logarithms of the determinants of square matrices."""
    return torch.logdet(input)


@op(primitive="MatrixInverse", init=("adjoint",))
def _matrix_inverse(x: T, adjoint: bool = False) -> T:
    """The inverses of square matrices, transposed and conjugated if `adjoint`."""
    out = L.inv(x)
    return out.mH.clone() if adjoint else out


@op(methods=("pinverse",))
def pinv(x: T, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> T:
    """The pseudo-inverses of matrices."""
    return L.pinv(x, atol=atol, rtol=rtol, hermitian=hermitian)


@op(primitive="MatrixExp", methods=("matrix_exp",))
def matrix_exp(input: T) -> T:
    """The exponential of square matrices."""
    return torch.matrix_exp(input)


@op(methods=("matrix_power",))
def matrix_power(input: T, n: int) -> T:
    """Raise square matrices to an integer power."""
    return L.matrix_power(input, n)


@op(primitive="MatrixPower", init=("n",))
def _matrix_power(x: T, n: int) -> T:
    """Raise square matrices to an integer power."""
    return L.matrix_power(x, n)


@op(primitive="Cholesky", init=("upper",), methods=("cholesky",))
def cholesky(input_x: T, upper: bool = False) -> T:
    """The triangular L (or U, if `upper`) with L @ L^H = input_x."""
    return L.cholesky(input_x, upper=upper)


@op(primitive="CholeskyInverse", init=("upper",), methods=("cholesky_inverse",))
def cholesky_inverse(input_x: T, upper: bool = False) -> T:
    """The inverse of the matrix with Cholesky factor A: of A A^T, or of A^T A if `upper`.

    All of A counts, as in MindSpore, including the half in which a factor has zeros.
    """
    inverse = torch.linalg.inv(input_x)
    return inverse @ inverse.mT if upper else inverse.mT @ inverse


@op(methods=("cholesky_solve",))
def cholesky_solve(input: T, input2: T, upper: bool = False) -> T:
    """The solution x of A @ x = input; `input2` is the Cholesky factor of A."""
    return torch.cholesky_solve(input, input2, upper)


@op(primitive="CholeskySolve", init=("upper",))
def _cholesky_solve(x1: T, x2: T, upper: bool = False) -> T:
    """The solution x of A @ x = x1; x2 is the Cholesky factor of A."""
    return torch.cholesky_solve(x1, x2, upper)


@op(methods=("svd",))
def svd(input: T, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """The singular values s of matrices, and with `compute_uv` also u and v of u @ diag(s) @ v^H."""
    return _svd(input, full_matrices, compute_uv)


@op(primitive="Svd", init=("full_matrices", "compute_uv"))
def _svd_primitive(input: T, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """The singular values s of matrices, and u and v of u @ diag(s) @ v^H; without `compute_uv` these are zeros of one element."""
    out = _svd(input, full_matrices, compute_uv)
    return out if compute_uv else (out, input.new_zeros(1), input.new_zeros(1))


def _svd(input: T, full_matrices: bool, compute_uv: bool) -> Any:
    if not compute_uv:
        return L.svdvals(input)
    u, s, v = L.svd(input, full_matrices)
    return s, u, v.mH


@op(methods=("qr",))
def _qr_method(input: T, some: Any = True) -> Any:
    """The orthogonal Q and the triangular R with Q @ R = input; a square Q unless `some`. Older programs pass `mode` as this argument."""
    return qr(input, some if isinstance(some, str) else ("reduced" if some else "complete"))


@op()
def qr(input: T, mode: str = "reduced") -> Any:
    """The orthogonal Q and the triangular R with Q @ R = input; `mode` 'complete' gives a square Q."""
    if not isinstance(mode, str) or mode not in ("reduced", "complete"):
        raise ValueError(f"expected mode 'reduced' or 'complete', got {mode if isinstance(mode, str) else type(mode).__name__}.")
    return tuple(L.qr(input, mode))


@op(primitive="Qr", init=("full_matrices",))
def _qr(x: T, full_matrices: bool = False) -> Any:
    """The orthogonal Q and the triangular R with Q @ R = x; a square Q if `full_matrices`."""
    return tuple(L.qr(x, "complete" if full_matrices else "reduced"))


@op(methods=("geqrf",), primitive="Geqrf")
def geqrf(input: T) -> Any:
    """A QR decomposition in LAPACK's form: R and the reflectors in one matrix, and their factors."""
    return tuple(torch.geqrf(input))


@op(methods=("orgqr",))
def orgqr(input: T, input2: T) -> T:
    """The first columns of Q from the reflectors of `geqrf` and their factors."""
    return L.householder_product(input, input2)


@op(primitive="Orgqr")
def _orgqr(x: T, tau: T) -> T:
    """The first columns of Q from the reflectors of `geqrf` and their factors."""
    return L.householder_product(x, tau)


@op(methods=("ormqr",))
def ormqr(input: T, tau: T, other: T, left: bool = True, transpose: bool = False) -> T:
    """Q @ other (or other @ Q if not `left`), with Q from the reflectors of `geqrf`, conjugate-transposed if requested."""
    return torch.ormqr(input, tau, other, left, transpose)


@op(primitive="Ormqr", init=("left", "transpose"))
def _ormqr(x: T, tau: T, other: T, left: bool = True, transpose: bool = False) -> T:
    """Q @ other (or other @ Q if not `left`), with Q from the reflectors of `geqrf`, conjugate-transposed if requested."""
    return torch.ormqr(x, tau, other, left, transpose)


@op()
def eig(A: T) -> Any:
    """The eigenvalues of square matrices and their eigenvectors as columns, complex."""
    return tuple(L.eig(A))


@op(methods=("eigvals",))
def eigvals(A: T) -> T:
    """The eigenvalues of square matrices, complex."""
    return L.eigvals(A)


def decompose_eigen(x: T, compute_v: bool) -> tuple[T, T]:
    """The eigenvalues of square matrices, and with `compute_v` their eigenvectors as columns, else an empty tensor."""
    if compute_v:
        return tuple(L.eig(x))
    values = L.eigvals(x)
    return values, values.new_zeros(0)


@op(primitive="Eig", init=("compute_v",))
def _eig(x: T, compute_v: bool = False) -> Any:
    """The eigenvalues of square matrices, and with `compute_v` their eigenvectors as columns, else an empty Tensor."""
    return decompose_eigen(x, compute_v)


@op(primitive="SelfAdjointEig", init=("compute_v",))
def _self_adjoint_eig(x: T, compute_v: bool = True) -> Any:
    """The eigenvalues of symmetric or Hermitian matrices in ascending order, and with `compute_v` their eigenvectors as columns."""
    if compute_v:
        return tuple(L.eigh(x))
    values = L.eigvalsh(x)
    return values, values.new_zeros(0)


def hermitian(half: T, lower: bool) -> T:
    """Return the Hermitian matrices whose lower or upper half is that of `half` (..., N, N); the gradient has that half alone."""
    triangle = half.tril() if lower else half.triu()
    return triangle + (triangle.tril(-1) if lower else triangle.triu(1)).mH


@op(primitive="Eigh", init=("compute_eigenvectors", "lower"))
def _eigh(A: T, compute_eigenvectors: bool = True, lower: bool = True) -> Any:
    """The eigenvalues of symmetric or Hermitian matrices in ascending order, and on request their eigenvectors as columns."""
    matrix, half = hermitian(A, lower), "L" if lower else "U"
    return tuple(L.eigh(matrix, UPLO=half)) if compute_eigenvectors else L.eigvalsh(matrix, UPLO=half)


@op(primitive="TridiagonalSolve", init=("partial_pivoting",))
def _tridiagonal_solve(diagonals: T, rhs: T, partial_pivoting: bool = True) -> T:
    """The solution x of A @ x = rhs (..., M, K); the rows of `diagonals` (..., 3, M) are those above, on and below A's diagonal.

    The last element above and the first one below are outside the matrix. Rows are exchanged for accuracy, requested or not.
    """
    if diagonals.shape[-2] != 3 or rhs.shape[-2] != diagonals.shape[-1]:
        raise ValueError(f"expected diagonals (..., 3, M) and rhs (..., M, K), got {tuple(diagonals.shape)} and {tuple(rhs.shape)}.")
    above, main, below = diagonals.unbind(-2)
    matrix = torch.diag_embed(main) + torch.diag_embed(above[..., :-1], 1) + torch.diag_embed(below[..., 1:], -1)
    return L.solve(matrix, rhs)


@op(methods=("lu_solve",))
def lu_solve(b: T, LU_data: T, LU_pivots: T) -> T:
    """The solution x of A @ x = b, with the LU decomposition A = P @ L @ U."""
    return _lu_solve(b, LU_data, LU_pivots)


@op(primitive="LuSolve")
def _lu_solve_primitive(x: T, lu_data: T, lu_pivots: T) -> T:
    """The solution y of A @ y = x, with the LU decomposition A = P @ L @ U."""
    return _lu_solve(x, lu_data, lu_pivots)


def _lu_solve(b: T, data: T, pivots: T) -> T:
    _check_pivots(data, pivots)
    if b.ndim == 1:
        return L.lu_solve(data, pivots.to(torch.int32), b.unsqueeze(-1)).squeeze(-1)
    return L.lu_solve(data, pivots.to(torch.int32), b)


def _check_pivots(data: T, pivots: T) -> None:
    """Raises ValueError for pivots that are not rows of the matrix: LAPACK would read and write outside it."""
    if data.ndim < 2 or tuple(pivots.shape) != (*data.shape[:-2], min(data.shape[-2:])):
        raise ValueError(f"expected one pivot for each column of {tuple(data.shape)}, got pivots of shape {tuple(pivots.shape)}.")
    if pivots.is_floating_point() or bool(((pivots < 1) | (pivots > data.shape[-2])).any()):
        raise ValueError(f"expected pivots from 1 to {data.shape[-2]}, which count the rows.")


def _unpacked(data: T, pivots: T, unpack_data: bool, unpack_pivots: bool) -> Any:
    _check_pivots(data, pivots)
    return tuple(torch.lu_unpack(data, pivots.to(torch.int32), unpack_data, unpack_pivots))


@op()
def lu_unpack(LU_data: T, LU_pivots: T, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """P, L and U of an LU decomposition; without the flags P, or L and U, are empty matrices."""
    return _unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots)


@op(primitive="LuUnpack", init=("unpack_data", "unpack_pivots"))
def _lu_unpack(LU_data: T, LU_pivots: T, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """P, L and U of an LU decomposition; without the flags P, or L and U, are empty matrices."""
    return _unpacked(LU_data, LU_pivots, unpack_data, unpack_pivots)


def _adjoint_if(matrix: T, adjoint: bool) -> T:
    return matrix.mH if adjoint else matrix


@op(primitive="MatrixSolve", init=("adjoint",))
def matrix_solve(matrix: T, rhs: T, adjoint: bool = False) -> T:
    """The solution x of matrix @ x = rhs; the matrix is conjugate-transposed if `adjoint`."""
    return L.solve(_adjoint_if(matrix, adjoint), rhs)


@op(primitive="MatrixTriangularSolve", init=("lower", "adjoint"))
def _triangular_solve(matrix: T, rhs: T, lower: bool = True, adjoint: bool = False) -> T:
    """The solution x of matrix @ x = rhs with the lower (or upper) triangle of `matrix`, conjugate-transposed if `adjoint`."""
    triangle = torch.tril(matrix) if lower else torch.triu(matrix)
    return L.solve_triangular(_adjoint_if(triangle, adjoint), rhs, upper=lower == adjoint)


@op(primitive="MatrixSolveLs", init=("fast",))
def _matrix_solve_ls(matrix: T, rhs: T, l2_regularizer: T, fast: bool = True) -> T:
    """The x that minimizes |matrix @ x - rhs|^2 + l2 |x|^2, by the normal equations if `fast`, else by a complete decomposition."""
    if not fast:
        return L.lstsq(matrix, rhs, driver="gelsy" if matrix.device.type == "cpu" else None).solution
    square = matrix.mH @ matrix
    damped = square + l2_regularizer.to(matrix.dtype) * torch.eye(square.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return L.solve(damped, matrix.mH @ rhs)


@op(primitive="LstsqV2")
def _lstsq_v2(A: T, B: T, driver: str | None = None) -> tuple[T, T, T, T]:
    """Return (x that minimizes |A @ x - B|, squared residuals, ranks of A, its singular values).

    The shapes are A (..., m, n) and B (..., m, k) or (..., m).

    `driver` is 'gels', 'gelsy', 'gelsd' or 'gelss'; what it does not compute is empty.
    """
    if is_split():
        return _split_lstsq(A, B, driver)
    solved = L.lstsq(A, B, driver=driver)
    return solved.solution, solved.residuals, solved.rank, solved.singular_values


def _split_lstsq(A: T, B: T, driver: str | None) -> tuple[T, T, T, T]:
    """The results of LstsqV2 in a graph that is split, by the pseudo-inverse: the shape of torch's residuals depends on the rank of A.

    Residuals have numbers here also if A has not full rank, where they are empty otherwise.
    """
    is_vector = B.ndim == A.ndim - 1
    right = B.unsqueeze(-1) if is_vector else B
    solution = L.pinv(A) @ right
    rows, columns = A.shape[-2:]
    empty = torch.zeros(0, dtype=A.real.dtype if A.is_complex() else A.dtype, device=A.device)
    residuals = (A @ solution - right).abs().square().sum(-2) if rows > columns and driver != "gelsy" else empty
    rank = L.matrix_rank(A) if driver != "gels" else torch.zeros(0, dtype=torch.int64, device=A.device)
    singular = L.svdvals(A) if driver in ("gelsd", "gelss") else empty
    return solution.squeeze(-1) if is_vector else solution, residuals, rank, singular


@op(methods=("lstsq",))
def lstsq(input: T, A: T) -> T:
    """The x that minimizes |input @ x - A|: shapes (m, n) and (m, k) or (m,) give (n, k)."""
    return _lstsq(input, A)


@op(primitive="Lstsq", init=("fast", "l2_regularizer"))
def _lstsq_primitive(x: T, a: T, fast: bool = True, l2_regularizer: float = 0.0) -> T:
    """The y that minimizes |x @ y - a|. Raises ValueError for `fast` False or a regularizer, which MindSpore ignores."""
    if not fast or l2_regularizer:
        raise ValueError("expected fast=True and l2_regularizer=0.0; others have no effect.\n\nhint: ops.MatrixSolveLs supports both.")
    return _lstsq(x, a)


def _lstsq(x: T, a: T) -> T:
    rhs = a.unsqueeze(-1) if a.ndim == 1 else a
    return L.lstsq(x, rhs).solution if x.shape[-2] >= x.shape[-1] else L.pinv(x) @ rhs


@op(primitive="MatrixLogarithm")
def _matrix_logarithm(x: T) -> T:
    """The logarithm of square complex matrices, from their eigenvectors."""
    values, vectors = L.eig(x)
    return (vectors * torch.log(values).unsqueeze(-2)) @ L.inv(vectors)


@op()
def matrix_norm(A: T, ord: Any = "fro", axis: Any = (-2, -1), keepdims: bool = False, *, dtype: Any = None) -> T:
    """The norm of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf."""
    return L.matrix_norm(in_dtype_of_norm(A, dtype), ord, tuple(axis), keepdims)


@op()
def vector_norm(x: T, ord: Any = 2, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> T:
    """The norm of order `ord` along `axis`, or of all elements."""
    x = in_dtype_of_norm(x, dtype)
    return norm_of_extremes(x, ord, axis, keepdims) if ord in (math.inf, -math.inf) else L.vector_norm(x, ord, axis, keepdims)


@op()
def cond(A: T, p: Any = None) -> T:
    """The condition number of matrices: the norm times the norm of the inverse."""
    if A.requires_grad and p in ("fro", 1, -1, math.inf, -math.inf):        # torch overwrites a Tensor that its gradient needs
        return L.matrix_norm(A, p) * L.matrix_norm(L.inv(A), p)
    return L.cond(A, p)


@op(primitive="NuclearNorm", init=("dim", "keepdim"))
def _nuclear_norm(x: T, dim: Any = None, keepdim: bool = False) -> T:
    """The sum of the singular values of the matrices along two axes."""
    return L.matrix_norm(x, "nuc", tuple(dim) if dim is not None else (-2, -1), keepdim)


@op(primitive="LpNorm", init=("axis", "p", "keep_dims", "epsilon"))
def _lp_norm(input: T, axis: Any, p: int = 2, keep_dims: bool = False, epsilon: float = 1e-12) -> T:
    """The p-norm along `axis`, at least `epsilon`."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return clamping.clamp(L.vector_norm(input, p, axes, keep_dims), epsilon)


@op(primitive="EuclideanNorm", init=("keep_dims",))
def _euclidean_norm(x: T, axes: T, keep_dims: bool = False) -> T:
    """The square root of the sum of squares along `axes`."""
    return L.vector_norm(x, 2, tuple(axes.reshape(-1).tolist()), keep_dims)


@op(primitive="Renorm", init=("p", "dim", "maxnorm"))
def _renorm(x: T, p: float, dim: int, maxnorm: float) -> T:
    """The slices along `dim`, scaled down so that the p-norm of each is at most `maxnorm`."""
    return torch.renorm(x, p, dim, maxnorm)


@op(methods=("renorm",))
def renorm(input: T, p: float, axis: int, maxnorm: float) -> T:
    """The slices along `axis`, scaled down so that the p-norm of each is at most `maxnorm`."""
    return torch.renorm(input, p, axis, maxnorm)


@op()
def matrix_band_part(x: T, lower: Any, upper: Any) -> T:
    """Set matrices to zero beyond `lower` diagonals below and `upper` above the main one; a negative number keeps all."""
    return _band(x, lower, upper)


@op(primitive="MatrixBandPart")
def _matrix_band_part(x: T, lower: Any, upper: Any) -> T:
    """Set matrices to zero beyond `lower` diagonals below and `upper` above the main one; a negative number keeps all."""
    return _band(x, lower, upper)


def _band(x: T, lower: Any, upper: Any) -> T:
    rows = torch.arange(x.shape[-2], device=x.device).unsqueeze(-1)
    columns = torch.arange(x.shape[-1], device=x.device)
    below, above = (constant(v, x.device).reshape(*getattr(v, "shape", ()), 1, 1) for v in (lower, upper))
    keep = ((below < 0) | (rows - columns <= below)) & ((above < 0) | (columns - rows <= above))
    return torch.where(keep, x, torch.zeros((), dtype=x.dtype, device=x.device))
