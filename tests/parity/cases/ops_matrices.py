"""Products of matrices and batches, decompositions, diagonals, and distances between rows."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore import ops
from parity.case import case, raised
from parity.forms import probe

RANDOM = np.random.default_rng(3)
A = RANDOM.normal(size=(3, 4)).astype(np.float32)
B = RANDOM.normal(size=(4, 3)).astype(np.float32)
S = RANDOM.normal(size=(3, 3)).astype(np.float32)
POSITIVE = (S @ S.T + 3 * np.eye(3)).astype(np.float32)
BATCH = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
OTHER = RANDOM.normal(size=(2, 4, 3)).astype(np.float32)
SQUARES = (RANDOM.normal(size=(2, 3, 3)) + 2 * np.eye(3)).astype(np.float32)
V = np.array([1.0, -2.0, 0.5], np.float32)
W = np.array([0.5, 3.0, -1.0], np.float32)
LONG = np.array([1.0, 2.0, -3.0, 0.25], np.float32)
CHOLESKY = np.linalg.cholesky(POSITIVE).astype(np.float32)
EMPTY = np.zeros((0, 3), np.float32)

PRODUCTS = {
    "addmm": lambda: probe(ops.addmm, S, A, B), "addmm_scaled": lambda: probe(ops.addmm, S, A, B, beta=0.5, alpha=2.0),
    "addmv": lambda: probe(ops.addmv, V, A, LONG), "addmv_scaled": lambda: probe(ops.addmv, V, A, LONG, beta=2.0, alpha=0.5),
    "addr": lambda: probe(ops.addr, A, V, LONG), "addr_scaled": lambda: probe(ops.addr, A, V, LONG, beta=2.0, alpha=0.5),
    "addbmm": lambda: probe(ops.addbmm, S, BATCH, OTHER), "addbmm_scaled": lambda: probe(ops.addbmm, S, BATCH, OTHER, beta=0.5, alpha=3.0),
    "baddbmm": lambda: probe(ops.baddbmm, SQUARES, BATCH, OTHER),
    "baddbmm_scaled": lambda: probe(ops.baddbmm, SQUARES, BATCH, OTHER, beta=0.5, alpha=3.0), "mv": lambda: probe(ops.mv, A, LONG),
    "inner": lambda: probe(ops.inner, A, A), "inner_vectors": lambda: probe(ops.inner, V, W), "kron": lambda: probe(ops.kron, A, S),
    "vecdot": lambda: probe(ops.vecdot, A, A * 2), "vecdot_axis": lambda: probe(ops.vecdot, A, A * 2, axis=0),
    "tensor_dot": lambda: probe(ops.tensor_dot, A, B, 1), "tensor_dot_axes": lambda: probe(ops.tensor_dot, A, A, ((0, 1), (0, 1))),
    "tensor_dot_pair": lambda: probe(ops.tensor_dot, A, B, (1, 0)), "batch_dot": lambda: probe(ops.batch_dot, BATCH, OTHER),
    "batch_dot_axes": lambda: probe(ops.batch_dot, BATCH, BATCH, (2, 2)), "batch_dot_one": lambda: probe(ops.batch_dot, BATCH, BATCH, 1),
    "batch_dot_rows": lambda: probe(ops.batch_dot, A, A * 2),
    "bidense": lambda: probe(ops.bidense, A, B.T.copy(), np.stack([A.T @ A, B @ B.T])),
    "Ger": lambda: probe(ops.Ger(), V, LONG), "ger": lambda: probe(ops.ger, V, LONG), "AddN": lambda: probe(ops.AddN(), [A, A * 2, A]),
    "addn": lambda: probe(ops.addn, (V, W)), "addn_integers": lambda: probe(ops.addn, [np.array([1, 2]), np.array([3, 4])]),
    "L2Loss": lambda: probe(ops.L2Loss(), A), "L2Loss_f16": lambda: probe(ops.L2Loss(), A.astype(np.float16)),
    "cross": lambda: probe(ops.cross, S, SQUARES[0]), "cross_dim": lambda: probe(ops.cross, S, SQUARES[0], 1),
    "Cross": lambda: probe(ops.Cross(0), S, SQUARES[0]), "cdist": lambda: probe(ops.cdist, BATCH, BATCH + 1),
    "cdist_1": lambda: probe(ops.cdist, A, A[:2] + 1, 1.0), "Cdist": lambda: probe(ops.Cdist(3.0), BATCH, BATCH + 1),
    "pdist": lambda: probe(ops.pdist, A), "pdist_1": lambda: probe(ops.pdist, A, 1.0), "Pdist": lambda: probe(ops.Pdist(2.0), A),
    "dist": lambda: probe(ops.dist, A, A * 2), "dist_1": lambda: probe(ops.dist, A, A * 2, 1), "adjoint": lambda: probe(ops.adjoint, A),
    "adjoint_complex": lambda: probe(ops.adjoint, (S + 1j * S.T).astype(np.complex64)), "TridiagonalMatMul": lambda: probe(
        ops.TridiagonalMatMul(), V[None], W[None], V[None] * 2, S, by=(),
    ),
    "ConjugateTranspose": lambda: probe(ops.ConjugateTranspose(), (S + 1j * S.T).astype(np.complex64), (1, 0)),
    "Trace": lambda: probe(ops.Trace(), S, by=()), "addmm_f64": lambda: probe(ops.addmm, *(v.astype(np.float64) for v in (S, A, B))),
    "Dense": lambda: probe(ops.Dense(), A, A), "empty": lambda: probe(ops.inner, EMPTY, EMPTY, by=()),
}  # fmt: skip

DECOMPOSED = {
    "matrix_determinant": lambda: probe(ops.matrix_determinant, SQUARES), "det": lambda: probe(ops.det, S),
    "MatrixDeterminant": lambda: probe(ops.MatrixDeterminant(), SQUARES), "log_matrix_determinant": lambda: probe(
        ops.log_matrix_determinant, SQUARES,
    ),
    "LogMatrixDeterminant": lambda: probe(ops.LogMatrixDeterminant(), SQUARES), "slogdet": lambda: probe(ops.slogdet, SQUARES),
    "logdet": lambda: probe(ops.logdet, POSITIVE), "MatrixInverse": lambda: probe(ops.MatrixInverse(), SQUARES),
    "MatrixInverse_adjoint": lambda: probe(ops.MatrixInverse(adjoint=True), SQUARES, by=()), "pinv": lambda: probe(ops.pinv, A, by=()),
    "matrix_power": lambda: probe(ops.matrix_power, SQUARES, 3), "MatrixPower": lambda: probe(ops.MatrixPower(2), SQUARES),
    "matrix_power_negative": lambda: probe(ops.matrix_power, SQUARES, -1, by=()), "cholesky": lambda: probe(ops.cholesky, POSITIVE, by=()),
    "cholesky_upper": lambda: probe(ops.cholesky, POSITIVE, True, by=()), "Cholesky": lambda: probe(ops.Cholesky(), POSITIVE, by=()),
    "cholesky_inverse": lambda: probe(ops.cholesky_inverse, CHOLESKY, by=()),
    "cholesky_inverse_whole": lambda: probe(ops.cholesky_inverse, np.array([[2.0, 1.0], [0.5, 1.0]], np.float32), by=()),
    "CholeskyInverse": lambda: probe(ops.CholeskyInverse(True), CHOLESKY.T.copy(), by=()),
    "cholesky_solve": lambda: probe(ops.cholesky_solve, S, CHOLESKY, by=()), "CholeskySolve": lambda: probe(
        ops.CholeskySolve(True), S, CHOLESKY.T.copy(), by=(),
    ),
    "svd_values": lambda: probe(ops.svd, A, compute_uv=False), "Svd_values": lambda: probe(ops.Svd(compute_uv=False), A, by=()),
    "svd_spanned": lambda: probe(lambda x: _spanned(*ops.svd(x)), A, by=()), "Svd_spanned": lambda: probe(
        lambda x: _spanned(*ops.Svd(full_matrices=False)(x)), A, by=(),
    ),
    "qr": lambda: probe(lambda x: [ops.abs(part) for part in ops.qr(x)], B, by=()), "Qr": lambda: probe(
        lambda x: [ops.abs(part) for part in ops.Qr()(x)], B, by=(),
    ),
    "qr_complete": lambda: probe(lambda x: ops.abs(ops.qr(x, "complete")[1]), B, by=()), "geqrf": lambda: probe(ops.geqrf, B, by=()),
    "Geqrf": lambda: probe(ops.Geqrf(), B, by=()), "orgqr": lambda: probe(lambda x: ops.orgqr(*ops.geqrf(x)), B, by=()),
    "Orgqr": lambda: probe(lambda x: ops.Orgqr()(*ops.geqrf(x)), B, by=()), "eig_values": lambda: probe(
        lambda x: ops.sort(ops.real(ops.eig(x)[0]))[0], POSITIVE, by=(),
    ),
    "eigvals": lambda: probe(lambda x: ops.sort(ops.real(ops.eigvals(x)))[0], POSITIVE, by=()), "Eig": lambda: probe(
        lambda x: ops.sort(ops.real(ops.Eig()(x)[0]))[0], POSITIVE, by=(),
    ),
    "lu_solve": lambda: probe(ops.lu_solve, S, POSITIVE, np.array([1, 2, 3], np.int32), by=()),
    "LuSolve": lambda: probe(ops.LuSolve(), S, POSITIVE, np.array([2, 2, 3], np.int32), by=()),
    "lu_unpack": lambda: probe(ops.lu_unpack, SQUARES, np.array([[1, 3, 3], [2, 2, 3]], np.int32), by=()),
    "LuUnpack": lambda: probe(ops.LuUnpack(), SQUARES, np.array([[1, 3, 3], [2, 2, 3]], np.int32), by=()),
    "matrix_solve": lambda: probe(ops.matrix_solve, SQUARES, BATCH, by=()), "MatrixSolve": lambda: probe(ops.MatrixSolve(), SQUARES, BATCH),
    "MatrixSolve_adjoint": lambda: probe(ops.MatrixSolve(adjoint=True), SQUARES, BATCH, by=()),
    "MatrixTriangularSolve": lambda: probe(ops.MatrixTriangularSolve(), SQUARES, BATCH),
    "MatrixTriangularSolve_upper": lambda: probe(ops.MatrixTriangularSolve(lower=False), SQUARES, BATCH, by=()),
    "MatrixTriangularSolve_adjoint": lambda: probe(ops.MatrixTriangularSolve(adjoint=True), SQUARES, BATCH, by=()),
    "MatrixSolveLs": lambda: probe(ops.MatrixSolveLs(), B, OTHER[0], np.array(0.5, np.float64), by=()),
    "lstsq": lambda: probe(ops.lstsq, B, OTHER[0], by=()), "Lstsq": lambda: probe(ops.Lstsq(), B, OTHER[0], by=()),
    "lstsq_vector": lambda: probe(ops.lstsq, B, LONG, by=()), "MatrixLogarithm": lambda: probe(
        ops.MatrixLogarithm(), POSITIVE.astype(np.complex64), by=(),
    ),
    "matrix_norm": lambda: probe(ops.matrix_norm, A), "matrix_norm_1": lambda: probe(ops.matrix_norm, BATCH, 1, by=()),
    "matrix_norm_nuc": lambda: probe(ops.matrix_norm, BATCH, "nuc", by=()), "matrix_norm_axis": lambda: probe(
        ops.matrix_norm, BATCH, float("inf"), (0, 1), True, by=(),
    ),
    "vector_norm": lambda: probe(ops.vector_norm, A), "vector_norm_axis": lambda: probe(ops.vector_norm, BATCH, 3, 1, True),
    "vector_norm_inf": lambda: probe(ops.vector_norm, A, float("inf"), by=()), "cond": lambda: probe(ops.cond, S, by=()),
    "cond_fro": lambda: probe(ops.cond, S, "fro", by=()), "LpNorm": lambda: probe(ops.LpNorm([0, 1], 2), BATCH),
    "LpNorm_keep": lambda: probe(ops.LpNorm(1, 1, True), A),
    "renorm": lambda: probe(ops.renorm, A, 1, 0, 2.0, by=()), "Renorm": lambda: probe(ops.Renorm(2, 1, 1.5), A, by=()),
    "matrix_band_part": lambda: probe(ops.matrix_band_part, BATCH, 1, 0), "MatrixBandPart": lambda: probe(
        ops.MatrixBandPart(), A, np.array(-1, np.int64), np.array(1, np.int64),
    ),
    "NuclearNorm": lambda: probe(ops.NuclearNorm(), A, by=()),
}  # fmt: skip


def _spanned(s, u, v):
    """What does not depend on the signs of singular vectors: their products with the values."""
    return s, ops.matmul(u * s, v.T)


TALL = np.arange(12, dtype=np.float32).reshape(4, 3) + 1
BAND = np.array([[[0.0, 8, 9], [1, 2, 3], [4, 5, 0]], [[0, 2, 3], [6, 7, 9], [9, 1, 0]]], np.float32)
K = np.array([-1, 1], np.int32)
NOTHING = np.array(0, np.float32)
NINE = np.array(9, np.float32)
DIAGONALS = {
    "diag_embed": lambda: probe(ops.diag_embed, A), "diag_embed_offset": lambda: probe(ops.diag_embed, A, 1, 0, 2),
    "diagflat": lambda: probe(ops.diagflat, A[:2, :2], -1), "DiagPart": lambda: probe(ops.DiagPart(), S),
    "Diag": lambda: probe(ops.Diag(), V), "matrix_diag": lambda: probe(ops.matrix_diag, BAND, K, 3, 3, NOTHING, by=(0,)),
    "matrix_diag_align": lambda: probe(ops.matrix_diag, BAND, K, 3, 3, NOTHING, align="LEFT_RIGHT", by=(0,)),
    "matrix_diag_one": lambda: probe(ops.matrix_diag, V, np.array([1], np.int32), by=(0,)),
    "MatrixDiagV3": lambda: probe(ops.MatrixDiagV3("LEFT_LEFT"), BAND, K, *(np.array(3, np.int32),) * 2, NINE, by=(0,)),
    "matrix_set_diag": lambda: probe(ops.matrix_set_diag, SQUARES, BAND, K), "matrix_set_diag_align": lambda: probe(
        ops.matrix_set_diag, SQUARES, BAND, K, "LEFT_RIGHT",
    ),
    "MatrixSetDiagV3": lambda: probe(ops.MatrixSetDiagV3("RIGHT_RIGHT"), SQUARES, BAND, K),
    "matrix_diag_part": lambda: probe(ops.matrix_diag_part, SQUARES, K, NOTHING, by=(0,)),
    "matrix_diag_part_tall": lambda: probe(ops.matrix_diag_part, TALL, np.array([-2, 1], np.int32), NOTHING, "LEFT_RIGHT", by=(0,)),
    "MatrixDiagPartV3": lambda: probe(ops.MatrixDiagPartV3("LEFT_LEFT"), TALL, K, NINE, by=(0,)),
    "diagonal_scatter": lambda: probe(ops.diagonal_scatter, S, V), "diagonal_scatter_offset": lambda: probe(
        ops.diagonal_scatter, S, V[:2], 1,
    ),
    "FillDiagonal": lambda: probe(ops.FillDiagonal(9.0), S, by=()), "FillDiagonal_wrap": lambda: probe(
        ops.FillDiagonal(9.0, True), np.zeros((7, 3), np.float32), by=(),
    ),
    "tril_indices": lambda: probe(ops.tril_indices, 3, 4, -1), "triu_indices": lambda: probe(ops.triu_indices, 3, 4, 1, dtype=ms.int32),
    "TrilIndices": lambda: probe(ops.TrilIndices(3, 4)), "TriuIndices": lambda: probe(ops.TriuIndices(3, 4, -1)),
}  # fmt: skip


@case(over=PRODUCTS, rtol=1e-5, atol=2e-6, graph=True)
def product(ask):
    return ask()


@case(over=DECOMPOSED, rtol=1e-4, atol=1e-5, graph=True)
def decomposed(ask):
    return ask()


@case(over=DIAGONALS, graph=True)
def diagonal(ask):
    return ask()


@case()
def refused():
    a, b = ms.Tensor(A), ms.Tensor(B)
    return {
        "mv of a number": raised(lambda: ops.mv(a, 1)),
        "batch axes": raised(lambda: ops.batch_dot(a, b, (0, 1))),
        "align": raised(lambda: ops.MatrixDiagPartV3("UP_DOWN")(ms.Tensor(S), ms.Tensor(K), ms.Tensor(NOTHING))),
        "tril of texts": raised(lambda: ops.tril_indices("3", 4)),
    }


METHODS = {
    "addmm": lambda: ms.Tensor(S).addmm(ms.Tensor(A), ms.Tensor(B)), "addmv": lambda: ms.Tensor(V).addmv(ms.Tensor(A), ms.Tensor(LONG)),
    "addr": lambda: ms.Tensor(A).addr(ms.Tensor(V), ms.Tensor(LONG)),
    "addbmm": lambda: ms.Tensor(S).addbmm(ms.Tensor(BATCH), ms.Tensor(OTHER)),
    "baddbmm": lambda: ms.Tensor(SQUARES).baddbmm(ms.Tensor(BATCH), ms.Tensor(OTHER)), "inner": lambda: ms.Tensor(V).inner(ms.Tensor(W)),
    "cross": lambda: ms.Tensor(S).cross(ms.Tensor(SQUARES[0])), "det": lambda: ms.Tensor(S).det(), "logdet": lambda: ms.Tensor(
        POSITIVE,
    ).logdet(),
    "slogdet": lambda: ms.Tensor(S).slogdet()[1], "cholesky": lambda: ms.Tensor(POSITIVE).cholesky(), "svd": lambda: ms.Tensor(A).svd(
        compute_uv=False,
    ),
    "renorm": lambda: ms.Tensor(A).renorm(1, 0, 2.0), "diagflat": lambda: ms.Tensor(V).diagflat(),
    "fill_diagonal": lambda: ms.Tensor(S).fill_diagonal(2.0),
}  # fmt: skip


@case(over=METHODS, rtol=1e-5, atol=1e-6)
def method(call):
    return {"output": call().asnumpy()}
