"""Attributes of primitives that are set after construction act from the next call on, as in real 2.10, or are refused or explained."""
from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from mindspore import Tensor, nn, ops, value_and_grad
from mindspore.ops import operations as P

from torchspore.context import effects

X = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))


class Sum(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.sum = P.ReduceSum()

    def construct(self, x: Any) -> Any:
        return self.sum(x, 1)


def test_an_argument_that_is_set_later_acts(mode: int) -> None:
    net = Sum()
    assert net(X).shape == (2,)
    net.sum.add_prim_attr("keep_dims", True)
    assert net(X).shape == (2, 1)
    net.sum.keep_dims = False
    assert net(X).shape == (2,)


@pytest.mark.parametrize(("primitive", "key", "value", "inputs", "expected"), [
    (P.MatMul(), "transpose_b", True, (X, X), [[5, 14], [14, 50]]),
    (P.Concat(), "axis", 1, ((X, X),), [[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]]),
    (P.SmoothL1Loss(), "beta", 3.0, (X, X * 0), [[0, 1 / 6, 2 / 3], [1.5, 2.5, 3.5]]),
])
def test_values_are_those_of_2_10(primitive: Any, key: str, value: Any, inputs: Any, expected: Any) -> None:
    primitive.add_prim_attr(key, value)
    for copy in (primitive, deepcopy(primitive), pickle.loads(pickle.dumps(primitive))):
        np.testing.assert_allclose(copy(*inputs).asnumpy(), expected, rtol=1e-6)


def test_a_primitive_created_and_changed_in_construct(mode: int) -> None:
    class Net(nn.Cell):
        def construct(self, x: Any) -> Any:
            total = P.ReduceSum()
            total.add_prim_attr("keep_dims", True)
            return total(x, 1)

    net = Net()
    assert net(X).shape == net(X).shape == (2, 1)


def test_a_primitive_changed_in_construct_acts_in_that_call(mode: int) -> None:
    class Net(Sum):
        def construct(self, x: Any, keep: bool) -> Any:
            self.sum.add_prim_attr("keep_dims", keep)
            return self.sum(x, 1)

    net = Net()
    assert [net(X, keep).shape for keep in (True, False, True)] == [(2, 1), (2,), (2, 1)]


def test_a_wrong_value_is_refused_and_changes_nothing() -> None:
    total = P.ReduceSum(keep_dims=True)
    with pytest.raises(TypeError) as caught:
        total.add_prim_attr("keep_dims", "yes")
    assert str(caught.value) == "ReduceSum(keep_dims='yes'): expected a bool, got str."
    assert total.attrs["keep_dims"] is True
    assert total(X, 1).shape == (2, 1)


def test_recompute_keeps_fewer_values_for_the_backward_pass() -> None:
    import torch

    def saved_bytes(recompute: bool) -> tuple[int, Any]:
        softmax, saved_tensors = P.Softmax(), []
        if recompute:
            softmax.recompute()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: saved_tensors.append(t) or t, lambda t: t):  # type: ignore[func-returns-value]
            _, gradient = value_and_grad(lambda x: (softmax(ops.exp(x)) * X).sum(), 0)(X)
        return len(saved_tensors), gradient.asnumpy()

    (few, gradient), (many, expected) = saved_bytes(True), saved_bytes(False)
    np.testing.assert_array_equal(gradient, expected)
    assert few != many


def test_requests_that_cannot_act_are_refused_or_explained() -> None:
    total = P.ReduceSum()
    with pytest.raises(ValueError, match=r"ReduceSum.set_device\('XPU'\): expected 'CPU', 'GPU' or 'Ascend'."):
        total.set_device("XPU")
    with pytest.raises(ValueError, match=r"ReduceSum.place\('CPU', 0\): expected the role 'MS_WORKER'."):
        total.place("CPU", 0)
    with pytest.raises(ValueError, match=r"ReduceSum.place\('MS_WORKER', 3\): expected 0, the rank of this process."):
        total.place("MS_WORKER", 3)
    with pytest.raises(TypeError, match=r"ReduceSum.recompute\('x'\): expected a bool, got str."):
        total.recompute("x")  # type: ignore[arg-type]
    total.set_device("GPU").set_stage(1)
    assert effects.notes()["operators"][-2:] == [
        "ReduceSum.set_device('GPU') has no effect here, because every operator runs on the context's device_target, 'CPU'",
        "ReduceSum.set_stage(1) has no effect here, because Cell.pipeline_stage assigns stages",
    ]


def test_wrong_calls_of_add_prim_attr_name_the_primitive() -> None:
    with pytest.raises(TypeError, match=r"^Gamma\.add_prim_attr\(\) missing 1 required positional argument: 'value'"):
        ops.Gamma().add_prim_attr("seed")
    with pytest.raises(TypeError, match=r"^Gamma\.add_prim_attr\(name=.*\): expected a str, got ndarray\."):
        ops.Gamma().add_prim_attr(np.array([1, 2]), 3)
    assert ops.Transpose().add_prim_attr(name="note", value=1).note == 1


@pytest.mark.parametrize("calls", ["rs", "sr", "rsrs", "srr", "ssr"])
def test_a_primitive_with_a_strategy_that_is_recomputed_is_copied_and_derived_once(calls: str) -> None:
    """Each of `shard` (s) and `recompute` (r) derives a class of the primitive's class at its first call only."""
    primitive = P.MatMul(transpose_b=True)
    for call in calls:
        primitive.recompute() if call == "r" else primitive.shard(((1, 1), (1, 1)))
    assert [cls.__name__ for cls in type(primitive).__mro__].count("MatMul") == 3
    for copied in (deepcopy(primitive), pickle.loads(pickle.dumps(primitive))):
        assert type(copied) is type(primitive)
        assert copied.attrs["recompute"] is True and copied.in_strategy == ((1, 1), (1, 1))
        np.testing.assert_array_equal(copied(X, X).asnumpy(), [[5, 14], [14, 50]])


def test_recompute_is_called_again_and_taken_away() -> None:
    primitive = P.Mul().recompute().recompute(False)
    assert primitive.attrs["recompute"] is False
    primitive.recompute().del_prim_attr("recompute")
    np.testing.assert_array_equal(primitive(X, X).asnumpy(), X.asnumpy() ** 2)
