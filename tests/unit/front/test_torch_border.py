"""Torch functions inside MindSpore's gradients: the gradient flows through them, and what would lose one raises."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

import torchspore

X = Tensor([0.0, 1.0, 2.0])
COSINE = np.cos([0.0, 1.0, 2.0]).astype(np.float32)


def sine(a: Any) -> Any:
    return Tensor.from_torch(torch.sin(a.torch()))


@pytest.mark.parametrize("back", [
    Tensor.from_torch, Tensor, lambda t: Tensor(t, ms.float64), lambda t: Tensor.from_torch(t).astype(ms.float64),
])
def test_a_torch_function_carries_the_gradient(mode: int, back: Callable[[Any], Any]) -> None:
    gradient = ms.grad(lambda a: back(torch.sin(a.torch())).sum())(X)
    assert gradient.dtype == ms.float32
    np.testing.assert_allclose(gradient.asnumpy(), COSINE, rtol=1e-6)


def test_every_transform(mode: int) -> None:
    np.testing.assert_allclose(ms.grad(ms.grad(lambda a: sine(a).sum()))(X).asnumpy(), -np.sin([0, 1, 2]), rtol=1e-6)
    np.testing.assert_allclose(ms.jvp(sine, X, Tensor([1.0, 1.0, 1.0]))[1].asnumpy(), COSINE, rtol=1e-6)
    np.testing.assert_allclose(ms.vjp(sine, X)[1](Tensor([1.0, 1.0, 1.0]))[0].asnumpy(), COSINE, rtol=1e-6)
    for jacobian in (ms.jacrev, ms.jacfwd):
        np.testing.assert_allclose(jacobian(sine)(X).asnumpy(), np.diag(COSINE), atol=1e-7)


def test_a_cell_and_its_recorded_forward_pass(mode: int) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(3, 3)

        def construct(self, a: Any) -> Any:
            return sine(self.dense(a))

    net = Net().set_grad()
    x = X.reshape(1, 3)
    expected = torch.nn.functional.linear(x.torch(), net.dense.weight.torch(), net.dense.bias.torch()).cos()[0].numpy()
    gradients = ms.grad(lambda a: net(a).sum(), None, net.trainable_params())(x)
    np.testing.assert_allclose(gradients[1].asnumpy(), expected, rtol=1e-5)
    net(x)
    np.testing.assert_allclose(ms.grad(net, None, net.trainable_params())(x)[1].asnumpy(), expected, rtol=1e-5)


def test_a_frozen_torch_module_passes_the_gradient_on(mode: int) -> None:
    module = torch.nn.Linear(3, 2).requires_grad_(False)
    gradient = ms.grad(lambda a: Tensor.from_torch(module(a.torch())).sum())(X)
    np.testing.assert_allclose(gradient.asnumpy(), module.weight.sum(0).numpy(), rtol=1e-6)


@pytest.mark.parametrize(("compute", "what"), [
    (lambda a: Tensor.from_torch(torch.nn.Linear(3, 2)(a.torch())).sum(), "the torch Parameter of shape"),
    (lambda a: (Tensor.from_torch(torch.ones(3, requires_grad=True)) * a).sum(), "the torch Tensor of shape [3]"),
])
def test_a_torch_parameter_that_would_get_no_gradient_raises(mode: int, compute: Callable[[Any], Any], what: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        ms.grad(compute)(X)
    assert f"Tensor.from_torch: a result of {what}" in str(caught.value)
    assert "hint: call requires_grad_(False) on the torch Module, or take the gradient with torch.autograd." in str(caught.value)


@pytest.mark.parametrize("leave", [torch.from_dlpack, Tensor.to_dlpack])
def test_dlpack_cannot_carry_a_gradient(mode: int, leave: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError) as caught:
        ms.grad(lambda a: (leave(a), a.sum())[1])(X)
    assert str(caught.value) == (
        "DLPack inside a gradient of MindSpore: expected a value that is detached from it, because the gradient would be lost.\n\n"
        "hint: use torchspore.to_torch and from_torch, which carry the gradient, or ops.stop_gradient(x)."
    )
    assert torch.from_dlpack(X).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_a_gradient_inside_torchs_modes(mode: int, context: Callable[[], Any]) -> None:
    with context():
        inside = Tensor([0.0, 1.0, 2.0])
        dense = nn.Dense(3, 1, weight_init="ones", bias_init="zeros")
        for x in (X, inside):
            np.testing.assert_array_equal(ms.grad(lambda a: (a * a).sum())(x).asnumpy(), [0, 2, 4])
        _, (weight, _) = ms.value_and_grad(lambda a: dense(a.reshape(1, 3)).sum(), None, dense.trainable_params())(X)
        np.testing.assert_array_equal(weight.asnumpy(), [[0, 1, 2]])


def test_an_inference_tensor_that_a_gradient_needs_raises() -> None:
    with torch.inference_mode():
        constant = Tensor([0.0, 1.0, 2.0])
    with pytest.raises(RuntimeError) as caught:
        ms.grad(lambda a: (a * constant).sum())(X)
    assert "expected Tensors that torch.inference_mode did not create in a gradient, got such a Tensor as other." in str(caught.value)
    assert "hint: write x.copy() outside of torch.inference_mode, or create it under torch.no_grad." in str(caught.value)


def test_a_torch_module_in_a_tuple_stays_one() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.head = (torch.nn.Linear(3, 2),)

    assert Net().head[0].training and not Net().trainable_params()


@pytest.mark.filterwarnings("ignore")           # torch warns of quantized and nested tensors
@pytest.mark.parametrize(("make", "kind"), [
    (lambda: torch.eye(2).to_sparse(), " of a sparse torch tensor"),
    (lambda: torch.ones(2, device="meta"), " of a meta torch tensor"),
    (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), " of a quantized torch tensor"),
    (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), " of a nested torch tensor"),
])
def test_a_torch_tensor_without_dense_memory_is_refused(make: Callable[[], Any], kind: str) -> None:
    with pytest.raises(TypeError, match=f"^Tensor.from_torch{kind}: expected a dense tensor with elements in memory"):
        Tensor.from_torch(make())


def test_from_torch_of_something_else_names_its_type() -> None:
    with pytest.raises(TypeError, match=r"^Tensor\.from_torch\(\[1\]\): expected a torch tensor, got list\."):
        Tensor.from_torch([1])


@pytest.mark.parametrize("write", [lambda t: t.add_(1), lambda t: t.__setitem__(0, 5)])
def test_a_write_into_an_inference_tensor_says_why_it_fails(write: Callable[[Any], Any]) -> None:
    with torch.inference_mode():
        t = Tensor([1.0, 2.0]) * 2
    with pytest.raises(RuntimeError, match=r"expected a Tensor that torch\.inference_mode did not create, because torch forbids writing"):
        write(t)


class Scaled(torch.autograd.Function):
    """Doubles its argument; its gradient is another one on purpose."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * factor

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x, = ctx.saved_tensors
        return gradients[0] * 5 * x, None


