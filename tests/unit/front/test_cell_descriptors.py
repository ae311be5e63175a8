"""What a class says itself of its attributes (properties, other descriptors, slots) holds for Cells too, in both modes."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn


@pytest.fixture(autouse=True)
def _modes() -> Iterator[None]:
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


class StoringDescriptor:
    """A descriptor that keeps its value under another name, or gives 2."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_" + name

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return owner.__dict__.get(self.name, 2.0)

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__[self.name] = value


class Described(nn.Cell):
    k = StoringDescriptor()

    def construct(self, x):
        return x * self.k


class Slotted(nn.Cell):
    __slots__ = ("k",)

    def construct(self, x):
        return x * self.k


class Sets(nn.Cell):
    __slots__ = ("k",)

    def construct(self, x):
        self.k = x.sum()
        return x * self.k


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("kind", [Described, Slotted, Sets])
def test_descriptors_and_slots(kind: Any, mode: int) -> None:
    ms.set_context(mode=mode)
    net = kind()
    for k in (3.0, 3.0, 5.0):
        net.k = k
        assert net(Tensor([1.0, 2.0])).asnumpy().tolist() == ([3.0, 6.0] if kind is Sets else [k, 2 * k])
    if kind is Slotted:
        del net.k
        assert not hasattr(net, "k")


class Taken(nn.Cell):
    k = StoringDescriptor()
    relu = None

    def act(self, x):
        return x

    @property
    def q(self):
        return 1

    @q.deleter
    def q(self):
        self.deleted = True


@pytest.mark.parametrize("name", ["k", "relu", "act", "q"])
@pytest.mark.parametrize("value", [nn.ReLU(), Parameter(Tensor(np.ones(1, np.float32)), name="p")])
def test_a_name_that_the_class_has_is_taken(name: str, value: Any) -> None:
    with pytest.raises(KeyError, match=f"Taken.{name} exists already"):
        setattr(Taken(), name, value)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
def test_a_cell_hides_a_method_that_older_versions_lack(mode: int) -> None:
    ms.set_context(mode=mode)

    class Agent(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.buffers = nn.Dense(2, 2, "ones", has_bias=False)
            self.register_buffer("count", Tensor([7.0]))

        def construct(self, x: Any) -> Any:
            return self.buffers(x) + self.count

    net = Agent()
    assert net(Tensor(np.ones((1, 2), np.float32))).asnumpy().tolist() == [[9.0, 9.0]]
    assert [name for name, _ in net.named_buffers()] == ["count"]
    assert list(net.state_dict()) == ["count", "buffers.weight"]
    assert [float(value) for value in nn.Cell.buffers(net)] == [7.0] and nn.Cell.buffers.__name__ == "buffers"


def test_a_property_is_deleted_as_it_says() -> None:
    net = Taken()
    del net.q
    assert net.deleted
