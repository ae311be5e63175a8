"""torch's transforms, Parameters and Modules with values of MindSpore: the errors name to_torch and as_module."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from mindspore import Tensor, nn

import torchspore

X = Tensor([1.0, 2.0])
DEVICE = torchspore.to_torch(X).device
DENSE = nn.Dense(2, 2)

CALLS: dict[str, Callable[[], Any]] = {
    "vmap": lambda: torch.vmap(torch.sin)(X),
    "vmap of a Cell": lambda: torch.vmap(DENSE)(torch.ones(3, 2, device=DEVICE)),
    "grad": lambda: torch.func.grad(lambda a: torch.sin(a).sum())(X),
    "grad of a Cell": lambda: torch.func.grad(lambda a: DENSE(a).sum())(torch.ones(1, 2, device=DEVICE)),
    "grad_and_value": lambda: torch.func.grad_and_value(lambda a: torch.sin(a).sum())(X),
    "vjp": lambda: torch.func.vjp(torch.sin, X),
    "jvp": lambda: torch.func.jvp(torch.sin, (X,), (X,)),
    "jacrev": lambda: torch.func.jacrev(torch.sin)(X),
    "jacfwd": lambda: torch.func.jacfwd(torch.sin)(X),
    "hessian": lambda: torch.func.hessian(lambda a: torch.sin(a).sum())(X),
    "linearize": lambda: torch.func.linearize(torch.sin, X),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_transform_of_torch_names_to_torch_and_as_module(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"^torch\.func\.\w+ of a Tensor or a Cell of MindSpore: expected torch tensors") as caught:
        call()
    assert "write torchspore.to_torch(x) for a Tensor, torchspore.as_module(cell) for a Cell" in str(caught.value)


def test_torchs_transforms_are_unchanged_for_torch_tensors() -> None:
    t = torch.tensor([1.0, 2.0], device=DEVICE)
    assert torch.equal(torch.vmap(torch.sin)(t), t.sin())
    assert torch.equal(torch.func.grad(lambda a: a.sin().sum())(t), t.cos())
    gradients = torch.vmap(torch.func.grad(lambda a, x: a * torch.sum(x)), in_dims=(0, None))(t, X)
    assert torch.equal(gradients, torch.full((2,), 3.0, device=DEVICE))
    assert torch.equal(torch.func.vjp(torch.sin, t)[1](torch.ones(2, device=DEVICE))[0], t.cos())
    with pytest.raises(ValueError, match="We cannot vmap over non-Tensor arguments"):
        torch.vmap(torch.sin)(1.0)
    compiled = torch.compile(lambda a: torch.vmap(torch.func.grad(torch.sin))(a), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(t), t.cos())


@pytest.mark.parametrize("call", [
    lambda: torch.optim.SGD(DENSE.parameters(), 0.1), lambda: torch.func.functional_call(DENSE, {}, (torch.ones(1, 2, device=DEVICE),)),
    lambda: DENSE.eval(),
])
def test_an_attribute_of_modules_names_as_module(call: Callable[[], Any]) -> None:
    with pytest.raises(AttributeError, match=r"hint: torch Modules have it: write torchspore\.as_module\(cell\)\."):
        call()


def test_a_parameter_of_torch_shares_the_memory_of_a_tensor() -> None:
    x = Tensor([1.0, 2.0])
    module = torch.nn.Linear(2, 1)
    module.scale = torch.nn.Parameter(x)
    assert "scale" in dict(module.named_parameters()) and type(module.scale) is torch.nn.Parameter
    assert module.scale.data_ptr() == torchspore.to_torch(x).data_ptr()
