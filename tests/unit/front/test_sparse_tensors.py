"""What MindSpore 2.10 cannot do with sparse Tensors on the CPU, against NumPy."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import COOTensor, CSRTensor, Tensor, nn, ops
from mindspore.ops.operations import _csr_ops

AT = np.array([[2, 0], [0, 1], [1, 2]], np.int32)
VALUES = np.array([0.75, 0.25, -0.5], np.float32)
STARTS, COLUMNS = np.array([0, 1, 3, 4], np.int32), np.array([1, 0, 2, 3], np.int32)
ELEMENTS = np.array([0.5, -0.25, 0.75, 2.0], np.float32)
DENSE = np.arange(12, dtype=np.float32).reshape(3, 4) + 1
COMPLETE = np.array([[0, 0.5, 0, 0], [-0.25, 0, 0.75, 0], [0, 0, 0, 2]], np.float32)


def csr() -> CSRTensor:
    return CSRTensor(Tensor(STARTS), Tensor(COLUMNS), Tensor(ELEMENTS), (3, 4))


def coo() -> COOTensor:
    return COOTensor(Tensor(AT), Tensor(VALUES), (3, 4))


def test_forms(mode: int) -> None:
    assert (ops.csr_to_dense(csr()).asnumpy() == COMPLETE).all() and (csr().to_dense().asnumpy() == COMPLETE).all()
    assert (ops.dense_to_sparse_csr(Tensor(COMPLETE)).asnumpy() == COMPLETE).all()
    assert (ops.dense_to_sparse_coo(Tensor(COMPLETE)).to_dense().asnumpy() == COMPLETE).all()
    rows = coo().to_csr()
    assert rows.indptr.asnumpy().tolist() == [0, 1, 2, 3] and (rows.to_dense().asnumpy() == coo().to_dense().asnumpy()).all()
    assert (csr().to_coo().to_dense().asnumpy() == COMPLETE).all()
    assert ops.csr2coo(Tensor(STARTS), 4).asnumpy().tolist() == [0, 1, 1, 2]
    assert ops.coo2csr(Tensor([0, 1, 1, 2]), 3).asnumpy().tolist() == STARTS.tolist()


def test_products(mode: int) -> None:
    v = DENSE[0][:, None]
    np.testing.assert_allclose(ops.csr_mv(csr(), Tensor(v)).asnumpy(), COMPLETE @ v)
    np.testing.assert_allclose(ops.csr_mm(csr(), Tensor(DENSE.T)).asnumpy(), COMPLETE @ DENSE.T)
    np.testing.assert_allclose(ops.csr_mm(csr(), Tensor(DENSE), trans_a=True).asnumpy(), COMPLETE.T @ DENSE)
    np.testing.assert_allclose(ops.csr_mm(csr(), csr(), trans_b=True).asnumpy(), COMPLETE @ COMPLETE.T)
    np.testing.assert_allclose(csr().mm(Tensor(DENSE.T)).asnumpy(), COMPLETE @ DENSE.T)
    np.testing.assert_allclose(ops.csr_reduce_sum(csr(), 1).asnumpy(), COMPLETE.sum(1, keepdims=True))
    np.testing.assert_allclose(csr().sum(-1).asnumpy(), COMPLETE.sum(1, keepdims=True))


def test_elementwise(mode: int) -> None:
    np.testing.assert_allclose(ops.csr_mul(csr(), Tensor(DENSE)).asnumpy(), COMPLETE * DENSE)
    np.testing.assert_allclose((csr() * Tensor(DENSE[:, :1])).asnumpy(), COMPLETE * DENSE[:, :1])
    np.testing.assert_allclose((csr() / 2).asnumpy(), COMPLETE / 2)
    np.testing.assert_allclose(ops.csr_div(csr(), Tensor(DENSE[0])).asnumpy(), COMPLETE / DENSE[0])
    np.testing.assert_allclose((csr() + csr()).asnumpy(), COMPLETE * 2)
    np.testing.assert_allclose((coo() + coo()).to_dense().asnumpy(), coo().to_dense().asnumpy() * 2)
    np.testing.assert_allclose((coo() + Tensor(DENSE)).asnumpy(), coo().to_dense().asnumpy() + DENSE)
    values = ops.csr_gather(Tensor(STARTS), Tensor(COLUMNS), Tensor(DENSE), (3, 4)).asnumpy()
    assert values.tolist() == [2, 5, 7, 12]
    array = ops.csr_softmax(csr(), ms.float32).asnumpy()
    np.testing.assert_allclose(array.sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(array[1, 2] / array[1, 0], np.exp(1.0), rtol=1e-6)


def test_a_cell_takes_and_gives_them(mode: int) -> None:
    class Net(nn.Cell):
        def construct(self, x: CSRTensor, y: Tensor) -> CSRTensor:
            return ops.csr_sin(x) * y

    result = Net()(csr(), Tensor(DENSE))
    np.testing.assert_allclose(result.asnumpy(), np.sin(COMPLETE) * DENSE, rtol=1e-6)


def test_a_gradient_through_them(mode: int) -> None:
    def loss(values: Tensor, dense: Tensor) -> Tensor:
        return ops.csr_mm(CSRTensor(Tensor(STARTS), Tensor(COLUMNS), values, (3, 4)), dense).sum()

    by_values, by_dense = ms.grad(loss, (0, 1))(Tensor(ELEMENTS), Tensor(DENSE.T))
    np.testing.assert_allclose(by_values.asnumpy(), DENSE.sum(0)[COLUMNS])
    np.testing.assert_allclose(by_dense.asnumpy(), np.repeat(COMPLETE.sum(0)[:, None], 3, 1))


def test_parts_and_makers() -> None:
    sparse = ops.make_coo_tensor(Tensor(AT), Tensor(VALUES), (3, 4))
    assert ops.coo_tensor_get_dense_shape(sparse) == (3, 4) and ops.coo_tensor_get_values(sparse) is sparse.values
    assert ops.coo_tensor_get_indices(sparse) is sparse.indices and ops.make_sparse_tensor(Tensor(AT), Tensor(VALUES), (3, 4)).size == 3
    rows = ops.make_csr_tensor(Tensor(STARTS), Tensor(COLUMNS), Tensor(ELEMENTS), (3, 4))
    assert ops.csr_tensor_get_indptr(rows) is rows.indptr and ops.csr_tensor_get_indices(rows) is rows.indices
    assert ops.csr_tensor_get_values(rows) is rows.values and ops.csr_tensor_get_dense_shape(rows) == (3, 4)
    row = ops.make_row_tensor(Tensor([1]), Tensor(DENSE[:1]), (3, 4))
    both = ops.row_tensor_add(row, ops.make_row_tensor_inner(Tensor([1]), Tensor(DENSE[:1]), (3, 4)))
    assert ops.row_tensor_get_dense_shape(both) == (3, 4) and (ops.row_tensor_get_indices(both).asnumpy() == 1).all()
    assert ops.row_tensor_get_values(both).shape == (2, 4) and (both.asnumpy()[1] == 2 * DENSE[0]).all()


def test_errors() -> None:
    with pytest.raises(TypeError, match="expected a CSRTensor as x, got int"):
        ops.csr_sin(1)
    with pytest.raises(ValueError, match=r"expected indptr of shape \(6,\) and as many values as indices"):
        CSRTensor(Tensor(STARTS), Tensor(COLUMNS), Tensor(ELEMENTS), (5, 4))
    with pytest.raises(ValueError, match="axis=0: expected 1, the axis of the elements of a row"):
        ops.csr_reduce_sum(csr(), 0)
    with pytest.raises(TypeError, match="expected indptr, indices, values and shape"):
        CSRTensor(Tensor(STARTS))


def test_primitives_take_a_matrix_by_its_parts() -> None:
    indptr, indices = Tensor([0, 1, 3], ms.int32), Tensor([2, 0, 1], ms.int32)
    values, shape = Tensor([1.0, 2.0, 3.0]), (2, 3)
    parts = (indptr, indices, values, shape)
    dense = np.array([[0.0, 0.0, 1.0], [2.0, 3.0, 0.0]], np.float32)
    column, other = np.array([[1.0], [2.0], [3.0]], np.float32), np.array([[2.0], [4.0]], np.float32)
    expected = {
        "CSRMul": ((Tensor(other),), [2.0, 8.0, 12.0]),
        "CSRDiv": ((Tensor(other),), [0.5, 0.5, 0.75]),
        "CSRMV": ((Tensor(column),), dense @ column),
        "CSRMM": ((Tensor(column),), dense @ column),
        "CSRReduceSum": ((1,), dense.sum(1, keepdims=True)),
    }
    for name, (others, answer) in expected.items():
        np.testing.assert_allclose(getattr(_csr_ops, name)()(*parts, *others).asnumpy(), answer)
    assert _csr_ops.CSRGather()(indptr, indices, Tensor(dense + 1), shape).asnumpy().tolist() == [2.0, 3.0, 4.0]
    assert _csr_ops.CSR2COO()(indptr, 3).asnumpy().tolist() == [0, 1, 1]
    assert _csr_ops.COO2CSR()(Tensor([0, 1, 1], ms.int32), 2).asnumpy().tolist() == [0, 1, 3]


def test_sparse_tensors_are_subtracted_and_a_dense_one_times_a_sparse_one_is_sparse() -> None:
    dense, full = np.array([[0.0, 2.0], [3.0, 0.0]], np.float32), Tensor([[5.0, 5.0], [0.0, 1.0]])
    for sparse in (Tensor(dense).to_coo(), Tensor(dense).to_csr()):
        assert (sparse - sparse).to_dense().asnumpy().tolist() == [[0.0, 0.0], [0.0, 0.0]]
        product = full * sparse
        assert type(product) is type(sparse) and product.values.asnumpy().tolist() == [10.0, 0.0]
        assert ops.dtype(sparse) == ms.float32


def test_gradients_go_into_values_and_come_as_sparse_values() -> None:
    """Places of a sparse value have no gradient, though they are integers; `sens` may be sparse."""
    at, values = ms.Tensor([[0, 1], [1, 2]], ms.int32), ms.Tensor([-1.0, 2.0])
    for function in (lambda i, v: ms.COOTensor(i, v, (3, 4)), lambda i, v: ms.COOTensor(i, v, (3, 4)).to_dense()):
        by_index, by_value = ms.ops.GradOperation(get_all=True)(function)(at, values)
        assert not by_index.asnumpy().any() and by_value.asnumpy().tolist() == [1, 1]
    by_index, _ = ms.ops.GradOperation(get_all=True)(lambda i, v: ms.COOTensor(i, v, (3, 4)).indices)(at, values)
    assert not by_index.asnumpy().any()
    dense = ms.Tensor([[0.0, 1.0], [3.0, 0.0]])
    sens = dense.to_csr()
    result = ms.ops.GradOperation(get_all=True, sens_param=True)(lambda x: x.to_csr())(dense, sens)
    assert result[0].asnumpy().tolist() == [[0, 1], [3, 0]]
