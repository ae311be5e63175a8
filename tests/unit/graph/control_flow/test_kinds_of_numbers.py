"""Ints and floats that a graph takes as inputs stay what they are in Python: Tensors take the one otherwise than the other."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import mindspore.numpy as mnp
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

import torchspore


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def in_a_loop(x: Any, k: Any) -> Any:
    total = 0
    for _ in range((x > 0).sum()):
        total = total + k
    return total


def set_in_a_loop(x: Any, k: Any) -> Any:
    while x.sum() > 3:
        k = 1
        x = x - 1
    return k


def halved_in_a_loop(x: Any, k: Any) -> Any:
    n = 3
    while x.sum() > 3:
        n = n * 0.5
        x = x - 1
    return n + k


NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "or": lambda x, k: k or 7, "and": lambda x, k: k and 5, "as a Tensor decides": lambda x, k: k if x.sum() > 0 else 1,
    "as it decides itself": lambda x, k: k if k > 2 else 3, "max": lambda x, k: max(k, 1), "min": lambda x, k: min(3, k),
    "in a loop": in_a_loop, "set in a loop": set_in_a_loop, "halved in a loop": halved_in_a_loop,
}


@pytest.mark.parametrize("how", NUMBERS)
def test_a_float_or_an_int(how: str) -> None:
    class Scales(nn.Cell):
        def construct(self, x: Any, k: Any) -> Any:
            number = NUMBERS[how](x, k)
            return x * number, Tensor([1, 2]) * number, number

    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net, shown = Scales(), []
        for k in (0.5, 2.5, 3.5, 4.5, 0.0):
            for x in (Tensor([4.0, 1.0]), Tensor([-1.0, -1.0])):
                *tensors, number = net(x, k)
                shown.append([(t.dtype, t.asnumpy().tolist()) for t in tensors] + [(type(number), number)])
        results.append(shown)
    assert results[0] == results[1]


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "a Tensor": lambda x, k: x + Tensor(k), "a Tensor of two": lambda x, k: x + Tensor([k, k]),
    "and of plain ones": lambda x, k: x + Tensor([k, 1]),
    "in a dtype": lambda x, k: Tensor([k, 1.5], ms.float16), "mindspore.tensor": lambda x, k: ms.tensor(k) * x,
    "of Tensors": lambda x, k: Tensor([x.sum(), x.max()]) * k, "where": lambda x, k: ops.where(x > 1, x, k),
    "where, of integers": lambda x, k: ops.where(x > 1, Tensor([1, 2]), k), "clamp": lambda x, k: ops.clamp(Tensor([1, 5]), None, k),
    "maximum": lambda x, k: ops.maximum(Tensor([1, 5]), k), "select": lambda x, k: ops.select(x > 1, x, k),
    "full": lambda x, k: ops.full((2,), k), "full of float64": lambda x, k: ops.full((2,), k, dtype=ms.float64),
    "scalar_to_tensor": lambda x, k: ops.scalar_to_tensor(k), "arrays": lambda x, k: mnp.array([k, 1]),
    "lerp": lambda x, k: ops.lerp(x, x * 2, k),
    "of 0 axes": lambda x, k: ops.where(x[0] > 1, x[0].astype(ms.float16), k),
}


@pytest.mark.parametrize("how", CASES)
def test_tensors_created_from_numbers_that_are_inputs(how: str) -> None:
    class Makes(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.k: Any = 0.5

        def construct(self, x: Any) -> Any:
            return CASES[how](x, self.k)

    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net, shown = Makes(), []
        for k in (0.5, 1.5, 2.5, 3.1, 4.1, 1, 2, 3):
            net.k = k
            out = net(Tensor([1.0, 2.0]))
            shown.append((out.dtype, out.asnumpy().tolist()))
        results.append(shown)
    assert results[0] == results[1]


QUOTIENTS: dict[str, Callable[[Any], Any]] = {
    "/": lambda k: 1 / k, "//": lambda k: 5 // k, "%": lambda k: 5.5 % k, "/ of a sum": lambda k: k / (k - 1), "** -1": lambda k: k ** -1,
    "** 0.5": lambda k: (k - 1) ** 0.5, "** -0.5": lambda k: k ** -0.5,
}


@pytest.mark.parametrize("level", ["O0", pytest.param("O1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", QUOTIENTS)
def test_what_python_refuses_is_refused(how: str, level: str) -> None:
    class Divides(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.k: Any = 1

        def construct(self, x: Any) -> Any:
            return x * QUOTIENTS[how](self.k)

    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode, jit_config={"jit_level": level})
        net, shown = Divides(), []
        for k in (2.5, 3.5, 4.5, 0.0, 1.0, 5.5, 3, 4, 5, 0, 1, 6):
            net.k = k
            try:
                out: Any = net(Tensor([1.0, 2.0]))
                shown.append((out.dtype, np.round(out.asnumpy(), 5).tolist()))
            except ZeroDivisionError as error:
                shown.append(type(error))
        results.append(shown)
    ms.set_context(jit_config={"jit_level": "O0"})
    assert results[0] == results[1]


POWERS: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "10.0 ** k": (lambda k: 10.0 ** k, (1, 2, 3, 4, 400, -400)), "k ** 200.0": (lambda k: k ** 200.0, (1.0, 1.01, 1.02, 1.03, 1e10, -1e10)),
    "(-8.0) ** k": (lambda k: (-8.0) ** k, (1.0, 2.0, 3.0, 4.0, 0.5)), "0.0 ** k": (lambda k: 0.0 ** k, (1.0, 2.0, 3.0, 4.0, -1.0)),
    "7.5 % k": (lambda k: 1.0 if math.copysign(1.0, 7.5 % k) > 0 else 2.0, (1.5, 2.5, 3.5, 4.5, -1.5)),
}


@pytest.mark.parametrize("how", POWERS)
def test_powers_and_remainders_are_pythons(how: str) -> None:
    compute, values = POWERS[how]

    def scaled(x: Any, k: Any) -> Any:
        return x * compute(k)

    results = []
    for run in (scaled, ms.jit(scaled)):
        shown: list[Any] = []
        for k in values:
            try:
                shown.append(run(Tensor([1.0, 2.0]), k).asnumpy().tolist())
            except (OverflowError, ZeroDivisionError, TypeError) as error:
                shown.append(type(error))
        results.append(shown)
    assert results[0] == results[1]


TAKE_TENSORS: dict[str, Callable[[Any, Any], Any]] = {
    "outer": lambda x, k: ops.outer(x, k), "inner": lambda x, k: ops.inner(x, k),
    "lerp of integers": lambda x, k: ops.lerp(Tensor([1]), Tensor([2]), k),
    "soft_margin_loss": lambda x, k: ops.soft_margin_loss(x, k),
}


@pytest.mark.parametrize("how", TAKE_TENSORS)
def test_a_number_is_no_tensor(how: str) -> None:
    compute = TAKE_TENSORS[how]
    for k in (ms.mutable(1.5), 1.5):
        for run in (compute, ms.jit(compute)):
            with pytest.raises(TypeError):
                run(Tensor([1.0, 2.0]), k)


def test_a_number_with_integers_loses_its_fraction() -> None:
    def scaled(x: Any, k: Any) -> Any:
        return ops.addcmul(x, x, x, k)

    for k in (1.5, 2.5, 3.5, 4.5):                                          # MindSpore 2.10: [2 6 12] of 1.5
        for run in (scaled, ms.jit(scaled)):
            out = run(Tensor([1, 2, 3]), k)
            assert out.dtype == ms.int64 and out.asnumpy().tolist() == [1 + int(k), 2 + 4 * int(k), 3 + 9 * int(k)]


def test_a_marked_int_is_an_int() -> None:
    assert ops.padding(Tensor([[1.0]]), ms.mutable(3)).shape == (1, 3)


def summed(t: Any, y: Any) -> Any:
    total = 0
    for i in range(3):
        if t > i:
            total = total + t
    return total


def counted(t: Any, y: Any) -> Any:
    total = 0
    while t > 0:
        total = total + t
        t = t - 1
    return total


def by_return(t: Any, y: Any) -> Any:
    if t > 0:
        return 1
    return t


EITHER: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda t, y: t and 1, "or": lambda t, y: t or 1, "chosen": lambda t, y: 1 if t > 0 else t,
    "beside int8": lambda t, y: (t and 1) * y, "in a list": lambda t, y: [t and 1, t],
    "beside a number": lambda t, y: (1.5 if t > 0 else t) / 2, "summed": summed, "counted": counted, "returned": by_return,
    "max": lambda t, y: max(t, 1.0), "its negative": lambda t, y: y * (2 if t > 0 else t.astype(ms.int64)),
}


@pytest.mark.parametrize("how", EITHER)
def test_a_tensor_or_a_number(how: str) -> None:
    def seen(value: Any) -> Any:
        if isinstance(value, list):
            return [seen(item) for item in value]
        return type(value), getattr(value, "dtype", None), np.array(value).tolist()

    compute, y = EITHER[how], Tensor(np.array([1, 2], np.int8))
    compiled = ms.jit(compute)
    for value in (1.0, 0.0, -1.0, 2.0):
        t = Tensor(value, ms.float32)
        assert seen(compiled(t, y)) == seen(compute(t, y))


def test_a_count_that_is_at_least_one_stays_in_the_graph() -> None:
    @ms.jit
    def mean(x: Any) -> Any:
        return x.sum() / max((x > 0).sum(), 1)

    for value, expected in (([1.0, 3.0], 2.0), ([-1.0, -2.0], -3.0), ([-1.0, 3.0], 2.0)):
        assert float(mean(Tensor(value))) == expected
    assert len(torchspore.graphs(mean)) == 1


def test_a_tensor_or_a_number_that_makes_no_difference_stays_in_the_graph() -> None:
    @ms.jit
    def scaled(x: Any) -> Any:
        total = 0.0
        if x.sum() > 1:
            total = total + x.sum()
        return x + total * x if total > 2 else x - total * x

    for value in ([1.0, 2.0], [-1.0, 0.0], [1.0, 0.5]):
        x = Tensor(value)
        total = x.sum() if x.sum() > 1 else 0.0
        assert scaled(x).asnumpy().tolist() == (x + total * x if total > 2 else x - total * x).asnumpy().tolist()
    assert len(torchspore.graphs(scaled)) == 1
