"""Operators that call torch's function directly for float32 compute what their bodies compute."""
from __future__ import annotations

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, ops

from torchspore.mindspore.ops.declaration.declare import OPERATORS

SPECIAL = np.array([[-0.0, 0.0, np.nan, np.inf], [-np.inf, 1.5, -2.5, 1e-40], [3.0, -1.0, 1e38, -1e38], [0.5, 2.0, -0.5, 7.0]], np.float32)
VALUES = {
    "special values": torch.from_numpy(SPECIAL), "transposed": torch.from_numpy(SPECIAL).t(), "no elements": torch.zeros(0, 0),
    "a vector": torch.tensor([1.0, -2.0, 3.0]), "float64": torch.from_numpy(SPECIAL).double(), "float16": torch.eye(3).half(),
}
PLAIN = ("matmul", "relu")


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("values", VALUES)
def test_the_direct_call_computes_what_the_body_computes(name: str, values: str) -> None:
    operator, t = OPERATORS[name], VALUES[values]
    operands = [t, t] if name == "matmul" else [t]
    expected = operator.body(*operands)
    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        out = ms.jit(lambda *x: operator.function(*x))(*(ms.Tensor(o.numpy()) for o in operands))
        assert out.dtype == ms.Tensor(expected.numpy()).dtype and np.array_equal(out.asnumpy(), expected.numpy(), equal_nan=True)


@pytest.mark.parametrize("call", [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * 2, lambda x, y: 2 - x, lambda x, y: ops.maximum(x, y),
    lambda x, y: x.reshape(2, -1), lambda x, y: x.reshape((4,)), lambda x, y: ops.cat((x, y)), lambda x, y: ops.cat([x, y], 0),
    lambda x, y: ops.matmul(x, y), lambda x, y: ops.relu(x),
])
def test_gradients_pass_through_the_short_paths(call) -> None:
    """Intermediate results, the argument itself twice, a nested gradient, and a Parameter."""
    x, y = Tensor([1.0, -2.0, 3.0, 0.5]), Tensor([2.0, 2.0, -1.0, 1.0])
    weight = ms.Parameter(Tensor([0.5, 1.5, 2.0, -1.0]), name="weight")
    a, b, w = (torch.tensor(t.asnumpy(), requires_grad=True) for t in (x, y, weight))

    def compute(call, x, y, weight):
        first = call(x * weight, y)
        return (first * first).sum() + call(x, x).sum()

    expected = torch.autograd.grad(compute(_torch_form(call), a, b, w), (a, b, w), allow_unused=True)
    gradients = ms.grad(lambda x, y: compute(call, x, y, weight), (0, 1), [weight])(x, y)
    for mine, theirs in zip((*gradients[0], *gradients[1]), expected):
        np.testing.assert_allclose(mine.asnumpy(), np.zeros(4) if theirs is None else theirs.numpy(), rtol=1e-6)


def _torch_form(call):
    """Return the call with torch's functions for those of `ops`."""
    return type(call)(call.__code__, {**call.__globals__, "ops": torch})
