"""Operators that 2.x keeps for old programs, gradients that real MindSpore has no CPU kernel for, and types of Python values."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops
from mindspore._c_expression import security
from mindspore.common import dtype
from mindspore.experimental import optim
from mindspore.ops.operations import _grad_ops, _inner_ops


def test_rows_of_a_cache_are_written_and_swapped() -> None:
    table = Parameter(Tensor(np.arange(10, dtype=np.float32).reshape(5, 2)), name="table")
    updated = ops.UpdateCache()(table, Tensor([[-1, 3, 9]], ms.int32), Tensor(np.full((3, 2), 7.0, np.float32)), 9999)
    assert updated.asnumpy().tolist() == [0] and table.asnumpy()[:, 0].tolist() == [0.0, 2.0, 4.0, 7.0, 8.0]
    old = ops.CacheSwapTable()(table, Tensor([4, -1], ms.int32), Tensor(np.full((2, 2), 1.0, np.float32)))
    assert old.asnumpy().tolist() == [[8.0, 9.0], [0.0, 0.0]] and table.asnumpy()[4].tolist() == [1.0, 1.0]


def test_marks_of_open_lengths_leave_values_alone() -> None:
    x = Tensor([1.0, 2.0])
    for output in (_inner_ops.ConvertToDynamic(True)(x), _inner_ops.GpuConvertToDynamicShape()(x)):
        assert output.asnumpy().tolist() == [1.0, 2.0]
    assert _inner_ops.DynamicBroadcastTo()(x, Tensor([2, 2])).shape == (2, 2)
    with pytest.raises(TypeError, match="is_dynamic_rank"):
        _inner_ops.ConvertToDynamic(1)(x)


def gradient(function, *inputs):
    return ms.grad(function, tuple(range(len(inputs))))(*inputs)


def test_gradients_without_a_kernel_there_equal_those_of_the_functions() -> None:
    x, label = Tensor([[0.5, -1.0]]), Tensor([[1.0, -1.0]])
    result = _grad_ops.SoftMarginLossGrad("mean")(x, label, Tensor(1.0))
    np.testing.assert_allclose(result.asnumpy(), gradient(lambda x: ops.soft_margin_loss(x, label), x).asnumpy(), rtol=1e-5)
    matrix = Tensor([[4.0, 1.0], [1.0, 3.0]])
    lower, seed = ops.cholesky(matrix), Tensor([[1.0, 0.0], [2.0, 3.0]])
    by_function = ms.grad(lambda m: (ops.cholesky(m) * seed).sum())(matrix)
    np.testing.assert_allclose(_grad_ops.CholeskyGrad()(lower, seed).asnumpy(), by_function.asnumpy(), rtol=1e-5)
    values, indexes = ops.unique(Tensor([1.0, 2.0, 1.0]))
    assert _grad_ops.UniqueGrad()((values, indexes), (values, indexes)).asnumpy().tolist() == [1.0, 2.0, 1.0]
    softmax, back = ops.softmax(x), Tensor([[1.0, 3.0]])
    np.testing.assert_allclose(
        _grad_ops.SoftmaxGrad()(softmax, back).asnumpy(), ms.grad(lambda x: (ops.softmax(x) * back).sum())(x).asnumpy(), rtol=1e-5,
    )
    selu = ops.selu(x)
    np.testing.assert_allclose(
        _grad_ops.SeluGrad()(Tensor([[1.0, 1.0]]), selu).asnumpy(), ms.grad(lambda x: ops.selu(x).sum())(x).asnumpy(), rtol=1e-5,
    )


def test_the_gradients_of_grid_sample() -> None:
    image, grid = ops.arange(16.0).reshape(1, 1, 4, 4), Tensor([[[[0.2, -0.4], [0.6, 0.8]]]])      # MindSpore's own kernel fails on these
    result = _grad_ops.GridSampler2DGrad(align_corners=True)(ops.ones((1, 1, 1, 2)), image, grid)
    expected = gradient(lambda image, grid: ops.grid_sample(image, grid, align_corners=True), image, grid)
    for output, other in zip(result, expected):
        np.testing.assert_allclose(output.asnumpy(), other.asnumpy(), rtol=1e-5)
    only = _grad_ops.GridSampler2DGrad(align_corners=True, output_mask=(1, 0))(ops.ones((1, 1, 1, 2)), image, grid)
    assert not only[1].asnumpy().any()


def test_the_gradient_of_least_squares_has_a_separate_function() -> None:
    a, b, back = Tensor([[2.0, 1.0], [0.0, 1.0]]), Tensor([[1.0], [3.0]]), Tensor([[1.0], [2.0]])
    for tensor, other in zip(ops.auto_generate.lstsq_v2_grad_op(back, a, b), _grad_ops.LstsqV2Grad()(back, a, b)):
        assert tensor.asnumpy().tolist() == other.asnumpy().tolist()


def test_a_gradient_primitive_has_a_gradient() -> None:
    mask = Tensor([1.0, 0.0])
    assert gradient(lambda dy: _grad_ops.DropoutGrad(0.5)(dy, mask), Tensor([3.0, 4.0])).asnumpy().tolist() == [2.0, 0.0]
    twice = gradient(lambda dy, x: _grad_ops.SiLUGrad()(dy, x), Tensor([1.0]), Tensor([0.0]))[1]
    np.testing.assert_allclose(twice.asnumpy(), [0.5], rtol=1e-5)          # silu''(0) = 1/2


def test_types_of_python_values() -> None:
    types = {1: ms.int64, 1.5: ms.float64, 2j: ms.complex128, (): ms.tuple_, None: ms.type_none, "a": ms.string}
    assert dtype.get_py_obj_dtype(True) == dtype.get_py_obj_dtype(bool) == ms.bool_
    assert dtype.get_py_obj_dtype([]) == ms.list_ and dtype.get_py_obj_dtype(np.int8) == ms.int8
    for value, expected in types.items():
        assert dtype.get_py_obj_dtype(value) == expected == dtype.get_py_obj_dtype(type(value))
    with pytest.raises(NotImplementedError, match="expected a number"):
        dtype.get_py_obj_dtype({})
    assert dtype._issubclass_(ms.float32, ms.number) and not dtype._issubclass_(ms.int32, dtype.float_)


def test_quotients_of_tuples_leave_no_remainder() -> None:
    tuple_div = ops.functional.tuple_div
    assert tuple_div((8, 14), (2, 7)) == (4, 2)
    for y, kind, text in (
        ((2,), ValueError, "must be the same"), ((2, 2.0), TypeError, "int64"), ((2, 0), ValueError, "not be 0"),
        ((3, 2), ValueError, "divisible"),
    ):
        with pytest.raises(kind, match=text):
            tuple_div((8, 14), y)


def test_this_is_no_build_without_dumps() -> None:
    assert security.enable_security() is False


@pytest.mark.parametrize("make", [
    lambda o: optim.lr_scheduler.StepLR(o, 1, 0.5), lambda o: optim.lr_scheduler.ExponentialLR(o, 0.5),
    lambda o: optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.5**epoch),
], ids=["StepLR", "ExponentialLR", "LambdaLR"])
def test_a_schedule_steps_in_a_strict_graph(make) -> None:
    schedule = make(optim.Adam(nn.Dense(1, 1).trainable_params(), 0.1))

    class Step(nn.Cell):
        def construct(self):
            schedule.step()
            return schedule.get_last_lr()

    before = ms.get_context("mode"), ms.get_context("jit_syntax_level")
    ms.set_context(mode=ms.GRAPH_MODE, jit_syntax_level=ms.STRICT)
    try:
        step = Step()
        rates = [float(step()[0]) for _ in range(3)]
    finally:
        ms.set_context(mode=before[0], jit_syntax_level=before[1])
    np.testing.assert_allclose(rates, [0.05, 0.025, 0.0125], rtol=1e-6)
    assert schedule.last_epoch == 3


def test_unnamed_parameters_of_a_tuple_are_counted() -> None:
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.both = ms.ParameterTuple((Parameter(Tensor([1.0])), Parameter(Tensor([1.0]), name="own")))
            self.one = ms.ParameterTuple((Parameter(Tensor([1.0])),))

    assert [parameter.name for parameter in Net().get_parameters()] == ["Parameter$1", "own", "Parameter$2"]
    assert ms.common.parameter._is_parameter_generated(Parameter(Tensor([1.0])).name)
    assert not ms.common.parameter._is_parameter_generated("weight")


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize("name", [f"Bessel{kind}" for kind in "I0 I1 I0e I1e J0 J1 Y0 Y1 K0 K1 K0e K1e".split()])
def test_bessel_functions_have_second_derivatives(name: str, mode: int) -> None:
    function = getattr(ops, name)()
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        slope = ms.grad(function)
        second = float(ms.grad(lambda x: slope(x) * 1)(Tensor([0.4], ms.float64)).asnumpy()[0])
        slopes = [float(slope(Tensor([x], ms.float64)).asnumpy()[0]) for x in (0.4 - 1e-5, 0.4 + 1e-5)]
    finally:
        ms.set_context(mode=before)
    assert second == pytest.approx((slopes[1] - slopes[0]) / 2e-5, rel=1e-5)


def test_the_values_of_a_shape_are_known() -> None:
    assert ops.functional.is_sequence_value_unknown((2, 3)) is False
    with pytest.raises(TypeError, match="expected a tuple or list"):
        ops.is_sequence_value_unknown(3)


@pytest.mark.parametrize("mode", ["GRAPH_MODE", "PYNATIVE_MODE"])
def test_what_cells_and_inner_operators_had_until_2_2(mode):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.silu = _inner_ops.SiLU()

        def construct(self, x):
            return self.cast(self.silu(x), ms.float16)

    ms.set_context(mode=getattr(ms, mode))
    try:
        out = Net()(ms.Tensor([0.0, 2.0], ms.float32))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert out.dtype == ms.float16 and out.asnumpy().tolist() == pytest.approx([0.0, 1.7617], abs=1e-3)