def test_a_function_of_torch_keeps_its_gradient(mode: int) -> None:
    x = Tensor([1.0, 2.0])
    assert type(Scaled.apply(x)) is torch.Tensor and Scaled.apply(x, 3.0).tolist() == [3.0, 6.0]
    for compute in (lambda a: Scaled.apply(a), lambda a: Scaled.apply(ops.relu(a), 3.0), lambda a: Scaled.apply(torchspore.to_torch(a))):
        gradient = ms.grad(lambda a, compute=compute: torchspore.from_torch(compute(a)).sum())(x)
        assert gradient.asnumpy().tolist() == [5.0, 10.0]


def test_writes_into_a_torch_tensor_and_its_tensor_inside_a_gradient(mode: int) -> None:
    device = X.torch().device

    def write_tensor(a: Any) -> Any:
        t = torch.ones(2, device=device)
        torchspore.from_torch(t)[0] = 5.0
        return a * torchspore.from_torch(t)

    def write_torch(a: Any) -> Any:
        t = torch.ones(2, device=device)
        tensor = torchspore.from_torch(t)
        t.mul_(torchspore.to_torch(a))
        return tensor * 3

    x = Tensor([1.0, 2.0])
    value, gradient = ms.value_and_grad(lambda a: write_tensor(a).sum())(x)
    assert float(value) == 7.0 and gradient.asnumpy().tolist() == [5.0, 1.0]
    value, gradient = ms.value_and_grad(lambda a: write_torch(a).sum())(x)
    assert float(value) == 9.0 and gradient.asnumpy().tolist() == [3.0, 3.0]


NEGATED = torch.tensor([1 + 2j, -3 + 4j])


@pytest.mark.parametrize("make", [lambda: NEGATED.conj(), lambda: NEGATED.conj().imag, lambda: torch._neg_view(NEGATED.real)])
def test_dlpack_of_conjugated_and_negated_views(make: Callable[[], torch.Tensor]) -> None:
    expected = make().resolve_conj().resolve_neg().numpy()
    tensor = torchspore.from_torch(make())
    assert np.array_equal(np.from_dlpack(tensor), expected) and np.array_equal(tensor.asnumpy(), expected)
    assert np.array_equal(Tensor.from_dlpack(Tensor.to_dlpack(tensor)).asnumpy(), expected)
    with pytest.raises(BufferError, match="of a conjugated or negated view"):
        tensor.__dlpack__(copy=False)
