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


def results(holder: type[Holder], mode: int, order: str) -> list[float]:
    ms.set_context(mode=mode)
    net, outputs = holder(), []
    accesses: dict[str, Callable[[], Any]] = {
        "own": lambda: net.own, "row": lambda: net.row[0], "named": lambda: net.named["a"], "new": lambda: ms.Tensor([4.0]),
    }
    for name in order.split():
        if name == "swap":
            net.own, net.row[0] = net.row[0], net.own
        else:
            outputs.append(float(net(accesses[name]())))
    return outputs


@pytest.mark.parametrize("order", ["own new row new named new", "new own row named", "row new own swap own row new swap row own"])
@pytest.mark.parametrize("holder", [Sums, Compares])
def test_a_tensor_of_the_state_as_an_argument(holder: type[Holder], order: str) -> None:
    assert results(holder, ms.GRAPH_MODE, order) == results(holder, ms.PYNATIVE_MODE, order)


def test_calls_with_state_and_without_have_a_graph_each() -> None:
    from mindspore import ops

    from torchspore.graph import dispatch

    ms.set_context(mode=ms.GRAPH_MODE)
    net = Sums()
    for _ in range(4):
        assert float(net(net.row[0])) == 3212.0 and float(net(ops.ones(1))) == 3211.0
    assert [graph.runs for graph in dispatch.graphs(net)] == [4, 4]


class Identity(nn.Cell):
    """Asks whether what it is given is one thing, and gives it back."""

    def __init__(self) -> None:
        super().__init__()
        self.own = [1, 2]

    def construct(self, x: Any, a: Any, b: Any) -> Any:
        return x * (2 if a is b else 3) * (5 if a is self.own else 7) * (11 if id(a) == id(self.own) else 13), a


@pytest.mark.parametrize("kind", [list, tuple, dict], ids=lambda kind: kind.__name__)
def test_containers_are_one_or_two(kind: Any) -> None:
    outputs = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net, shown = Identity(), []
        items, other = ([(1, 2), (3, 4)], [(1, 2), (3, 4)])
        container, equal = (dict(items), dict(other)) if kind is dict else (kind(items), kind(other))
        net.own = container
        for a, b in ((container, container), (container, equal), (equal, equal), (equal, container), (container, container)):
            value, back = net(ms.Tensor([1.0]), a, b)
            shown.append((float(value), back is a))
        outputs.append(shown)
    assert outputs[0] == outputs[1] and all(is_unchanged for _, is_unchanged in outputs[1])


def test_comparisons_with_constants_and_classes_are_single_graphs() -> None:
    import enum

    from torchspore.graph import dispatch

    class Mode(enum.Enum):
        TRAIN, EVAL = 1, 2

    class Asks(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.mode = Mode.TRAIN

        def construct(self, x: Any, rows: Any, scale: Any = None) -> Any:
            y = x if scale is None else x * scale
            return y * len(rows) if self.mode is Mode.TRAIN and type(rows) is list and x.shape is not True else y

    ms.set_context(mode=ms.GRAPH_MODE)
    net = Asks()
    assert [float(net(ms.Tensor([1.0]), [1, 2])) for _ in range(3)] == [2.0, 2.0, 2.0]
    assert [graph.runs for graph in dispatch.graphs(net)] == [3]
