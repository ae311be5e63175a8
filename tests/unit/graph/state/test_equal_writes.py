"""What a call writes and what was there already are one: the graph must write all the same once something else is there."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn


@pytest.fixture(autouse=True)
def _graph_mode() -> Any:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def x(value: float = 1.0) -> Tensor:
    return Tensor(np.array([value, 2.0], np.float32))


class Net(nn.Cell):
    """Runs `step(self, a)`; what it holds is what steps write."""

    def __init__(self, step: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.name, self.count, self.held, self.other, self.step = "set", 5, Tensor([1.0]), Tensor([2.0]), step
        self.weight = Parameter(Tensor([1.0, 1.0]), name="weight")
        self.other = self.held

    def construct(self, a: Tensor) -> Tensor:
        return self.step(self, a)


def writes_constants(net: Any, a: Tensor) -> Tensor:
    net.name, net.count, net.training = "set", 5, False
    return a * net.weight


def writes_a_tensor_found_elsewhere(net: Any, a: Tensor) -> Tensor:
    net.other = net.held
    return a * net.weight


def writes_what_it_deletes(net: Any, a: Tensor) -> Tensor:
    net.passing = a * 2
    result = net.passing * net.weight
    del net.passing
    return result


def writes_as_a_tensor_decides(net: Any, a: Tensor) -> Tensor:
    if a.sum() > 2:
        net.name = "set"
    else:
        net.name = "reset"
    return a * net.weight + len(net.name)


def deletes(net: Any, a: Tensor) -> Tensor:
    if hasattr(net, "passing"):
        del net.passing
        return a
    return a * 2


STEPS = [writes_constants, writes_a_tensor_found_elsewhere, writes_what_it_deletes, writes_as_a_tensor_decides, deletes]


def _seen(step: Callable[[Any, Tensor], Tensor], mode: int) -> list[Any]:
    """Results and attributes over calls between which everything that steps write is given another value."""
    ms.set_context(mode=mode)
    net, result = Net(step), list[Any]()
    for turn, value in enumerate((1.0, 1.0, -1.0, -1.0, 2.0, -2.0, 1.0)):
        if turn > 1 and step is not writes_as_a_tensor_decides:
            net.name, net.count, net.held, net.passing, net.training = "other", turn, Tensor([float(turn)]), turn, True
        result += [net(x(value)).asnumpy().tolist(), net.name, net.count, net.other is net.held, hasattr(net, "passing"), net.training]
    return result


@pytest.mark.parametrize("step", STEPS)
def test_an_equal_write_is_a_write(step: Callable[[Any, Tensor], Tensor]) -> None:
    assert _seen(step, ms.GRAPH_MODE) == _seen(step, ms.PYNATIVE_MODE)


class Called:
    """An object that is called as a function is."""

    def __init__(self) -> None:
        self.width, self.widths, self.shift = 2.0, [3.0], Tensor([4.0])

    def __call__(self, a: Tensor) -> Tensor:
        return a * self.width * self.widths[0] + self.shift


@pytest.mark.parametrize("wrapped", [lambda called: called, functools.partial])
def test_an_object_that_is_compiled_is_looked_into(wrapped: Callable[[Any], Any]) -> None:
    called = Called()
    compiled = ms.jit(wrapped(called))
    for change in (lambda: None, lambda: vars(called).update(width=5.0), lambda: called.widths.append(called.widths.pop() + 1),
                   lambda: vars(called).update(shift=Tensor([7.0])), lambda: None):
        change()
        assert compiled(x()).asnumpy().tolist() == called(x()).asnumpy().tolist()


class Growing(nn.Cell):
    """Uses parts that come later."""

    def construct(self, a: Tensor) -> Tensor:
        if hasattr(self, "scale"):
            a = a * self.scale
        return self.part(a) if hasattr(self, "part") else a


def test_a_part_that_comes_later_is_seen() -> None:
    net = Growing()
    assert net(x()).asnumpy().tolist() == [1.0, 2.0]
    net.part = nn.ReLU()
    assert net(x(-1.0)).asnumpy().tolist() == [0.0, 2.0]
    net.scale = Parameter(Tensor([3.0, 4.0]), name="scale")
    assert net(x()).asnumpy().tolist() == [3.0, 8.0]
    del net.part
    assert net(x(-1.0)).asnumpy().tolist() == [-3.0, 8.0]
