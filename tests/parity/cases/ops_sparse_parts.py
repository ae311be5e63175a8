"""Sparse Tensors and matrices given by their parts, sets, ragged rows, and the primitives of Python's sequences and numbers."""
from __future__ import annotations

import mindspore as ms
import numpy as np
from mindspore.ops.operations import _scalar_ops as scalars
from mindspore.ops.operations import _sequence_ops as sequences
from mindspore.ops.operations import sparse_ops as sparse
from parity.case import case, raised


def t(values, dtype=np.float32):
    return ms.Tensor(np.array(values, dtype))


def longs(*values):
    return t(values, np.int64)


def ints(*values):
    return t(values, np.int32)


def numbered(result):
    return {str(at): tensor.asnumpy() for at, tensor in enumerate(result if isinstance(result, (tuple, list)) else (result,))}


def first():
    return longs((0, 1), (1, 2), (2, 0)), t([1, 2, 3]), longs(3, 4)


def second():
    return longs((0, 1), (0, 3), (2, 0)), t([4, 5, -3]), longs(3, 4)


def matrix():
    return ints(3, 4), ints(0, 3), ints(0, 1, 2, 3), ints(1, 2, 0), t([1, 2, 3])


def batch():
    return ints(2, 3, 4), ints(0, 2, 4), ints(0, 1, 2, 2, 0, 1, 1, 2), ints(1, 2, 0, 3), t([1, 2, 3, 4])


COO = {
    "add": lambda: sparse.SparseAdd()(*first(), *second(), t(0)),
    "add_over": lambda: sparse.SparseAdd()(*first(), *second(), t(2)),
    "addmm": lambda: sparse.SparseAddmm()(*first(), t(np.arange(8).reshape(4, 2)), t(np.ones((3, 2))), t([2]), t([3])),
    "concat_0": lambda: sparse.SparseConcat(0)(*zip(first(), second())),
    "concat_1": lambda: sparse.SparseConcat(-1)(*zip(first(), second())),
    "count": lambda: sparse.SparseCountSparseOutput()(first()[0], longs(1, 1, 3), first()[2], t([])),
    "count_weights": lambda: sparse.SparseCountSparseOutput(False, 2, 5)(second()[0], longs(1, 1, 3), first()[2], t([1, 2, 4])),
    "count_binary": lambda: sparse.SparseCountSparseOutput(True)(second()[0], longs(1, 1, 3), first()[2], t([1, 2, 4])),
    "dense_add": lambda: sparse.SparseDenseCwiseAdd()(*first(), t([1, 2, 3, 4])),
    "dense_mul": lambda: sparse.SparseDenseCwiseMul()(*first(), t(np.arange(1, 13).reshape(3, 4))),
    "fill": lambda: sparse.SparseFillEmptyRows()(longs((1, 0), (3, 1)), t([1, 2]), longs(5, 3), t(-1)),
    "reorder": lambda: sparse.SparseReorder()(longs((2, 1), (0, 3), (0, 1)), t([1, 2, 3]), longs(3, 4)),
    "reshape_flat": lambda: sparse.SparseReshape()(first()[0], first()[2], longs(12)),
    "segment_sum": lambda: sparse.SparseSegmentSum()(t(np.arange(12).reshape(4, 3)), ints(0, 2, 3), ints(0, 0, 1)),
    "segment_root": lambda: sparse.SparseSegmentSqrtN()(t(np.arange(12).reshape(4, 3)), ints(0, 2, 3), ints(0, 0, 1)),
    "segment_sum_of": lambda: sparse.SparseSegmentSumWithNumSegments()(
        t(np.arange(12).reshape(4, 3)), ints(0, 2, 3), ints(0, 0, 2), ints(4)),
    "segment_root_of": lambda: sparse.SparseSegmentSqrtNWithNumSegments()(
        t(np.arange(12).reshape(4, 3)), ints(0, 2, 3), ints(0, 0, 2), ints(4)),
    "segment_mean_of": lambda: sparse.SparseSegmentMeanWithNumSegments()(
        t(np.arange(12).reshape(4, 3)), ints(0, 2, 3), ints(0, 0, 2), ints(4)),
    "softmax": lambda: sparse.SparseSoftmax()(*second()),
    "maximum": lambda: sparse.SparseSparseMaximum()(*first(), *second()),
    "minimum": lambda: sparse.SparseSparseMinimum()(*first(), *second()),
    "to_dense": lambda: sparse.SparseToDenseV2()(first()[0], first()[2], first()[1], t(9)),
    "to_dense_row": lambda: sparse.SparseToDenseV2(False)(longs(1, 3), longs(5), t([1, 2]), t(0)),
    "sspaddmm": lambda: sparse.Sspaddmm()(
        longs((0, 1, 2), (1, 2, 0)), t([1, 2, 3]), longs(3, 4), longs((0, 2), (1, 1)), t([1, 2]), longs(3, 3),
        t(np.arange(12).reshape(3, 4)), t(2), t(3)),
}


