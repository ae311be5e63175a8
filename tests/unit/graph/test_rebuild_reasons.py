"""`explain` names the guard that failed when a graph is rebuilt, with the old and the new value."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn

from torchspore.context import effects

FACTOR = 2.0


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.form, self.bias, self.sizes = "plain", Tensor(np.ones(4, np.float32)), [1, 2]
        self.weight = Parameter(Tensor(np.ones(4, np.float32)), name="weight")

    def construct(self, x, times=None, other=None):
        x = x * FACTOR + self.bias * self.weight + len(self.sizes)
        if times is not None:
            x = x.reshape((times, -1))
        return x if self.form == "plain" else -x


@pytest.fixture(autouse=True)
def in_graph_mode() -> Iterator[None]:
    ms.set_context(mode=ms.GRAPH_MODE)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


def tensor(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.ones(shape, dtype))


def set_factor(value: float) -> None:
    global FACTOR
    FACTOR = value


CHANGES: dict[str, tuple[Callable[[Net], Any], str]] = {
    "attribute": (lambda net: setattr(net, "form", "signed"), "the attribute 'form' changed from 'plain' to 'signed'"),
    "attribute_without_text": (lambda net: net.sizes.append(3), "the attribute 'sizes' changed"),
    "deleted": (lambda net: (delattr(net, "form"), setattr(type(net), "form", "plain")),
                "the attribute 'form' changed from 'plain' to nothing"),
    "global": (lambda net: set_factor(3.0), "the variable 'FACTOR' changed from 2.0 to 3.0"),
    "dtype_of_a_tensor": (lambda net: setattr(net, "bias", tensor(4, dtype=np.float16)),
                          "the Tensor 'bias' changed from Float32[4] to Float16[4]"),
    "option": (lambda net: ms.set_context(grad_for_scalar=True), "the option grad_for_scalar changed from False to True"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changed_is_named(name: str) -> None:
    change, expected = CHANGES[name]
    net = Net()
    net(tensor(2, 4))
    try:
        change(net)
        net(tensor(2, 4))
    finally:
        set_factor(2.0)
        ms.set_context(grad_for_scalar=False)
    assert effects.notes()["graphs"][-1].partition("again because ")[2] == expected


CALLS: dict[str, tuple[Callable[[Net], Any], Callable[[Net], Any], str]] = {
    "shape": (lambda net: net(tensor(2, 4)), lambda net: net(tensor(3, 4)), "argument 1 changed from Float32[2, 4] to Float32[3, 4]"),
    "dtype": (lambda net: net(tensor(2, 4)), lambda net: net(tensor(2, 4, dtype=np.int32)),
              "argument 1 changed from Float32[2, 4] to Int32[2, 4]"),
    "strides": (lambda net: net(tensor(4, 4)), lambda net: net(tensor(4, 4).T),
                "argument 1, Float32[4, 4], has other strides or another device"),
    "text": (lambda net: net(tensor(2, 4), None, "a"), lambda net: net(tensor(2, 4), None, "b"), "argument 3 changed from 'a' to 'b'"),
    "number": (lambda net: net(tensor(2, 4), 2), lambda net: net(tensor(2, 4), 4), "a number among the arguments changed from 2 to 4"),
    "count": (lambda net: net(tensor(2, 4)), lambda net: net(tensor(2, 4), None), "the number of arguments changed from 1 to 2"),
    "keyword": (lambda net: net(tensor(2, 4), other="a"), lambda net: net(tensor(2, 4), other="b"),
                "argument 'other' changed from 'a' to 'b'"),
    "keywords": (lambda net: net(tensor(2, 4), other="a"), lambda net: net(tensor(2, 4), times=2),
                 "the keyword arguments changed from (other) to (times)"),
    "nested": (lambda net: net(tensor(2, 4), None, (1, tensor(2))), lambda net: net(tensor(2, 4), None, (1, tensor(3))),
               "argument 3[1] changed from Float32[2] to Float32[3]"),
}


@pytest.mark.parametrize("name", CALLS)
def test_which_argument_differs_is_named(name: str) -> None:
    first, second, expected = CALLS[name]
    net = Net()
    first(net)
    second(net)
    assert effects.notes()["graphs"][-1].partition("again because ")[2] == expected
