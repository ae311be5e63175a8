"""`grad_for_scalar`: gradients with respect to Python numbers, in both modes."""
from __future__ import annotations

from collections.abc import Iterator

import mindspore as ms
import pytest
from mindspore import Tensor, nn, ops

from torchspore.cli import explain


def function(x, y):
    return x * y * y + x


def outcome() -> list[str]:
    return [row[3] for row in explain.rows() if row[0] == "grad_for_scalar"]


@pytest.fixture
def grad_for_scalar_on() -> Iterator[None]:
    ms.set_context(grad_for_scalar=True)
    yield
    ms.set_context(grad_for_scalar=False)


def test_off_the_gradient_of_a_number_is_omitted(mode: int) -> None:
    assert float(ms.grad(function, (0, 1))(Tensor(2.0), 3.0)) == 10.0
    assert ms.grad(function, 1)(Tensor(2.0), 3.0) == ()


@pytest.mark.parametrize("number", [3.0, 3])
def test_on_it_is_a_tensor(mode: int, grad_for_scalar_on: None, number: float) -> None:
    assert [float(g) for g in ms.grad(function, (0, 1))(Tensor(2.0), number)] == [10.0, 12.0]
    value, gradient = ms.value_and_grad(function, 1)(Tensor(2.0), number)
    assert (float(value), float(gradient), gradient.dtype) == (20.0, 12.0, ms.float32)
    assert [float(g) for g in ops.GradOperation(get_all=True)(function)(Tensor(2.0), number)] == [10.0, 12.0]
    assert outcome() == ["applied: gradients of Python numbers are Tensors of one float32"]


def test_another_number_gives_another_gradient(mode: int, grad_for_scalar_on: None) -> None:
    slope = ms.grad(function, 1)
    assert [float(slope(Tensor(1.0), number)) for number in (1.0, 2.0, 1.0)] == [2.0, 4.0, 2.0]


def test_inside_a_cell(mode: int, grad_for_scalar_on: None) -> None:
    class Slope(nn.Cell):
        def construct(self, x):
            return ms.grad(function, (0, 1))(x, 3.0)

    assert [float(g) for g in Slope()(Tensor(2.0))] == [10.0, 12.0]


def test_numbers_in_containers(mode: int, grad_for_scalar_on: None) -> None:
    def area(sides, factor):
        return sides[0] * sides[1] * factor["by"]

    (by_left, by_right), by_factor = ms.grad(area, (0, 1))((2.0, Tensor(3.0)), {"by": 5})
    assert (float(by_left), float(by_right), float(by_factor["by"])) == (15.0, 10.0, 6.0)


def test_without_a_tensor(mode: int, grad_for_scalar_on: None) -> None:
    assert [float(g) for g in ms.grad(lambda a, b: a * b, (0, 1))(2.0, 3.0)] == [3.0, 2.0]
