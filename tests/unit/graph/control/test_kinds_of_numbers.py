"""Ints and floats that a graph takes as inputs stay what they are in Python: Tensors take the one otherwise than the other."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import pytest
from mindspore import Tensor, nn


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

    found = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net, shown = Scales(), []
        for k in (0.5, 2.5, 3.5, 4.5, 0.0):
            for x in (Tensor([4.0, 1.0]), Tensor([-1.0, -1.0])):
                *tensors, number = net(x, k)
                shown.append([(t.dtype, t.asnumpy().tolist()) for t in tensors] + [(type(number), number)])
        found.append(shown)
    assert found[0] == found[1]
