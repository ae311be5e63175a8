"""Local names that functions made inside a call read or write: with graph breaks all of them see each other's writes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import pytest
from mindspore import Tensor

BREAKS: list[int] = []
SCALE = 3.0


def writes_in_a_try(a: Tensor) -> Any:
    n = 0
    try:
        def add(b: Tensor, by: int = 2) -> Tensor:
            nonlocal n
            n = n + by
            return b * 2
        result = add(a)
        BREAKS.append(3)
    except ValueError:
        pass
    return result, n


def writes_in_a_loop(a: Tensor) -> Any:
    def halve(b: Tensor) -> Tensor:
        nonlocal a
        a = a * 0.5
        return b + a

    BREAKS.append(1)
    for i in range(2):
        result = halve(a)
        BREAKS.append(i)
    a = a + 1
    return halve(result), a


def reads_later(a: Tensor) -> Any:
    n = 1
    scaled = lambda b: b * n
    BREAKS.append(1)
    n = 5
    result = scaled(a)
    BREAKS.append(2)
    n = 7
    return scaled(result)


def generates_later(a: Tensor) -> Any:
    n, functions = 0, []
    for i in range(3):
        functions.append(lambda b: b * i + n)  # noqa: B023
        BREAKS.append(i)
        n += 1
    rest = (a * n for _ in range(2))
    BREAKS.append(1)
    n = 10
    return [function(a) for function in functions], list(rest), n


def counts_an_argument(a: Tensor, k: int = 1) -> Any:
    def add(by: int) -> None:
        nonlocal k
        k += by

    BREAKS.append(1)
    while k < 6:
        add(2)
        a = a * k
        BREAKS.append(k)
    try:
        add(1)
        if a.sum() > 20:
            raise ValueError
        a = a + k
    except ValueError:
        a = a - k
    finally:
        add(10)
    return a, k


def has_no_value(a: Tensor) -> Any:
    try:
        BREAKS.append(1)
        result = a * SCALE  # noqa: F823
        if a.sum() > 9:
            raise ValueError
    except ValueError:
        SCALE += 1  # noqa: F841
    return result


FUNCTIONS = [writes_in_a_try, writes_in_a_loop, reads_later, generates_later, counts_an_argument, has_no_value]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_names_are_shared(function: Callable[..., Any]) -> None:
    def seen(call: Callable[..., Any]) -> list[Any]:
        BREAKS.clear()
        results: list[Any] = []
        for value in (1.0, 2.0, 5.0, 1.0):
            try:
                results.append(_plain(call(Tensor([value]))))
            except UnboundLocalError as error:
                results.append(type(error))
        return [*results, list(BREAKS)]

    assert seen(ms.jit(function)) == seen(function)


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.asnumpy().tolist()
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
