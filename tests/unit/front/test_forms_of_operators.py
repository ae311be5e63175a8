"""Forms of calls and errors that MindSpore 2.10 has, each measured there."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.numpy as mnp
import mindspore.scipy as msp
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore.ops.operations.linalg_ops import Eigh
from mindspore.scipy.ops import Eig
from mindspore.scipy.utils import _nd_transpose

X = Tensor([[[1, 2, 3], [2, 3, 4]]], ms.float32)


def test_sum_has_two_forms(mode: int) -> None:
    assert X.sum(None, False, dtype=None).asnumpy() == 15
    assert X.sum(1, True, dtype=ms.int32).asnumpy().tolist() == [[[3, 5, 7]]]
    assert X.sum(1, ms.float16, True).dtype == ms.float16
    assert X.sum(dim=1, keepdim=True).shape == (1, 1, 3)
    flag = X.sum(dtype=ms.bool_, initial=12)
    assert flag.dtype == ms.bool_ and bool(flag)
    assert not bool((X * 0).sum(dtype=ms.bool_, initial=0))


@pytest.mark.parametrize("with_vectors", [True, False])
@pytest.mark.parametrize("lower", [True, False])
def test_eigh_has_the_gradient_of_the_half_that_it_reads(lower: bool, with_vectors: bool) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.random((3, 3))
    matrix = matrix @ matrix.T

    def squares(a: Tensor) -> Tensor:
        values = Eigh(with_vectors, lower)(a)
        return ((values[0] if with_vectors else values) ** 2).sum()

    gradient = ms.grad(squares)(Tensor(matrix)).asnumpy()
    half = (np.tril if lower else np.triu)(2 * matrix)                  # the gradient of |A|^2, where off the diagonal A occurs twice
    np.testing.assert_allclose(gradient, half + (np.tril(half, -1) if lower else np.triu(half, 1)), rtol=1e-6)


def test_eigh_of_scipy_takes_one_matrix_of_complex_numbers_too() -> None:
    a = np.array([[2, 1 - 1j], [1 + 1j, 3]], np.complex64)
    values, vectors = msp.linalg.eigh(Tensor(a))
    np.testing.assert_allclose(a @ vectors.asnumpy(), vectors.asnumpy() * values.asnumpy(), atol=1e-5)
    with pytest.raises(ValueError, match="the dimension of 'a' should be 2, but got 3"):
        msp.linalg.eigh(Tensor(np.ones((2, 3, 3), np.float32)))


def test_eig_of_scipy() -> None:
    a = Tensor(np.array([[2.0, 1], [1, 3]], np.float32))
    values, vectors = Eig()(a)
    np.testing.assert_allclose(sorted(values.asnumpy().real), [1.381966, 3.618034], rtol=1e-5)
    assert vectors.shape == (2, 2) and Eig(False)(a)[0].shape == (2,)
    for wrong, error in ((Tensor(1.0), ValueError), (Tensor(np.ones((2, 3), np.float32)), ValueError), (Tensor([[1]]), TypeError)):
        with pytest.raises(error):
            Eig()(wrong)
    assert _nd_transpose(Tensor(np.ones((2, 3, 4)))).shape == (2, 4, 3)


def test_lists_of_tensors_are_operands(mode: int) -> None:
    x = Tensor([2, 3, 4])
    assert (x + [x]).asnumpy().tolist() == [[4, 6, 8]]
    assert ([Tensor(2), Tensor(3), Tensor(4)] + x).asnumpy().tolist() == [4, 6, 8]


@pytest.mark.parametrize("call", [lambda: ops.clamp(X, 1, True), lambda: ms.mint.clamp(X, 5, True), lambda: ms.mint.clip(X > 1, 0, 1)])
def test_clamp_refuses_bools(call: Any) -> None:
    with pytest.raises(ValueError, match="the dtype of 'input', 'min' and 'max' must not be bool"):
        call()


def test_unsigned_cumulative_primitives() -> None:
    x = Tensor(np.array([[3, 1, 2]], np.uint16))
    assert [t.asnumpy().tolist() for t in ops.Cummin(1)(x)] == [[[3, 1, 1]], [[0, 1, 1]]]
    assert ops.Cummax(1)(x)[0].dtype == ms.uint16


def test_fractional_pooling_by_a_ratio() -> None:
    x, samples = Tensor(np.arange(25).reshape(1, 1, 5, 5), ms.float32), Tensor(np.array([[[0.8, 0.8]]]), ms.float32)
    pool = nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.5), return_indices=True, _random_samples=samples)
    values, indices = pool(x)
    assert values.asnumpy().ravel().tolist() == [6, 9, 21, 24] == indices.asnumpy().ravel().tolist()
    assert nn.FractionalMaxPool2d(2, output_size=2, output_ratio=(0.9, 0.9), _random_samples=samples)(x).shape == (1, 1, 2, 2)
    with pytest.raises(ValueError, match="expected output_size or output_ratio"):
        nn.FractionalMaxPool2d(2, _random_samples=samples)(x)


def test_checkpoints_of_lists_of_parameters(tmp_path: Path) -> None:
    weight, file = Parameter(Tensor([1.0, 2.0]), name="weight"), str(tmp_path / "list.ckpt")
    ms.save_checkpoint([weight, Parameter(Tensor(3.0), name="bias")], file, choice_func=lambda name: name == "weight")
    assert list(ms.load_checkpoint(file)) == ["weight"]
    for wrong in ([Tensor(1.0)], [weight, {"name": "p", "data": weight}], [{"name": "p", "data": 12}], [{"name": 12, "data": weight}]):
        with pytest.raises(TypeError):
            ms.save_checkpoint(wrong, file)


@pytest.mark.parametrize("function", ["mean", "sum", "amax", "std", "var", "nansum", "ptp", "average", "flip", "count_nonzero"])
def test_numpy_refuses_a_repeated_axis(function: str) -> None:
    with pytest.raises(ValueError, match="expected each axis once"):
        getattr(mnp, function)(Tensor(np.ones((2, 3), np.float32)), (-1, 1))


def test_a_histogram_of_one_edge_is_empty() -> None:
    counts, edges = mnp.histogram(Tensor([1.0, 2.0]), bins=[2])
    assert counts.shape == (0,) and edges.shape == (1,)


@pytest.mark.parametrize("name", ["minimum", "maximum", "less", "floor_div", "fmod"])
def test_complex_numbers_have_no_order(name: str) -> None:
    z = Tensor(np.ones(2, np.complex64))
    with pytest.raises(TypeError):
        getattr(ops, name)(z, z)


def one(a: Any, b: Any) -> Any:
    return a + b


def listed(a: Any, b: Any) -> Any:
    return [a + b]


@pytest.mark.parametrize("function, shape, dtype, count", [
    (one, (2, 2), ms.float32, None), (one, ((2, 2),), (ms.float32,), 1), (one, [[2, 2]], [ms.float32], 1),
    (listed, (2, 2), ms.float32, None), (listed, ((2, 2),), (ms.float32,), 1), (lambda a, b: None, (), (), 0),
], ids=["one", "tuple", "list", "listed-one", "listed", "none"])
def test_custom_returns_what_is_declared(mode: int, function: Any, shape: Any, dtype: Any, count: int | None) -> None:
    x = Tensor(np.ones((2, 2), np.float32))
    result = ops.Custom(function, shape, dtype, "pyfunc")(x, x)
    assert isinstance(result, Tensor) if count is None else isinstance(result, tuple) and len(result) == count


class OneHot(nn.Cell):
    def construct(self, indices, depth):
        return ops.OneHot()(indices, depth, Tensor(1.0, ms.float32), Tensor(0.0, ms.float32))


def test_an_operator_may_need_values_in_a_strict_graph() -> None:
    ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    assert OneHot()(Tensor([0, 2], ms.int32), Tensor(3)).asnumpy().tolist() == [[1, 0, 0], [0, 0, 1]]


def test_an_endless_recursion_is_explained() -> None:
    @ms.jit
    def endless(x):
        if x > 0:
            return endless(x) + 1
        return endless(x - 1)

    with pytest.raises(RecursionError, match="infinite recursion or loop"):
        endless(Tensor([5], ms.int32))


def test_a_tensor_names_the_lengths(mode: int) -> None:
    x = Tensor(np.ones((3, 1), np.float32))
    assert x.expand(Tensor([3, 4])).shape == (3, 4)
    assert x.reshape(Tensor([1, 3])).shape == (1, 3) == x.view(Tensor([1, 3])).shape
    assert x.tile(Tensor([3, 4])).shape == (9, 4)


@pytest.mark.parametrize("index, value, shape", [
    (slice(-1, 1, -1), 7.0, (8,)), (slice(6, 2, -2), [1.0, 2.0], (8,)), (slice(1, 3, -1), 7.0, (8,)),
    ((slice(None, None, -1), slice(2, 0, -1)), np.arange(8.0).reshape(4, 2), (4, 3)), ((1, slice(None, None, -1)), [1.0, 2.0, 3.0], (4, 3)),
    ((Ellipsis, slice(None, None, -2)), 5.0, (2, 3, 4)), (([0, 2], slice(None, None, -1)), np.arange(6.0).reshape(2, 3), (4, 3)),
], ids=str)
def test_slices_with_negative_steps_are_written(mode: int, index: Any, value: Any, shape: tuple[int, ...]) -> None:
    expected = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    tensor = Tensor(expected)
    tensor[index] = value if isinstance(value, float) else Tensor(np.asarray(value, np.float32))
    expected[index] = value
    np.testing.assert_array_equal(tensor.asnumpy(), expected)


def test_false_is_no_index(mode: int) -> None:
    x = Tensor(np.ones((2, 3), np.float32))
    assert x[True].shape == (1, 2, 3)
    for index in (False, (0, False)):
        with pytest.raises(IndexError, match="only support 'True'"):
            x[index]
    x[False] = 5.0
    assert x.asnumpy().max() == 1


def test_copy_with_slice_writes() -> None:
    from mindspore.ops.operations import _inner_ops

    target, source = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[5.0, 6.0], [7.0, 8.0]])
    view = target.swapaxes(0, 1)
    _inner_ops.CopyWithSlice()(view, source)
    assert view.asnumpy().tolist() == [[5, 6], [7, 8]]


class IsNonzero(nn.Cell):
    def construct(self, x):
        return ops.is_nonzero(x)


@pytest.mark.parametrize("value, expected", [
    ([[[False]]], False), ([[True]], True), ([[3.5]], True), ([0], False), ([0.0], False),
], ids=str)
def test_is_nonzero(mode: int, value: Any, expected: bool) -> None:
    assert IsNonzero()(Tensor(value)) is expected
