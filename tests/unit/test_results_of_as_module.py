"""Results of `torchspore.as_module` of any type, and Cells that override `__call__`."""
from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn

import torchspore


@dataclasses.dataclass(frozen=True)
class Frozen:
    values: Any
    size: int = 3


class Pair(NamedTuple):
    first: Any
    second: Any


class Holder:
    def __init__(self, values: Any) -> None:
        self.values = [values, {"size": 3}]


class Net(nn.Cell):
    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self.dense, self.make = nn.Dense(3, 3), make

    def construct(self, x: Any) -> Any:
        return self.make(self.dense(x) ** 2)


RESULTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a dataclass": (Frozen, lambda result: result.values), "an object": (Holder, lambda result: result.values[0]),
    "a named tuple": (lambda x: Pair(x, 1), lambda result: result.first),
    "a dict": (lambda x: collections.OrderedDict(x=[x, None, "text"]), lambda result: result["x"][0]),
}


@pytest.mark.parametrize("case", RESULTS)
def test_gradients_of_results(case: str) -> None:
    make, read = RESULTS[case]
    net, x = Net(make), np.random.default_rng(0).standard_normal((2, 3), np.float32)
    module = torchspore.as_module(net)
    result = read(module(torch.from_numpy(x)))
    assert type(result) is torch.Tensor
    result.sum().backward()
    expected, = ms.grad(lambda t: read(net(t)).sum(), None, [net.dense.weight])(Tensor(x))
    assert np.array_equal(module.dense.weight.grad.numpy(), expected.asnumpy())
    assert type(make(net.dense(Tensor(x)))) is type(module(torch.from_numpy(x)))


@pytest.mark.parametrize("make", [lambda x: {x}, lambda x: (x for _ in range(2)), lambda x: lambda: x, lambda x: collections.deque([x])])
def test_results_whose_tensors_cannot_be_replaced(make: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="as_module of Net: the result has a value of type"):
        torchspore.as_module(Net(make))(torch.ones(2, 3))


class Calls(nn.Cell):
    def __init__(self, inner: nn.Cell) -> None:
        super().__init__()
        self.inner = inner

    def construct(self, x: Any) -> Any:
        return self.inner(x)

    def __call__(self, x: Any) -> Any:
        return super().__call__(x) * 3 + 1


def test_a_call_that_a_class_overrides() -> None:
    net = Calls(Calls(nn.Dense(3, 3)))
    module, x = torchspore.as_module(net), np.random.default_rng(0).standard_normal((2, 3), np.float32)
    expected = net(Tensor(x)).asnumpy()
    assert np.array_equal(module(torch.from_numpy(x)).detach().numpy(), expected)
    calls: list[int] = []
    for number, part in enumerate((module, module.inner)):
        part.register_forward_hook(lambda *_, number=number: calls.append(number))
    assert np.array_equal(module(torch.from_numpy(x)).detach().numpy(), expected) and calls == [1, 0]
    compiled = torch.compile(torchspore.as_module(net), backend="eager")
    assert np.array_equal(compiled(torch.from_numpy(x)).detach().numpy(), expected)
