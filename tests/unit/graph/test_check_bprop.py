"""`check_bprop`: a Cell's own gradients are looked at, in both modes, and while a graph is captured."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from torchspore.cli import explain

X = Tensor(np.ones((2, 3), np.float32))


class Own(nn.Cell):
    def __init__(self, gradients: Callable[[Any], Any]) -> None:
        super().__init__()
        self.gradients = gradients

    def construct(self, x, y):
        return x * y

    def bprop(self, x, y, out, dout):
        return self.gradients(dout)


CHECKED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "shape": (lambda d: (d, d[0]), ValueError, "gradient 1 has the shape (3,), expected (2, 3)"),
    "longer": (lambda d: (ops.stack((d, d)), d), ValueError, "gradient 0 has the shape (2, 2, 3), expected (2, 3)"),
    "dtype": (lambda d: (d.astype(ms.float16), d), TypeError, "gradient 0 has the dtype Float16, expected Float32"),
    "few": (lambda d: d, TypeError, "expected 2 gradients, one for each argument of construct, got 1"),
    "many": (lambda d: (d, d, d), TypeError, "expected 2 gradients, one for each argument of construct, got 3"),
    "none": (lambda d: (d, None), TypeError, "gradient 1 is None of type NoneType, expected a Tensor"),
    "number": (lambda d: (d, 1.0), TypeError, "gradient 1 is 1.0 of type float, expected a Tensor"),
}
UNCHECKED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "shape": (lambda d: (d, d[0]), "gradient 1 has the shape (3,), expected (2, 3) or what sums to it"),
    "few": (lambda d: d, "expected 2 gradients, one for each argument of construct, got 1"),
}


@pytest.fixture
def checked() -> Iterator[None]:
    ms.set_context(check_bprop=True)
    yield
    ms.set_context(check_bprop=False)


def gradients(net: nn.Cell) -> Any:
    return ops.GradOperation(get_all=True)(net)(X, X)


def assert_refused(kind: type[Exception], sentence: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as caught:
        call()
    text, path = re.sub(r"\S+test_check_bprop\.py:\d+", "FILE:1", str(caught.value)), type(caught.value)
    assert text == f"For user defined method 'bprop' of net 'Own': {sentence}.\n\nhint: bprop is at FILE:1." and path is kind


@pytest.mark.parametrize("case", CHECKED)
def test_what_differs_is_named(mode: int, checked: None, case: str) -> None:
    grads, kind, sentence = CHECKED[case]
    assert_refused(kind, sentence, lambda: gradients(Own(grads)))


@pytest.mark.parametrize("case", CHECKED)
def test_it_is_detected_while_compiling(checked: None, case: str) -> None:
    grads, kind, sentence = CHECKED[case]

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.own = Own(grads)

        def construct(self, x):
            return ms.grad(self.own, (0, 1))(x, x)

    assert_refused(kind, sentence, lambda: Outer().compile(X))


@pytest.mark.parametrize("case", UNCHECKED)
def test_without_it_only_what_can_not_be_a_gradient_is_refused(mode: int, case: str) -> None:
    grads, sentence = UNCHECKED[case]
    assert_refused(RuntimeError, sentence, lambda: gradients(Own(grads)))


def test_without_it_another_dtype_is_cast_and_more_are_dropped(mode: int) -> None:
    first, second = gradients(Own(lambda d: (d.astype(ms.float16), ops.stack((d, d)), d)))
    assert (first.dtype, second.asnumpy().tolist()) == (ms.float32, [[2.0] * 3] * 2)


def test_right_gradients_pass_and_explain_says_that_they_were_checked(mode: int, checked: None) -> None:
    assert gradients(Own(lambda d: (d * 2, d)))[0].asnumpy().tolist() == [[2.0] * 3] * 2
    assert [row[3] for row in explain.rows() if row[0] == "check_bprop"] == ["applied: gradients of a Cell's own bprop are checked"]