@case(over={name: name for name in COO}, rtol=1e-6)
def coo(name):
    return numbered(COO[name]())


CSR = {
    "of_coo": lambda: sparse.SparseTensorToCSRSparseMatrix()(
        ints((0, 0, 1), (0, 1, 2), (1, 0, 0), (1, 2, 3)), t([1, 2, 3, 4]), ints(2, 3, 4)),
    "of_dense": lambda: sparse.DenseToCSRSparseMatrix()(t([[0, 1, 0], [2, 0, 3]]), ints((0, 1), (1, 0), (1, 2))),
    "of_dense_batch": lambda: sparse.DenseToCSRSparseMatrix()(t([[[0, 1, 0], [2, 0, 3]]] * 2), ints((0, 0, 1), (0, 1, 0), (1, 1, 2))),
    "dense": lambda: sparse.CSRSparseMatrixToDense()(*matrix()),
    "dense_batch": lambda: sparse.CSRSparseMatrixToDense()(*batch()),
    "coo": lambda: sparse.CSRSparseMatrixToSparseTensor()(*matrix()),
    "coo_batch": lambda: sparse.CSRSparseMatrixToSparseTensor()(*batch()),
    "add": lambda: sparse.SparseMatrixAdd()(*matrix(), ints(3, 4), ints(0, 2), ints(0, 1, 1, 2), ints(1, 3), t([5, 7]), t(2), t(3)),
    "product": lambda: sparse.SparseMatrixMatMul()(*matrix(), t(np.arange(8).reshape(4, 2))),
    "product_of_transposed": lambda: sparse.SparseMatrixMatMul(transpose_x1=True)(*matrix(), t(np.arange(6).reshape(3, 2))),
    "product_by_transposed": lambda: sparse.SparseMatrixMatMul(transpose_x2=True)(*matrix(), t(np.arange(8).reshape(2, 4))),
    "product_transposed": lambda: sparse.SparseMatrixMatMul(transpose_output=True)(*matrix(), t(np.arange(8).reshape(4, 2))),
    "product_batch": lambda: sparse.SparseMatrixMatMul()(*batch(), t(np.arange(16).reshape(2, 4, 2))),
    "count": lambda: sparse.SparseMatrixNNZ()(*batch()),
    "softmax": lambda: sparse.SparseMatrixSoftmax(ms.float32)(ints(2, 3), ints(0, 3), ints(0, 2, 3), ints(0, 2, 1), t([1, 2, 3])),
}


@case(over={name: name for name in CSR}, rtol=1e-6)
def csr(name):
    return numbered(CSR[name]())


@case(over={name: name for name in ("a-b", "b-a", "intersection", "union")})
def sets(how):
    return numbered(sparse.DenseToDenseSetOperation(how)(ints((1, 2, 2), (5, 4, 3)), ints((2, 3, 3), (3, 9, 5))))


@case()
def ragged():
    item = sparse.RaggedTensorToSparse(ms.int64)((longs(0, 2, 2, 5),), t([1, 2, 3, 4, 5]))
    two = sparse.RaggedTensorToSparse(ms.int64)((longs(0, 2, 3), longs(0, 2, 2, 5)), t([1, 2, 3, 4, 5]))
    return {**numbered(item), **{f"nested {name}": value for name, value in numbered(two).items()}}


@case()
def python_sequences():
    index = sequences.SequenceIndex()
    return {
        "add": list(sequences.SequenceAdd()((1, 2), (3,))), "mul": list(sequences.SequenceMul()((1, 2), 2)),
        "count": sequences.SequenceCount()((1, 2, 1), 1), "in": sequences.InSequence()(2, (1, 2)),
        "slice": list(sequences.SequenceSlice()((1, 2, 3, 4), 0, 3, 2)), "index": index((1, 2, 3), 3, 0, 3),
        "length": sequences.sequence_len()((1, 2, 3)), "tensor": sequences.TupleToTensor()((1, 2), ms.float32).asnumpy(),
        "list": sequences.ListToTensor()([1, 2], ms.int64).asnumpy(), "to_list": sequences.TensorToList()(t([1, 2])),
        "to_scalar": sequences.TensorToScalar()(t(3)), "absent": raised(lambda: index((1, 2), 5, 0, 2)),
    }


@case()
def python_numbers():
    two = "Add Sub Mul Div FloorDiv Mod Pow Eq Ge Gt Le Lt"
    return {
        **{name: getattr(scalars, f"Scalar{name}")()(7, 2) for name in two.split()},
        "Uadd": scalars.ScalarUadd()(3), "Usub": scalars.ScalarUsub()(3), "Bool": scalars.ScalarBool()(3),
    }
