"""Tensor methods that take two forms of arguments, those of 1.x and those of torch; the answers are real MindSpore 2.10's."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, mutable, nn, ops

F = np.array([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]], np.float32)
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

FORMS = {
    "flatten_positions": (lambda t: t.flatten(0, -1), X, X.reshape(-1)),
    "flatten_one": (lambda t: t.flatten(1), X, X.reshape(2, 12)),
    "flatten_mixed": (lambda t: t.flatten(1, end_dim=2), X, X.reshape(2, 12)),
    "flatten_order": (lambda t: t.flatten("F"), X, X.flatten("F")),
    "argmin": (lambda t: t.argmin(dim=1, keepdim=True), F, np.array([[1], [2]], np.int32)),
    "std": (lambda t: t.std(dim=1, correction=0), F, F.std(1)),
    "median": (lambda t: t.median(dim=1)[0], F, np.array([2.0, 5.0], np.float32)),
    "chunk": (lambda t: t.chunk(2, dim=1)[1], F, F[:, 2:]),
    "gather": (lambda t: t.gather(input_indices=Tensor([0]), axis=1), F, F[:, :1]),
    "scatter": (lambda t: t.scatter(dim=1, index=Tensor([[0]]), src=Tensor([[9.0]])), F, [[9.0, 1.0, 2.0], [6.0, 5.0, 4.0]]),
    "index_select": (lambda t: t.index_select(dim=1, index=Tensor([2])), F, F[:, 2:]),
    "repeat_interleave": (lambda t: t.repeat_interleave(2, dim=1), F, F.repeat(2, 1)),
    "tile_reps": (lambda t: t.tile(reps=(2, 1)), F, np.tile(F, (2, 1))),
    "tile_ints": (lambda t: t.tile(2, 1), F, np.tile(F, (2, 1))),
    "unsqueeze": (lambda t: t.unsqueeze(dim=0), F, F[None]),
    "transpose_two": (lambda t: t.transpose(0, 1), X, X.swapaxes(0, 1)),
    "transpose_named": (lambda t: t.transpose(dim0=0, dim1=1), F, F.T),
    "transpose_all": (lambda t: t.transpose(1, 0, 2), X, X.transpose(1, 0, 2)),
    "permute": (lambda t: t.permute(dims=(1, 0)), F, F.T),
    "view_bytes": (lambda t: t.view(ms.int32), F, F.view(np.int32)),
    "remainder": (lambda t: t.remainder(other=2), F, F % 2),
    "sub": (lambda t: t.sub(y=t), F, F * 0),
    "diagonal": (lambda t: t.diagonal(offset=0, axis1=0, axis2=1), F, np.array([3.0, 5.0], np.float32)),
    "take": (lambda t: t.take(index=Tensor([0, 1])), F, F[0, :2]),
    "add_alpha": (lambda t: t.copy().add_(t, alpha=2), F, 3 * F),
    "searchsorted": (lambda t: t.reshape(-1)[:0].searchsorted(Tensor([1.0])), F, np.array([0], np.int32)),
}


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize("form", FORMS)
def test_both_forms_of_a_method_are_taken(form: str, mode: int) -> None:
    call, arguments, expected = FORMS[form]

    class Net(nn.Cell):
        def construct(self, t):
            return call(t)

    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        array = Net()(Tensor(arguments)).asnumpy()
    finally:
        ms.set_context(mode=before)
    np.testing.assert_allclose(array, expected)
    assert array.dtype == np.asarray(expected, getattr(expected, "dtype", np.float32)).dtype


def test_a_form_that_is_none_of_them_is_refused() -> None:
    t = Tensor(F)
    for call in (lambda: t.flatten(0, 1, 2), lambda: t.tile(), lambda: t.permute(axes=(1, 0)), lambda: t.flatten(0, start_dim=0)):
        with pytest.raises(TypeError, match="expected"):
            call()


def test_a_slice_by_floats_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Slice indices must be integers or bool. Expected an int, got 1.5."):
        Tensor(F)[1.5:]


def test_truth_values_are_no_bounds() -> None:
    for call in (lambda: Tensor(F).clamp(1, True), lambda: ops.clip(Tensor([True]), 0, 1)):
        with pytest.raises(ValueError, match="the dtype of 'input', 'min' and 'max' must not be bool"):
            call()


@pytest.mark.parametrize("call", [ops.nextafter, ops.heaviside, ops.igamma, ops.igammac, ops.zeta, ops.isclose], ids=lambda f: f.__name__)
def test_operators_that_do_not_promote_refuse_two_dtypes(call) -> None:
    with pytest.raises(TypeError, match="expected one dtype, got Float32 and Float64"):
        call(Tensor([1.5]), Tensor([1.5], ms.float64))


def test_classes_show_their_public_names() -> None:
    assert repr(Tensor) == "<class 'mindspore.common.tensor.Tensor'>"
    assert f"{type(ms.Parameter(Tensor([1.0])))}" == "<class 'mindspore.common.parameter.Parameter'>"


def test_an_input_of_any_rank_is_declared() -> None:
    class Net(nn.Cell):
        def construct(self, t):
            return t.sum()

    net = Net()
    net.set_inputs(Tensor(shape=None, dtype=ms.float32))
    assert [float(net(Tensor(array))) for array in (F, X)] == [21.0, 276.0]
    with pytest.raises(TypeError, match="expected data"):
        Tensor()


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_the_gradient_of_a_structure_has_its_structure(mode: int) -> None:
    class Net(nn.Cell):
        def construct(self, t, y):
            return t["a"] * t["b"][0] * y

    class Gradient(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net, self.operation = net, ops.GradOperation(get_all=True)

        def construct(self, t, y):
            return self.operation(self.net)(t, y)

    containers = mutable({"a": Tensor([2.0]), "b": [Tensor([3.0]), (Tensor([5.0]), 4.0)]})
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        by_structure, by_tensor = Gradient(Net())(containers, Tensor([7.0]))
    finally:
        ms.set_context(mode=before)
    assert by_structure["a"].asnumpy() == 21.0 and by_structure["b"][0].asnumpy() == 14.0 and by_tensor.asnumpy() == 6.0
    unused, number = by_structure["b"][1]
    assert unused.asnumpy() == 0.0 and number == 0.0 and isinstance(by_structure["b"], list)
