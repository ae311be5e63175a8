"""Which arguments have gradients: Tensors by position and by keyword, containers that `mutable` marks, and sparse values."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import COOTensor, CSRTensor, Parameter, Tensor, mutable, nn, ops
from mindspore.common.api import _no_grad
from mindspore.ops import GradOperation

from torchspore.engine.front_end import FRONT

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])


def values(gradients: Any) -> Any:
    """Return nested gradients with the Tensors as floats."""
    if isinstance(gradients, dict):
        return {key: values(item) for key, item in gradients.items()}
    if isinstance(gradients, (list, tuple)):
        return type(gradients)(values(item) for item in gradients)
    return float(gradients.asnumpy()) if isinstance(gradients, Tensor) else gradients


def product(x: Tensor, y: Tensor | None = None, z: Tensor | None = None) -> Tensor:
    return x * y * y if z is None else x * y * z


@MODES
def test_keyword_arguments_follow_the_positional_ones(mode: int) -> None:
    ms.set_context(mode=mode)
    x, y, z = Tensor(2.0), Tensor(3.0), Tensor(5.0)
    assert values(GradOperation(get_all=True)(product)(x, y=y)) == (9.0, 12.0)
    assert values(GradOperation(get_all=True)(product)(x, z=z, y=y)) == (15.0, 6.0, 10.0)
    assert values(GradOperation()(product)(x=x, y=y)) == 9.0
    assert values(ms.grad(product, (0, 1))(x, y=y)) == (9.0, 12.0)
    assert values(GradOperation(get_all=True, sens_param=True)(product)(x, y=y, sens=Tensor(2.0))) == (18.0, 24.0)


def first_times(parts: Any, y: Tensor) -> Tensor:
    return 2 * (parts["a"] if isinstance(parts, dict) else parts[0]) * y


@MODES
@pytest.mark.parametrize("kind", ["tuple", "list", "dict"])
def test_only_marked_containers_have_gradients(mode: int, kind: str) -> None:
    ms.set_context(mode=mode)
    a, b, y = Tensor(2.0), Tensor(7.0), Tensor(3.0)
    parts: Any = {"tuple": (a, b), "list": [a, b], "dict": {"a": a, "b": b}}[kind]
    assert values(GradOperation(get_all=True)(first_times)(parts, y)) == (4.0,)
    assert GradOperation()(first_times)(parts, y) == ()
    expected = {"tuple": (6.0, 0.0), "list": [6.0, 0.0], "dict": {"a": 6.0, "b": 0.0}}[kind]
    gradients = GradOperation(get_all=True)(first_times)(mutable(parts), y)
    assert values(gradients) == (expected, 4.0)
    assert type(gradients[0]) is type(parts)


def test_a_warning_names_an_unmarked_container(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(FRONT, "warn", texts.append)
    for _ in range(2):
        ms.grad(first_times)((Tensor(2.0), Tensor(7.0)), Tensor(3.0))
    GradOperation(get_all=True)(first_times)((Tensor(2.0), Tensor(7.0)), Tensor(3.0))
    assert len(texts) == 1
    assert "argument 0 is a tuple, so it has no gradient" in texts[0] and "write mindspore.mutable(...) around it" in texts[0]


def test_a_tensor_that_is_also_part_of_a_constant_has_its_gradient_alone_in_a_graph() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    x = Tensor(2.0)
    assert values(GradOperation()(lambda a, parts: a + parts[0])(x, (x, x))) == 1.0


@pytest.mark.parametrize("value", [1, 1.5, (1, 2), [1], {"a": 1}, []])
def test_mutable_keeps_the_value_and_its_origin(value: Any) -> None:
    marked = mutable(value)
    assert marked == value and marked.__ms_mutable__ and marked.__ms_origin_object__ is value


def test_mutable_refuses_other_values() -> None:
    for value in ("a", None, (1, "a"), {"a": None}):
        with pytest.raises(TypeError, match=r"one of \(bool, int, float, Tensor, tuple, list, dict\)"):
            mutable(value)
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(TypeError, match="no self-reference"):
        mutable(cycle)
    with pytest.raises(TypeError, match="the second input should be bool, but got: int"):
        mutable([1], 1)
    with pytest.raises(TypeError, match="the first input should be list or tuple, but got: Tensor"):
        mutable(Tensor(1.0), True)


@MODES
def test_dict_results_are_weighed_by_a_dict(mode: int) -> None:
    ms.set_context(mode=mode)

    def results(x: Tensor) -> dict[str, Any]:
        return {"b": 2, "a": x * 3}

    weights = {"b": 2, "a": Tensor([1.0, 10.0])}
    gradient = GradOperation(sens_param=True)(results)(Tensor([1.0, 1.0]), weights)
    assert gradient.asnumpy().tolist() == [3.0, 30.0]


@pytest.mark.parametrize("kind", ["csr", "coo"])
def test_sparse_inputs(kind: str) -> None:
    stored = Tensor([1.0, 2.0])
    sparse: Any = (
        CSRTensor(Tensor([0, 1, 2], ms.int32), Tensor([0, 1], ms.int32), stored, (2, 4)) if kind == "csr"
        else COOTensor(Tensor([[0, 1], [1, 2]], ms.int32), stored, (2, 4))
    )

    def weigh(x: Any, y: Tensor) -> Tensor:
        return x.values * y

    ms.set_context(mode=ms.PYNATIVE_MODE)
    gradient, of_y = GradOperation(get_all=True)(weigh)(sparse, Tensor(2.0))
    assert isinstance(gradient, Tensor) and gradient.asnumpy().tolist() == [2.0, 2.0] and values(of_y) == 3.0
    ms.set_context(mode=ms.GRAPH_MODE)
    gradient, _ = GradOperation(get_all=True)(weigh)(sparse, Tensor(2.0))
    assert type(gradient) is type(sparse) and gradient.values.asnumpy().tolist() == [2.0, 2.0]
    assert not gradient.indices.asnumpy().any() and gradient.shape == (2, 4)


def test_no_grad_refuses_gradient_functions() -> None:
    for build in (lambda: ms.grad(product), lambda: ms.value_and_grad(product), lambda: GradOperation()(product)):
        with _no_grad(), pytest.raises(RuntimeError, match="In no_grad context, you can not calculate gradient"):
            build()
    assert values(ms.grad(product)(Tensor(2.0), Tensor(3.0))) == 9.0


@pytest.mark.parametrize("name, expected", [
    ("AtanGrad", 0.75543764 + 0.41167107j), ("AsinGrad", 1.1209186 + 0.16048613j), ("AsinhGrad", 0.8707486 + 0.37732825j),
    ("ReciprocalGrad", -0.2625 + 0.19375j), ("SigmoidGrad", -0.8375 + 0.29375j), ("SqrtGrad", -0.68 - 0.64j),
    ("RsqrtGrad", 0.04140625 - 0.08125j), ("InvGrad", -0.1125 - 0.30625j), ("TanhGrad", 0.8875 - 0.00625j),
])
def test_gradient_primitives_of_complex_numbers(name: str, expected: complex) -> None:
    """The values are those of MindSpore 2.10."""
    from mindspore.ops.operations import _grad_ops

    x, dout = Tensor(np.array([-0.5 - 0.25j], np.complex64)), Tensor(np.array([1 + 0.3j], np.complex64))
    np.testing.assert_allclose(getattr(_grad_ops, name)()(x, dout).asnumpy(), [expected], rtol=2e-5)


@MODES
def test_nested_marked_containers(mode: int) -> None:
    ms.set_context(mode=mode)

    def nested(parts: Any) -> Tensor:
        return parts[0][0] * parts[1]["a"]

    gradients = GradOperation()(nested)(mutable(([Tensor(2.0), Tensor(3.0)], {"a": Tensor(4.0)})))
    assert values(gradients) == ([4.0, 0.0], {"a": 2.0})


class Counting(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.calls = Parameter(Tensor(0.0), name="calls", requires_grad=False)
        self.weight = Parameter(Tensor(2.0), name="weight")

    def construct(self, x: Tensor) -> Tensor:
        ops.assign_add(self.calls, Tensor(1.0))
        return x * x * self.weight


def test_the_first_product_of_vjp_uses_its_forward_pass() -> None:
    """As in 2.10: later products, and all in graph mode, run the Cell again."""
    for mode, counts in ((ms.PYNATIVE_MODE, [1, 1, 2]), (ms.GRAPH_MODE, [1, 2, 3])):
        ms.set_context(mode=mode)
        cell, x = Counting(), Tensor(3.0)
        _, product_of_vector = ops.vjp(cell, x)
        calls = [int(cell.calls)]
        for sens, expected in ((1.0, 12.0), (2.0, 24.0)):
            assert values(product_of_vector(Tensor(sens))) == (expected,)
            calls.append(int(cell.calls))
        assert calls == counts and not cell.requires_grad


def test_vjp_of_dropout_has_the_mask_of_its_result() -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    dropout = nn.Dropout(p=0.5).set_train()
    ones = Tensor(np.ones(64, np.float32))
    result, product_of_vector = ops.vjp(dropout, ones)
    np.testing.assert_array_equal(product_of_vector(ones)[0].asnumpy(), result.asnumpy())
