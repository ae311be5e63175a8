"""Classes registered with abstract classes: those that a trace may have asked for make a new graph, those of later imports do not."""
from __future__ import annotations

import abc
import collections.abc
import sys
import types
from collections.abc import Iterator

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn

from torchspore.graph import dispatch
from torchspore.graph.capture.ambient_state.introspection import Registrations


class Scaling(abc.ABC):  # noqa: B024
    """An abstract class of a program."""


class Twice:
    factor = 2.0


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.twice = Twice()

    def construct(self, x):
        return x * (self.twice.factor if isinstance(self.twice, (Scaling, collections.abc.Sequence)) else 3.0)


@pytest.fixture(autouse=True)
def in_graph_mode() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


X = Tensor(np.ones(2, np.float32))


def test_classes_of_later_imports_do_not_count() -> None:
    net = Net()
    net(X)
    for number in range(3):
        library = types.ModuleType(f"later_library_{number}")
        sys.modules[library.__name__] = library
        collections.abc.Sequence.register(type("Sequence", (), {"__module__": library.__name__}))
        net(X)
    assert [graph.runs for graph in dispatch.graphs(net)] == [4]


def test_a_class_that_the_trace_knew_counts() -> None:
    net = Net()
    assert net(X).asnumpy()[0] == 3
    Scaling.register(Twice)
    assert net(X).asnumpy()[0] == 2


def test_a_class_registered_with_a_subclass_counts() -> None:
    class Base(abc.ABC):  # noqa: B024
        pass

    class Derived(Base):
        pass

    class Late:
        pass

    registrations = Registrations(Base)
    before = registrations.get("")
    Derived.register(Late)
    after = registrations.get("")
    assert after is not before
    assert after == {(Derived, Late)}
    assert registrations.get("") is after
