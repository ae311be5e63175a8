"""Where operators differ from MindSpore 2.10 on purpose: the points of the section "Operators" of docs/differences.md."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, mint, nn, ops, scipy

DOCUMENT = Path(__file__).parents[3] / "docs" / "differences.md"
P = np.array([[1.0, -2.0], [3.0, -0.5]], np.float32)
G = np.array([[0.5, 1.0], [-1.0, 2.0]], np.float32)


def test_every_point_of_the_section_has_its_test() -> None:
    section = DOCUMENT.read_text(encoding="utf-8").partition("\n## Operators\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(test_\w+)` \|", section))
    here = {name for name in vars(sys.modules[__name__]) if name.startswith("test_")} - {"test_every_point_of_the_section_has_its_test"}
    assert named == here


def parameters(*values: np.ndarray) -> list[Parameter]:
    return [Parameter(Tensor(value.copy()), name=f"p{i}") for i, value in enumerate(values)]


def test_nextafter() -> None:
    x, y = np.array([1.0, -2.0], np.float32), np.array([2.0, -2.0], np.float32)
    assert (ops.nextafter(Tensor(x), Tensor(y)).asnumpy() == np.nextafter(x, y)).all()


@pytest.mark.parametrize("mode", (0, 1))
def test_a_float_next_to_float64_keeps_its_digits(mode: int) -> None:
    ms.set_context(mode=mode)
    values = np.random.RandomState(0).randn(50)
    x = Tensor(values)
    try:
        for result, expected in ((x * 0.1, values * 0.1), (0.1 * x, 0.1 * values), (x + 0.1, values + 0.1), (x / 0.1, values / 0.1)):
            assert result.dtype == ms.float64 and np.array_equal(result.asnumpy(), expected)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_numbers_take_the_dtype_of_float16_in_all_forms() -> None:
    values = np.random.RandomState(0).randn(200).astype(np.float16)
    x, tenth = Tensor(values), np.float32(np.float16(0.1))
    expected = (values.astype(np.float32) * tenth).astype(np.float16)
    operators = x * 0.1, 0.1 * x, x.mul(0.1), x * Tensor(0.1, ms.float16)
    for result in (*operators, ops.mul(x, 0.1), ops.mul(0.1, x), ops.Mul()(x, 0.1), mint.mul(x, 0.1)):
        assert np.array_equal(result.asnumpy(), expected)
    assert np.isposinf((Tensor([1.0], ms.float16) * 70000).asnumpy()).all()
    assert not np.array_equal(expected, (values.astype(np.float32) * np.float32(0.1)).astype(np.float16))


def differences(function, x: np.ndarray, step: float) -> np.ndarray:
    """The gradient of a function to a number, by central differences."""
    result = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        for sign in (1, -1):
            moved = x.copy()
            moved[at] += sign * step
            result[at] += sign * float(function(Tensor(moved))) / (2 * step)
    return result


def test_gradient_of_ihfft() -> None:
    x = np.random.RandomState(0).randn(2, 6)
    weights = Tensor(np.random.RandomState(1).randn(2, 4))

    def function(x: Tensor) -> Tensor:
        y = ops.ihfft(x)
        return (ops.real(y) * weights + ops.imag(y) * weights * 2).sum()

    np.testing.assert_allclose(ms.grad(function)(Tensor(x)).asnumpy(), differences(function, x, 1e-6), rtol=1e-4, atol=1e-6)


def test_gradient_of_dct() -> None:
    x = np.random.RandomState(0).randn(3, 5).astype(np.float32)
    gradients = ms.grad(lambda x: (scipy.fft.dct(x) ** 2).sum())(Tensor(x))
    np.testing.assert_allclose(gradients.asnumpy(), 2 * x, rtol=1e-5, atol=1e-6)


def test_lu_as_documented() -> None:
    tall = np.random.RandomState(0).randn(5, 3).astype(np.float32)
    left, upper = scipy.linalg.lu(Tensor(tall), permute_l=True)
    np.testing.assert_allclose((left @ upper).asnumpy(), tall, rtol=1e-5, atol=1e-6)
    square, right = tall[:3], tall[3]
    for trans, matrix in enumerate((square, square.T)):
        result = scipy.linalg.lu_solve(scipy.linalg.lu_factor(Tensor(square)), Tensor(right), trans=trans)
        np.testing.assert_allclose(matrix @ result.asnumpy(), right, rtol=1e-4, atol=1e-5)


def test_inv_of_a_singular_matrix() -> None:
    with pytest.raises(ValueError, match=r"inv\(.*expected a matrix that has an inverse"):
        scipy.linalg.inv(Tensor([[1.0, 2.0], [2.0, 4.0]]))


def test_minimize_steps_by_scipy() -> None:
    result = scipy.optimize.minimize(lambda x: ((x - 3) ** 4).sum(), Tensor([0.0, 9.0]), method="LBFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(result.x.asnumpy(), [3, 3], atol=0.02)
    assert result.success and result.nfev == result.njev
    with pytest.raises(ValueError, match="expected some of maxiter, gtol, norm for method 'BFGS'"):
        scipy.optimize.minimize(lambda x: x.sum(), Tensor([0.0]), method="BFGS", options={"history_size": 3})
    with pytest.raises(NotImplementedError, match="LAGRANGE"):
        scipy.optimize.minimize(lambda x: x.sum(), Tensor([0.0]), method="LAGRANGE")


def test_gradient_of_roi_align() -> None:
    x = np.random.RandomState(0).randn(1, 1, 5, 5).astype(np.float32)
    regions, align = Tensor([[0, 0.5, 0.25, 4.0, 3.5]], ms.float32), ops.ROIAlign(2, 2, 1.0, 2, 0)
    weights = Tensor(np.array([[1.0, -2.0], [0.5, 3.0]], np.float32))

    def function(x: Tensor) -> Tensor:
        return (align(x, regions) * weights).sum()

    np.testing.assert_allclose(ms.grad(function)(Tensor(x)).asnumpy(), differences(function, x, 0.5), rtol=1e-3, atol=1e-4)


def test_signs_of_ftrl() -> None:
    numbers = (Tensor(G), 0.1, 0.05, 0.1, -0.5)
    first, other = parameters(P, np.ones_like(P), P), parameters(P, np.ones_like(P), P)
    ops.ApplyFtrl()(*first, *numbers)
    ops.SparseApplyFtrl(0.1, 0.05, 0.1, -0.5)(*other, Tensor(G), Tensor([0, 1]))
    np.testing.assert_allclose(first[0].asnumpy(), other[0].asnumpy(), rtol=1e-6)
    p, a, b = parameters(P, np.zeros_like(P), np.ones_like(P))
    ops.ApplyAdagradDA()(p, a, b, Tensor(G), 0.1, 0.2, 0.1, 1)
    expected = -0.1 * np.sign(G) * np.maximum(np.abs(G) - 0.2, 0) / (0.1 * 0.1 + np.sqrt(1 + G * G))
    np.testing.assert_allclose(p.asnumpy(), expected, rtol=1e-5)


def test_update_slots() -> None:
    p, a = parameters(P, np.ones_like(P))
    ops.ApplyAdagrad(update_slots=False)(p, a, 0.1, Tensor(G))
    assert (a.asnumpy() == 1).all()
    np.testing.assert_allclose(p.asnumpy(), P - 0.1 * G, rtol=1e-6)


def test_apply_momentum_looks_ahead() -> None:
    p, a = parameters(P, np.ones_like(P))
    ops.ApplyMomentum(use_nesterov=True)(p, a, 0.1, Tensor(G), 0.5)
    np.testing.assert_allclose(p.asnumpy(), P - 0.1 * (G + 0.5 * (0.5 + G)), rtol=1e-6)


def test_decay_without_a_gradient() -> None:
    p, s, m = parameters(P, np.ones_like(P), np.zeros_like(P))
    ops.SparseApplyRMSProp(0.5, 0.0, 1e-6)(p, s, m, 0.1, Tensor(np.zeros((1, 2), np.float32)), Tensor([1]))
    assert s.asnumpy().tolist() == [[1, 1], [0.5, 0.5]]


def test_integers_only() -> None:
    for call in (ops.gcd, ops.lcm, ops.bitwise_left_shift, ops.bitwise_right_shift):
        with pytest.raises(TypeError, match="expected integers, got Float32"):
            call(Tensor(P), Tensor(P))


def test_pivots_are_rows() -> None:
    with pytest.raises(ValueError, match="expected pivots from 1 to 2, which count the rows"):
        ops.lu_unpack(Tensor(P), Tensor([3, 2], ms.int32))
    with pytest.raises(ValueError, match=r"expected one pivot for each column of \(2, 2\), got pivots of shape \(3,\)"):
        ops.lu_solve(Tensor(P), Tensor(P), Tensor([1, 2, 2], ms.int32))


def test_parts_of_sparse_tensors() -> None:
    from mindspore.ops.operations import sparse_ops as sparse

    def longs(*values: object) -> Tensor:
        return Tensor(np.array(values, np.int64))

    moved, shape = sparse.SparseReshape()(longs((0, 1), (1, 2), (2, 0)), longs(3, 4), longs(2, -1))
    assert (moved.asnumpy().tolist(), shape.asnumpy().tolist()) == ([[0, 1], [1, 0], [1, 2]], [2, 6])
    sizes = sparse.SetSize()(longs((0, 0), (0, 1), (1, 0)), longs(1, 1, 2), longs(3, 2))
    assert sizes.asnumpy().tolist() == [1, 1, 0]
    turned = sparse.SparseMatrixTranspose()(longs(2, 3), longs(0, 2), longs(0, 1, 2), longs(1, 0), Tensor([1.0, 2.0]))
    assert turned[4].asnumpy().tolist() == [2, 1]
    batch = longs(2, 1, 3), longs(0, 2, 4), longs(0, 2, 0, 2), longs(0, 1, 1, 2), Tensor([1.0, 1.0, 2.0, 2.0])
    assert sparse.SparseMatrixSoftmax(ms.float32)(*batch)[4].asnumpy().tolist() == [0.5, 0.5, 0.5, 0.5]
    gap = sparse.SparseSegmentSum()(Tensor([[1.0], [2.0]]), longs(0, 1), longs(0, 2))
    assert gap.asnumpy().tolist() == [[1], [0], [2]]


def test_nesterov_on_rows() -> None:
    from mindspore.ops.operations.nn_ops import SparseApplyMomentum

    var, accum = parameters(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([[2.0, 2.0], [2.0, 2.0]], np.float32))
    rows = Tensor(np.array([1], np.int32))
    SparseApplyMomentum(use_nesterov=True)(var, accum, Tensor(0.1), Tensor([[0.5, 1.0]]), rows, Tensor(0.5))
    assert np.allclose(var.asnumpy(), [[1, 2], [3 - 0.1 * (0.5 + 0.5 * 1.5), 4 - 0.1 * (1 + 0.5 * 2)]])


def test_nan_goes_through(mode: int) -> None:
    x = Tensor([1.0, np.nan, 4.0])
    results = [
        ops.relu(x), ops.relu6(x), ops.clamp(x, 0.5, 2.0), ops.clip_by_value(x, Tensor(0.5), Tensor(2.0)), ops.hardtanh(x),
        ops.maximum(x, Tensor(2.0)), ops.minimum(x, Tensor(2.0)),
    ]
    assert [np.isnan(output.asnumpy()).tolist() for output in results] == [[False, True, False]] * 7
    assert np.isnan(float(x.max())) and np.isnan(float(ops.ReduceMin()(x))) and int(ops.argmax(x)) == 1
    assert np.isnan(ops.max_pool2d(x.reshape(1, 1, 1, 3), (1, 2), 1).asnumpy()).all()


def test_the_cross_entropy_of_one_value_counts_once(mode: int) -> None:
    chance, label = Tensor([[0.25]]), Tensor([[0.0]])
    for loss in (nn.BCELoss(reduction="mean")(chance, label), ops.binary_cross_entropy(chance, label, reduction="sum")):
        assert abs(float(loss) + np.log(0.75)) < 1e-6


CORNERS = {
    "leaky_relu": (lambda x: ops.leaky_relu(x, 0.2), [-1.0, 0.0], [0.2, 0.2]),
    "hardtanh": (ops.hardtanh, [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0]),
    "relu6": (ops.relu6, [0.0, 6.0], [0.0, 0.0]),
    "hardswish": (ops.hardswish, [-3.0, 3.0], [0.0, 1.0]),
    "norm": (ops.norm, [0.0, 0.0], [0.0, 0.0]),
    "std": (lambda x: x.std(), [1.0, 1.0], [0.0, 0.0]),
}


@pytest.mark.parametrize("name", CORNERS)
def test_slopes_at_corners(name: str, mode: int) -> None:
    function, at, expected = CORNERS[name]
    assert ms.grad(lambda x: function(x).sum())(Tensor(at)).asnumpy().tolist() == pytest.approx(expected)


GRADIENTS = {
    "selu": (lambda x: ops.selu(x), [[-2.0, -0.5, 1.0]]),
    "fftshift": (lambda x: ops.fftshift(x) * Tensor([1.0, 2.0, 3.0]), [[1.0, 2.0, 3.0]]),
    "ReduceProd": (lambda x: ops.ReduceProd()(x), [[0.0, 2.0, 3.0]]),
    "inplace_update": (lambda x: ops.inplace_update(x, x[:1] * 2, (1,)) ** 2, [[1.0], [2.0], [3.0]]),
    "divisor_override": (lambda x: nn.AvgPool2d(3, 2, "same", divisor_override=3)(x.reshape(1, 1, 3, 3)) ** 2, [[1.0, 2.0, 4.0]] * 3),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_what_is_computed(name: str, mode: int) -> None:
    function, at = GRADIENTS[name]
    x = np.array(at, np.float32)
    array = ms.grad(lambda x: function(x).sum())(Tensor(x)).asnumpy()
    np.testing.assert_allclose(array, differences(lambda x: function(x).sum(), x, 1e-2), rtol=2e-2, atol=2e-2)


def test_index_add_leaves_its_tensor_alone() -> None:
    for x in (Tensor([1.0, 2.0, 3.0]), Parameter(Tensor([1.0, 2.0, 3.0]), name="x")):
        for tensor in (x.index_add(0, Tensor([0, 2], ms.int32), Tensor([10.0, 20.0])), mint.index_add(x, 0, Tensor([0]), Tensor([10.0]))):
            assert float(tensor[0]) == 11.0 and x.asnumpy().tolist() == [1.0, 2.0, 3.0]


def test_nearest_neighbours_by_centers_of_pixels() -> None:
    row = Tensor(np.arange(6.0).reshape(1, 1, 1, 6))
    assert ops.ResizeNearestNeighbor((1, 4), half_pixel_centers=True)(row).asnumpy().ravel().tolist() == [0.0, 2.0, 3.0, 5.0]
    with pytest.raises(ValueError, match=r"align_corners=True, half_pixel_centers=True: expected one of the two\."):
        ops.ResizeNearestNeighbor((1, 4), True, True)(row)


def test_a_strided_slice_with_a_new_axis() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    array = ops.StridedSlice(new_axis_mask=2)(Tensor(x), (0, 0, 0), (2, 3, 4), (1, 1, 2)).asnumpy()
    assert (array == x[:, None, ::2]).all() and array.shape == (2, 1, 2, 4)


def test_an_embedding_has_the_dtype_of_its_argument() -> None:
    assert nn.Embedding(5, 3, dtype=ms.float16)(Tensor([1])).dtype == ms.float16


def test_cross_entropies_of_float16_stay_finite() -> None:
    p, y = Tensor([0.0, 1.0, 0.5], ms.float16), Tensor([1.0, 1.0, 1.0], ms.float16)
    losses = ops.binary_cross_entropy(p, y, None, "none")
    assert losses.dtype == ms.float16
    np.testing.assert_allclose(losses.asnumpy(), [27.631, 0.0, 0.6931], rtol=1e-3)
    with pytest.raises(ValueError, match=r"expected probabilities, numbers from 0 to 1\."):
        ops.binary_cross_entropy(Tensor([0.5]), Tensor([2.0]))


def test_a_masked_class_leaves_the_loss_of_others_finite() -> None:
    scores, classes = Tensor([[0.0, 0.0, -np.inf]], ms.float32), Tensor([0], ms.int32)
    assert abs(float(ops.cross_entropy(scores, classes)) - np.log(2)) < 1e-6
    assert float(ops.nll_loss(scores, classes)) == 0


def test_topk_puts_nan_first_and_orders_unsigned_numbers() -> None:
    values, indexes = ops.topk(Tensor([1.0, np.nan, 3.0, np.nan], ms.float32), 3)
    assert indexes.asnumpy().tolist() == [1, 3, 2] and np.isnan(values.asnumpy()[:2]).all()
    for dtype in (ms.uint8, ms.uint16, ms.uint32):
        smallest = ops.topk(Tensor([2, 0, 1, 0], dtype), 3, largest=False)
        assert smallest[0].asnumpy().tolist() == [0, 0, 1] and smallest[1].asnumpy().tolist() == [1, 3, 2]


def test_gradient_of_zeta_by_its_first_argument() -> None:
    x, q = np.array([1.5, 2.0, 5.0]), Tensor([1.0, 0.5, 2.0], ms.float64)
    array = ms.grad(lambda x: ops.zeta(x, q).sum())(Tensor(x)).asnumpy()
    np.testing.assert_allclose(array, differences(lambda x: ops.zeta(x, q).sum(), x, 1e-4), rtol=1e-6)


def test_gradient_of_a_short_normalized_vector() -> None:
    x = np.array([[1e-4, 2e-4]])
    array = ms.grad(lambda x: ops.L2Normalize(1)(x).sum())(Tensor(x, ms.float32)).asnumpy()
    np.testing.assert_allclose(array, [[100.0, 100.0]], rtol=1e-5)
