"""Rules of operators that compute each matrix of a batch separately: decompositions, inverses, solutions of equations, triangles."""
from __future__ import annotations

from torchspore.distributed.shard.propagation_rules.registry import OperatorCall, splits
from torchspore.distributed.shard.propagation_rules.rule import Dims, Naming, Rule


@splits(
    "_linalg_det", "_linalg_eigh", "_linalg_slogdet", "_linalg_solve_ex", "_linalg_svd", "cholesky_inverse", "cholesky_solve",
    "linalg_cholesky_ex", "linalg_inv_ex", "linalg_lu_factor_ex", "linalg_matrix_exp", "linalg_qr", "linalg_solve_triangular",
    "tril", "triu",
)
def batch_of_matrices(call: OperatorCall) -> Rule | None:
    """The axes before those of the matrices are split alike in all operands and results."""
    matrices = [tuple(t.shape) for t in call.inputs]
    batch = matrices[0][:-2]
    if not batch or any(shape[:-2] != batch for shape in matrices):
        return None
    naming = Naming()
    batch_dims = [naming.new(size) for size in batch]
    count = len(batch)

    def dims(shape: tuple[int, ...]) -> Dims:
        return (*batch_dims, *[naming.new(size, locked=True) for size in shape[count:]])

    if any(out is not None and tuple(out.shape[:count]) != batch for out in call.outputs):
        return None
    return naming.rule([dims(shape) for shape in matrices], [dims(tuple(out.shape)) for out in call.outputs if out is not None])
