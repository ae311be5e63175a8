"""What Cells hold, in two places at once, or changed past their attributes: each call means what it means in PyNative."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def dense(weight: str = "ones", bias: str = "zeros") -> Any:
    return nn.Dense(2, 2, weight_init=weight, bias_init=bias)


class Twice(nn.Cell):
    """One Tensor in an attribute and in a list, a tuple, a dict and an object."""

    def __init__(self) -> None:
        super().__init__()

        class Plain:
            def __init__(self, value: Any) -> None:
                self.value = value

        self.own = Tensor([1.0])
        self.row, self.pair, self.named, self.plain = [self.own], (self.own, 2), {"a": [self.own]}, Plain(self.own)

    def construct(self, x: Any) -> Any:
        return x + 10 * self.own + 100 * self.row[0] + 1000 * self.pair[0] + 10000 * self.named["a"][0] + 100000 * self.plain.value


class Tied(nn.Cell):
    """One Parameter in an attribute and in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(Tensor([1.0]), name="weight")
        self.weights = [self.weight]

    def construct(self, x: Any) -> Any:
        return (x * self.weight + 10 * x * self.weights[0]).sum()


class Deep(nn.Cell):
    """Cells in Cells, and all their Parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.rest, self.scale = dense(), nn.CellList([nn.ReLU()]), Parameter(Tensor([1.0, 1.0]), name="scale")

    def construct(self, x: Any) -> Any:
        y = self.first(x) * self.scale
        for cell in self.rest:
            y = cell(y)
        return y, sum((p.sum() for p in self.get_parameters()), x.sum()), [name for name, _ in self.parameters_and_names()]


class Trainable(Deep):
    def construct(self, x: Any) -> Any:
        return sum((p.sum() for p in self.trainable_params()), x.sum()), list(self.first.parameters_dict())


def frozen(is_frozen: bool) -> Callable[[Any], None]:
    return lambda net: setattr(net.first.weight, "requires_grad", not is_frozen)


CHANGES: dict[str, tuple[type[nn.Cell], list[Callable[[Any], Any]]]] = {
    "a Tensor in two places": (Twice, [
        lambda net: setattr(net, "own", Tensor([2.0])), lambda net: net.row.__setitem__(0, net.own),
        lambda net: setattr(net, "own", net.pair[0]), lambda net: setattr(net.plain, "value", Tensor([3.0])),
    ]),
    "a Parameter in two places": (Tied, [
        lambda net: setattr(net, "weight", Parameter(Tensor([2.0]), name="other")), lambda net: net.weights.__setitem__(0, net.weight),
    ]),
    "Parameters that are put in": (Deep, [
        lambda net: setattr(net.first, "more", Parameter(Tensor([3.0]), name="more")),
        lambda net: net.first.insert_param_to_cell("most", Parameter(Tensor([4.0]), name="most")),
        lambda net: net.insert_param_to_cell("scale", Parameter(Tensor([5.0, 6.0]), name="scale")),
        lambda net: setattr(net.first, "bias", None), lambda net: delattr(net.first, "more"),
    ]),
    "dicts of Cells": (Deep, [
        lambda net: net._cells.__setitem__("first", dense("zeros", "ones")),
        lambda net: net.first._params.__setitem__("bias", Parameter(Tensor([7.0, 7.0]), name="bias")),
        lambda net: net.rest._cells.__setitem__("1", nn.Sigmoid()), lambda net: net.rest._cells.pop("0"),
        lambda net: net._params.update(scale=Parameter(Tensor([2.0, 2.0]), name="scale")), lambda net: net.rest._cells.clear(),
    ]),
    "flags and names": (Trainable, [
        frozen(True), frozen(False), lambda net: setattr(net.first.weight, "name", "new"), frozen(True),
        lambda net: net.update_parameters_name("a."),
    ]),
}


def plain(value: Any) -> Any:
    return value.asnumpy().tolist() if isinstance(value, Tensor) else list(map(plain, value)) if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize("what", CHANGES)
def test_changes_between_calls_are_seen(what: str) -> None:
    net_class, changes = CHANGES[what]
    results = []
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        net, shown = net_class(), []
        for change in [lambda net: None, *changes]:
            change(net)
            shown += [plain(net(Tensor(np.float32([[1.0, -2.0]])))) for _ in range(2)]
        results.append(shown)
    assert results[0] == results[1]
    assert len({str(value) for value in results[0]}) > 1 + len(changes) // 2
