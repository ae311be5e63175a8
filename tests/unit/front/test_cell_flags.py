"""Flags of Cells and functions: `fp16`, `fp32` and `bf16` select the dtype, as in real 2.10; others are attributes or are explained."""
from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

from torchspore.context import effects

X = Tensor(np.ones((4, 3), np.float32))


class Inner(nn.Cell):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.weight = Parameter(Tensor(np.ones((3, 3), np.float32)), name="w")
        self.scale = Tensor(np.ones(3, np.float32))

    def construct(self, x: Any) -> Any:
        return ops.matmul(x, self.weight) * self.scale


class Outer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def construct(self, x: Any) -> Any:
        return self.inner(x), ops.relu(x)


def dtypes_of(cell: Any) -> list[Any]:
    result = cell(X)
    return [t.dtype for t in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize(("calls", "dtype"), [
    ([{"fp16": True}], ms.float16), ([{"bf16": True}], ms.bfloat16), ([{"fp16": 1}], ms.float16), ([{"fp16": None}], ms.float32),
    ([{"fp16": True}, {"fp32": True}], ms.float32), ([{"fp32": True}, {"fp16": True}], ms.float16),
    ([{"fp16": True, "fp32": True}], ms.float32), ([{"fp16": True}, {"fp16": False}], ms.float16), ([{"other": True}], ms.float32),
])
def test_the_last_true_flag_selects_the_dtype(mode: int, calls: list[dict[str, Any]], dtype: Any) -> None:
    cell = Inner()
    for flags in calls:
        assert cell.add_flags(**flags) is cell
    assert dtypes_of(cell) == [dtype]
    assert dtypes_of(deepcopy(cell)) == [dtype]
    assert dtypes_of(pickle.loads(pickle.dumps(cell))) == [dtype]
    assert cell.weight.dtype == ms.float32


@pytest.mark.parametrize("setting", [
    lambda: Inner(flags={"fp16": True}), lambda: ops.add_flags(Inner(), fp16=True), lambda: Inner().add_flags_recursive(fp16=True),
])
def test_every_way_to_set_a_flag(mode: int, setting: Callable[[], Any]) -> None:
    assert dtypes_of(setting()) == [ms.float16]


def test_an_attribute_of_that_name_selects_nothing(mode: int) -> None:
    cell = Inner()
    cell.fp16 = True
    assert dtypes_of(cell) == [ms.float32]


@pytest.mark.parametrize(("outer", "inner", "expected"), [
    ("fp16", "fp32", [ms.float32, ms.float16]), ("fp32", "fp16", [ms.float16, ms.float32]), ("fp16", "fp16", [ms.float16, ms.float16]),
])
def test_an_inner_cell_has_its_flags(mode: int, outer: str, inner: str, expected: list[Any]) -> None:
    net = Outer().add_flags(**{outer: True})
    net.inner.add_flags(**{inner: True})
    assert dtypes_of(net) == expected


def test_flags_and_to_float_override_each_other(mode: int) -> None:
    net = Outer().to_float(ms.float16)
    net.inner.add_flags_recursive(fp32=True)
    assert dtypes_of(net) == [ms.float32, ms.float16]
    assert dtypes_of(net.to_float(ms.float16)) == [ms.float16, ms.float16]
    assert net.get_flags() == {"fp16": True, "fp32": False, "bf16": False}


def test_a_flag_set_after_a_graph_was_captured_acts(mode: int) -> None:
    net = Outer()
    assert dtypes_of(net) == [ms.float32, ms.float32]
    net.add_flags_recursive(fp16=True)
    assert dtypes_of(net) == [ms.float16, ms.float16]


def test_training_with_a_flag_keeps_gradients_in_float32(mode: int) -> None:
    cell = Inner().add_flags_recursive(fp16=True)

    def loss(x: Any) -> Any:
        return ops.cast(cell(x), ms.float32).sum()

    by_input, by_weight = ms.grad(loss, 0, cell.trainable_params())(X)
    assert by_input.dtype == by_weight[0].dtype == ms.float32
    assert (by_weight[0].asnumpy() == 4).all()


def test_a_decorated_function_computes_in_the_dtype(mode: int) -> None:
    @ops.add_flags(fp16=True)
    def double(x: Any) -> Any:
        return x * 2

    assert double._func_graph_flags == {"fp16": True}
    assert double.__name__ == "double"
    assert double(X).dtype == ms.float16


def test_flags_are_attributes_and_can_be_read() -> None:
    cell = Inner().add_flags(fp16=True, sink_mode=3)
    assert cell.get_flags() == cell._func_graph_flags == {"fp16": True, "sink_mode": 3}
    assert (cell.fp16, cell.sink_mode) == (True, 3)
    assert Inner().set_train().get_flags() == {"training": True}


def test_explain_names_hints_for_mindspores_compiler() -> None:
    Inner().add_flags(defer_inline=True)
    reason = "a captured graph contains no calls to inline"
    assert f"Inner.add_flags: defer_inline has no effect here, because {reason}" in effects.notes()["flags"]
