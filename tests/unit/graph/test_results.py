"""What a call gives back is new in each call, and no stand-in of the trace leaves it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops


class Pair:
    def __init__(self, value: Any) -> None:
        self.value = value


class Values(list[Any]):
    pass


SHARED = Pair(1)


def with_more(y: Any) -> Values:
    result = Values([y])
    result.more = y + 1  # type: ignore[attr-defined]
    return result


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "an object": (lambda y: Pair(y * 2), lambda r: r.value),
    "an object in a list": (lambda y: [Pair([y]), y], lambda r: (r[0].value, r[1])),
    "a function": (lambda y: lambda x: x + y, lambda r: r(Tensor([1.0, 1.0, 1.0]))),
    "a method": (lambda y: (y * 2).sum, lambda r: r()),
    "an array": (lambda y: np.arange(3) + y.ndim, lambda r: r + 0),
    "a set": (lambda y: {1, y.ndim}, sorted),
    "a layer": (lambda y: (ops.ReLU(), y), lambda r: r[0](r[1])),
    "a list with attributes": (with_more, lambda r: (list(r), r.more)),
    "lengths of what a mask takes": (lambda y: y[y > 0].shape, lambda r: [(n, type(n)) for n in r]),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_call_creates_its_values_anew(kind: str) -> None:
    make, look = CASES[kind]
    compiled = ms.jit(make)
    before: list[Any] = []
    for values in ([1.0, 2.0, -3.0], [5.0, 6.0, 7.0], [1.0, 2.0, -3.0]):
        x = Tensor(np.array(values, np.float32))
        result = compiled(x)
        assert repr(look(result)) == repr(look(make(x)))
        assert type(result) is type(make(x)) and not any(result is old for old in before if not isinstance(result, tuple))
        before.append(result)


def test_what_was_there_before_is_returned_itself() -> None:
    compiled = ms.jit(lambda x: (SHARED, Pair, x * 2))
    assert all(compiled(Tensor([1.0]))[:2] == (SHARED, Pair) for _ in range(3))
