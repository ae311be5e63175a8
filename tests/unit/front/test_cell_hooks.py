"""Hooks on the gradients that pass a Cell, and gradients of its own Parameters, in both modes; numbers measured on 2.10."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import pytest
from mindspore import Parameter, Tensor, nn, ops

MODES = pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])


class Net(nn.Cell):
    """Twice a layer of ones."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Dense(2, 2, weight_init="ones", bias_init="zeros")

    def construct(self, x: Tensor) -> Tensor:
        return self.layer(x) * 2


@MODES
def test_a_backward_hook_sees_the_gradient_of_what_the_pre_hooks_gave(mode: int) -> None:
    ms.set_context(mode=mode)
    net, seen = Net(), []
    net.layer.register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 2,))
    net.layer.register_forward_hook(lambda cell, inputs, output: output + 1)
    net.layer.register_backward_hook(lambda cell, after, before: seen.append((after, before)))
    for _ in range(2):
        assert ops.grad(net)(Tensor([[1.0, 2.0]])).asnumpy().tolist() == [[8.0, 8.0]]
    assert [[g[0].asnumpy().tolist() for g in pair] for pair in seen] == [[[[4.0, 4.0]], [[2.0, 2.0]]]] * 2


@MODES
def test_a_bprop_gives_gradients_of_parameters_too(mode: int) -> None:
    class CustomBprop(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Parameter(Tensor(3.0), name="weight")
            self.other = Parameter(Tensor(5.0), name="other")
            self.internal_params = [self.weight, self.other]

        def construct(self, x: Tensor) -> Tensor:
            return self.weight * x * self.other

        def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> Any:
            return (x * dout,), {self.weight: out * 0 + 7}

    ms.set_context(mode=mode)
    net = CustomBprop()
    both = ops.GradOperation(get_all=True, get_by_list=True)(net, net.trainable_params())(Tensor(2.0))
    assert [float(g) for g in both[0]] == [2.0] and [float(g) for g in both[1]] == [7.0, 0.0]
