"""Arguments that are at times what the program's state holds too: each call means what it means in PyNative."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import pytest
from mindspore import nn


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class Holder(nn.Cell):
    """Holds Tensors in an attribute, a list and a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.own, self.row, self.named = ms.Tensor([1.0]), [ms.Tensor([2.0])], {"a": ms.Tensor([3.0])}


class Sums(Holder):
    def construct(self, x: Any) -> Any:
        return x + 10 * self.own + 100 * self.row[0] + 1000 * self.named["a"]


class Compares(Holder):
    def construct(self, x: Any) -> Any:
        return x * (2 if x is self.own else 3) * (5 if x is self.row[0] else 7) * (11 if any(x is v for v in self.named.values()) else 13)


def results(made: type[Holder], mode: int, order: str) -> list[float]:
    ms.set_context(mode=mode)
    net, found = made(), []
    given: dict[str, Callable[[], Any]] = {
        "own": lambda: net.own, "row": lambda: net.row[0], "named": lambda: net.named["a"], "new": lambda: ms.Tensor([4.0]),
    }
    for name in order.split():
        if name == "swap":
            net.own, net.row[0] = net.row[0], net.own
        else:
            found.append(float(net(given[name]())))
    return found


@pytest.mark.parametrize("order", ["own new row new named new", "new own row named", "row new own swap own row new swap row own"])
@pytest.mark.parametrize("made", [Sums, Compares])
def test_a_tensor_of_the_state_as_an_argument(made: type[Holder], order: str) -> None:
    assert results(made, ms.GRAPH_MODE, order) == results(made, ms.PYNATIVE_MODE, order)


def test_calls_with_state_and_without_have_a_graph_each() -> None:
    from mindspore import ops

    from torchspore.engine.graph import dispatch

    ms.set_context(mode=ms.GRAPH_MODE)
    net = Sums()
    for _ in range(4):
        assert float(net(net.row[0])) == 3212.0 and float(net(ops.ones(1))) == 3211.0
    assert [graph.runs for graph in dispatch.graphs(net)] == [4, 4]
