"""One memory as a MindSpore Tensor and as a torch tensor: to_torch, from_torch, torch's functions on Tensors, DLPack, einops."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

import torchspore

VALUES = [0.0, 1.0, 2.0]
X = Tensor(VALUES)
COSINE = np.cos(VALUES).astype(np.float32)


def test_memory_is_shared_both_ways() -> None:
    t = torch.zeros(2)
    x = torchspore.from_torch(t)
    t[0] = 3
    x[1] = 4.0
    assert type(x) is Tensor and x.asnumpy().tolist() == t.tolist() == [3.0, 4.0]
    assert torchspore.to_torch(x).data_ptr() == t.data_ptr()
    assert torchspore.to_torch(t) is t and torchspore.from_torch(x) is x
    parameter = ms.Parameter(Tensor([1.0]))
    torchspore.to_torch(parameter).add_(1)
    assert parameter.asnumpy().tolist() == [2.0]


@pytest.mark.parametrize(("call", "text"), [
    (lambda: torchspore.to_torch([1]), r"^to_torch\(\[1\]\): expected a MindSpore Tensor, got list"),
    (lambda: torchspore.from_torch(1.0), r"expected a torch tensor, got float"),
])
def test_other_values_raise(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


CARRYING: dict[str, Callable[[Any], Any]] = {
    "to_torch": lambda a: torchspore.from_torch(torch.sin(torchspore.to_torch(a))),
    "function": lambda a: torchspore.from_torch(torch.sin(a)),
    "keyword": lambda a: torchspore.from_torch(torch.sin(input=a)),
    "list": lambda a: torchspore.from_torch(torch.stack([a, a]).sin()[0]),
    "module function": lambda a: torchspore.from_torch(torch.nn.functional.linear(torch.sin(a), torch.eye(3))),
    "torch operator": lambda a: torchspore.from_torch((torch.zeros(3) + a).sin()),
    "MindSpore operator": lambda a: ops.sub(torch.sin(a), torch.zeros(3)),
    "operand": lambda a: ops.zeros(3) + torch.sin(a),
    "joined": lambda a: ops.concat((torch.sin(a), ops.zeros(1))),
    "Tensor": lambda a: Tensor(torch.sin(a)),
    "from_dlpack": lambda a: ms.utils.dlpack.from_dlpack(torch.sin(a)),
    "from_dlpack of a Tensor": lambda a: ops.sin(ms.utils.dlpack.from_dlpack(a)),
}


@pytest.mark.parametrize("compute", CARRYING.values(), ids=CARRYING)
def test_the_gradient_flows(mode: int, compute: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(ms.grad(lambda a: compute(a).sum())(X).asnumpy(), COSINE, rtol=1e-6)
    np.testing.assert_allclose(ms.jvp(compute, X, Tensor([1.0, 1.0, 1.0]))[1].asnumpy().ravel()[:3], COSINE, rtol=1e-6)


@pytest.mark.parametrize("copy", [torch.as_tensor, torch.tensor, torch.asarray, torch.from_dlpack, np.from_dlpack])
def test_what_reads_the_values_only_raises_inside_a_gradient(mode: int, copy: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"use torchspore\.to_torch and from_torch, which carry the gradient"):
        ms.grad(lambda a: (copy(a), a.sum())[1])(X)
    assert copy(X).tolist() == VALUES


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")             # torch reads a Tensor as an index item by item first
def test_the_result_has_the_type_of_the_library_that_was_called() -> None:
    t, x = torch.ones(3), X
    for result in (torch.add(X, t), t + X, t == X, torch.nn.Linear(3, 1)(X), t.mul(X), torch.cat([X, t])):
        assert type(result) is torch.Tensor
    for result in (ops.add(t, X), X + t, x == t, nn.Dense(3, 1)(t), X.mul(t), ops.concat((t, X)), ms.mint.add(X, t), ms.numpy.add(X, t)):
        assert type(result) is Tensor
    assert (X + torch.ones(3, dtype=torch.float64)).dtype == ms.float64
    assert X[torch.tensor([2, 0])].asnumpy().tolist() == [2.0, 0.0]
    assert torch.arange(4)[Tensor([1, 3])].tolist() == [1, 3]


def test_torch_writes_into_a_tensor_outside_of_gradients_and_graphs_only(mode: int) -> None:
    x = Tensor([-1.0, 1.0])
    torch.relu_(x)
    torch.add(torch.ones(2), 1, out=x)
    assert x.asnumpy().tolist() == [2.0, 2.0]
    for write in (torch.relu_, lambda a: torch.nn.functional.relu(a, True), lambda a: torch.add(a, 1, out=a)):
        with pytest.raises(RuntimeError, match="writes into a Tensor inside a gradient or a graph: expected a function that returns a new"):
            ms.grad(lambda a: (write(a * 1), a.sum())[1])(x)  # noqa: B023


def test_torchs_record_continues_through_operators_and_cells(mode: int) -> None:
    class Net(nn.Cell):
        def construct(self, a: Any) -> Any:
            return ops.sin(a) * 2

    def gradient_of(compute: Callable[[Any], Any]) -> list[float]:
        t = torch.tensor(VALUES, requires_grad=True)
        torchspore.to_torch(compute(t)).sum().backward()
        assert t.grad is not None
        return t.grad.tolist()  # type: ignore[no-any-return]

    expected = pytest.approx((2 * COSINE).tolist())
    assert gradient_of(lambda t: Net()(torchspore.from_torch(t))) == expected
    assert gradient_of(Net()) == expected
    assert gradient_of(lambda t: ops.sin(t * 1) * 2) == expected
    assert gradient_of(lambda t: Tensor(t).sin() * 2) == expected
    with torch.no_grad():
        assert not torchspore.from_torch(torch.ones(1, requires_grad=True)).torch().requires_grad
    # A gradient of MindSpore with respect to such a Tensor is complete too.
    recorded = torchspore.from_torch(torch.tensor(VALUES, requires_grad=True) * 1)
    np.testing.assert_allclose(ms.grad(Net())(recorded).asnumpy(), 2 * COSINE, rtol=1e-6)


def test_torchs_record_continues_through_the_state_of_a_cell_in_graph_mode() -> None:
    class Adding(nn.Cell):
        def construct(self, a: Any) -> Any:
            return a + self.state

    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        cell = Adding()
        cell.state = Tensor([1.0, 1.0, 1.0])
        assert not cell(X).torch().requires_grad
        for _ in range(2):
            t = torch.ones(3, requires_grad=True)
            cell.state = torchspore.from_torch(t * 2)
            cell(X).torch().sum().backward()
            assert t.grad is not None and t.grad.tolist() == [2.0, 2.0, 2.0]
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


class Sine(nn.Cell):
    def construct(self, a: Any) -> Any:
        return torch.sin(a)


class Seven(Sine):
    def bprop(self, a: Any, out: Any, dout: Any) -> Any:
        return torch.full((3,), 7.0)


class Inner(nn.Cell):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.sine = Sine()
        if how == "recompute":
            self.sine.recompute()
        elif how == "hook":
            self.sine.register_backward_hook(lambda _, grad_input, __: (grad_input[0] * 2,))

    def construct(self, a: Any) -> Any:
        return self.sine(torch.clone(a))


def with_state(a: Any) -> Any:
    parameter = ms.Parameter(Tensor([0.0, 0.0, 0.0]), requires_grad=False)
    ops.assign(parameter, torch.ones(3))
    b = a * 1
    b[0] = torch.sin(a)[0]
    b += torch.zeros(3)
    t = torch.zeros(3)
    t[1:] = torch.sin(a)[1:]
    t[0] = b[0]
    return t * parameter


def gradient_of_recorded_call(cell: Any) -> Any:
    cell(X)
    return ms.grad(cell)(X)


RESULTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "grad": (lambda: ms.grad(torch.sin)(X), COSINE),
    "value_and_grad": (lambda: ms.value_and_grad(lambda a: (torch.sin(a), torch.cos(a)), has_aux=True)(X)[1], COSINE),
    "GradOperation": (lambda: ops.GradOperation()(Sine())(X), COSINE),
    "sens": (lambda: ops.GradOperation(sens_param=True)(torch.sin)(X, torch.full((3,), 2.0)), 2 * COSINE),
    "vjp": (lambda: ms.vjp(torch.sin, X)[1](Tensor([1.0, 1.0, 1.0]))[0], COSINE),
    "result of vjp": (lambda: ms.vjp(torch.sin, X)[0], np.sin(VALUES)),
    "result of jvp": (lambda: ms.jvp(torch.sin, X, Tensor([1.0, 1.0, 1.0]))[0], np.sin(VALUES)),
    "jvp": (lambda: ms.jvp(torch.sin, X, Tensor([1.0, 1.0, 1.0]))[1], COSINE),
    "jacrev": (lambda: ms.jacrev(torch.sin)(X), np.diag(COSINE)),
    "jacfwd": (lambda: ms.jacfwd(torch.sin)(X), np.diag(COSINE)),
    "vmap": (lambda: ms.vmap(torch.sin)(X), np.sin(VALUES)),
    "jit inside": (lambda: ms.grad(lambda a: ms.jit(lambda b: torch.sin(b))(a))(X), COSINE),
    "second": (lambda: ms.grad(lambda a: ms.grad(torch.sin)(a).sum())(X), -np.sin(VALUES)),
    "bprop": (lambda: ms.grad(Seven())(X), np.full(3, 7.0)),
    "recompute": (lambda: ms.grad(Inner("recompute"))(X), COSINE),
    "hook": (lambda: ms.grad(Inner("hook"))(X), 2 * COSINE),
    "recorded call": (lambda: gradient_of_recorded_call(Sine().set_grad()), COSINE),
    "unbind": (lambda: ms.grad(lambda a: sum(torch.unbind(torch.sin(a))))(X), COSINE),
    "state": (lambda: ms.grad(with_state)(X), COSINE),
}


@pytest.mark.parametrize(("compute", "expected"), RESULTS.values(), ids=RESULTS)
def test_a_function_that_returns_torch_tensors_has_its_gradient(mode: int, compute: Callable[[], Any], expected: Any) -> None:
    result = compute()
    assert type(result) is Tensor
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-6, atol=1e-7)


def test_gradients_with_respect_to_torch_tensors_and_of_trained_torch_modules_raise(mode: int) -> None:
    with pytest.raises(TypeError, match=r"a gradient with respect to a torch tensor: expected a Tensor\."):
        ms.grad(ops.sin)(torch.ones(3))
    with pytest.raises(RuntimeError, match=r"a result of the torch Parameter of shape \[2, 3\], which requires a gradient"):
        ms.grad(torch.nn.Linear(3, 2))(X)


@pytest.mark.parametrize("compute", [lambda a, p: a - p, lambda a, p: ops.concat((a, p)), lambda a, p: ops.minimum(a, p)])
def test_a_torch_parameter_as_an_operand_would_get_no_gradient(compute: Callable[[Any, Any], Any]) -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(Exception, match=r"the argument is the torch Parameter of shape \[3\], which requires a gradient"):
        ms.grad(lambda a: compute(a, parameter).sum())(X)


def test_dlpack_of_arrays_and_capsules() -> None:
    array = np.arange(3, dtype=np.float32)
    x = ms.utils.dlpack.from_dlpack(array)
    x[0] = 7.0
    assert array[0] == 7.0 and x.__dlpack_device__() == (1, 0)
    assert Tensor.from_dlpack(x.__dlpack__()).data_ptr() == x.data_ptr()
    assert np.from_dlpack(x).ctypes.data == torch.from_dlpack(x).data_ptr() == x.data_ptr()


def test_a_branch_on_a_torch_value_is_a_graph_break() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        def compute(a: Any) -> Any:
            return torchspore.from_torch(torch.sin(a)) if float(torch.sum(a)) > 0 else a * 3

        for x, expected in ((X, COSINE), (-X, np.full(3, 3.0))):
            np.testing.assert_allclose(ms.grad(lambda a: compute(a).sum())(x).asnumpy(), expected, rtol=1e-6)
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.needs("einops")
def test_einops(mode: int) -> None:
    import einops

    array = np.random.default_rng(0).random((2, 6, 4), np.float32)
    calls: list[Callable[[Any], Any]] = [
        lambda a: einops.rearrange(a, "b (h w) c -> b c h w", h=2), lambda a: einops.repeat(a, "b h c -> b (h r) c k", r=2, k=3),
        lambda a: einops.einsum(a, a, "b h c, b k c -> b h k"), lambda a: einops.rearrange([a, a], "k b h c -> b h c k"),
        lambda a: einops.pack([a, a], "b * c")[0], lambda a: einops.unpack(a, [[2], [4]], "b * c")[1],
        *(lambda a, kind=kind: einops.reduce(a, "b (h 2) c -> b c", kind) for kind in ("min", "max", "sum", "mean", "prod")),
    ]
    for call in calls:
        result = call(Tensor(array))
        assert type(result) is Tensor
        np.testing.assert_allclose(result.asnumpy(), call(array), rtol=1e-5)
    gradient = ms.grad(lambda a: einops.reduce(einops.rearrange(a * a, "b h c -> c b h"), "c b h -> c", "sum").sum())(Tensor(array))
    np.testing.assert_allclose(gradient.asnumpy(), 2 * array, rtol=1e-6)
