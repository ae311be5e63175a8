"""Torch tensors that share memory with Tensors inside a gradient: each library's writes are visible in the other, as in plain torch."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, ops

import torchspore

VALUES = np.array([0.3, -1.2, 2.0], np.float32)
DEVICE = torchspore.to_torch(Tensor(VALUES)).device


def identity(x: Any) -> Any:
    return x


class Plain:
    to = fr = staticmethod(identity)


class Both:
    to, fr = staticmethod(torchspore.to_torch), staticmethod(torchspore.from_torch)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return gradients[0] * 2 * ctx.saved_tensors[0]


def after_write(use: Callable[[Any, Any, Any], Any], view: Callable[[Any], Any] = identity) -> Callable[[Any, Any], Any]:
    """Return a program that takes a torch tensor of `b`, writes into `b`, and then uses the torch tensor."""
    def program(a: Any, library: Any) -> Any:
        b = a * 2
        t = view(library.to(b))
        b[0] = 5.0
        return use(t, b, library)

    return program


def created_from(a: Any, library: Any) -> Any:
    t = torch.ones(3, device=DEVICE)
    library.fr(t)[0] = 5.0
    return library.fr(t * library.to(a)).sum()


def input_view(a: Any, library: Any) -> Any:
    b = a * 2
    v = torch.reshape(b, (3, 1))
    b[0] = 5.0
    return library.fr(torch.sin(v)).sum()


def write_through_view(a: Any, library: Any) -> Any:
    b = a * 2
    t = library.to(b)
    b.view(-1)[1:] = 4.0
    return library.fr(torch.sin(t)).sum()


def write_without_record(a: Any, library: Any) -> Any:
    b = a * 2
    t = library.to(b)
    with torch.no_grad():
        b[0] = 9.0
    return library.fr(t * 3).sum() + b.sum()


def writes_in_a_loop(a: Any, library: Any) -> Any:
    b = a * 1
    t, out = library.to(b), 0
    for i in range(3):
        b[i] = library.fr(t.sum() * (i + 1))
        out = out + library.fr(t[i])
    return out


def copied(a: Any, library: Any) -> Any:
    b, c = a * 2, a * 3
    d = c * c
    b.copy_(c)
    library.to(b).mul_(2)
    return (b + c + d).sum()


def copied_then_source_written(a: Any, library: Any) -> Any:
    b, c = a * 2, a * 3
    b.copy_(c)
    library.to(c).mul_(2)
    return (b * a + c).sum()


def two_tensors(a: Any, library: Any) -> Any:
    t = torch.ones(3, device=DEVICE)
    x, y = library.fr(t), library.fr(t)
    x[0] = 5.0
    return (y * a).sum()


def device_block(a: Any, library: Any) -> Any:
    b = a * 2
    t = library.to(b)
    with torch.device("cpu"):
        b[0] = 5.0
        c = torch.sin(t)
    return library.fr(c + torch.cos(t)).sum()


def batch_norm(a: Any, library: Any) -> Any:
    mean, variance = library.fr(torch.zeros(3, device=DEVICE)), library.fr(torch.ones(3, device=DEVICE))
    t = library.to(mean)
    mean[0] = 4.0
    y = torch.nn.functional.batch_norm(torch.stack([library.to(a), library.to(a) * 2]), t, library.to(variance), training=True)
    return library.fr(y * y * y).sum() + (mean * a).sum()


def joined(t: Any, b: Any, library: Any) -> Any:
    return ops.concat((t, b * t)).sum() if library is Both else torch.cat((t, b * t)).sum()


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "function": after_write(lambda t, _, library: library.fr(torch.sin(t)).sum()),
    "view": after_write(lambda t, _, library: library.fr(torch.sin(t)).sum(), lambda t: t[:2]),
    "expanded": after_write(lambda t, _, library: library.fr(torch.sin(t)).sum(), lambda t: t.unsqueeze(0).expand(2, 3)),
    "detached": after_write(lambda t, b, library: library.fr(t * library.to(b)).sum(), lambda t: t.detach()),
    "part of detached": after_write(lambda t, b, library: library.fr(t * library.to(b)[:2]).sum(), lambda t: t.detach()[:2]),
    "list": after_write(lambda t, _, library: library.fr(torch.cat([t, t])).sum()),
    "Function": after_write(lambda t, _, library: library.fr(Square.apply(t)).sum()),
    "operators of both": after_write(joined),
    "write of torch": after_write(lambda t, b, _: (t.mul_(3), (b * b).sum())[1]),
    "write of torch into a view": after_write(lambda t, b, _: (t.mul_(3), (b * b).sum())[1], lambda t: t[1:]),
    "out": after_write(lambda t, b, _: (torch.add(torch.ones(3, device=DEVICE), 1, out=t.detach()), b.sum())[1]),
    "value": after_write(lambda t, b, _: b.sum() * float(t[0]) * t.tolist()[0]),
    "array": after_write(lambda t, b, _: b.sum() * float(t.detach().cpu().numpy()[0])),
    "comparison": after_write(lambda t, b, library: b.sum() * float(torch.equal(t, library.to(b)))),
    "iteration": after_write(lambda t, _, library: library.fr(sum(x * x for x in t))),
    **{program.__name__: program for program in (
        created_from, input_view, write_through_view, write_without_record, writes_in_a_loop, copied, copied_then_source_written,
        two_tensors, device_block, batch_norm,
    )},
}


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad=True")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_writes_are_visible_as_in_plain_torch(mode: int, program: Callable[[Any, Any], Any]) -> None:
    x = torch.tensor(VALUES, device=DEVICE, requires_grad=True)
    expected = program(x, Plain)
    expected.backward()
    assert x.grad is not None
    value, gradient = ms.value_and_grad(lambda a: program(a, Both))(Tensor(VALUES))
    np.testing.assert_allclose(value.asnumpy(), expected.item(), rtol=1e-5)
    np.testing.assert_allclose(gradient.asnumpy(), x.grad.cpu().numpy(), rtol=1e-5)
    assert not torch.overrides._get_current_function_mode_stack()


def test_a_tensor_from_before_the_gradient(mode: int) -> None:
    parameter = ms.Parameter(Tensor([1.0, 2.0]), name="p")
    t = torchspore.to_torch(parameter)

    def program(a: Any) -> Any:
        ops.assign(parameter, Tensor([5.0, 6.0]))
        return torchspore.from_torch(t * torchspore.to_torch(a)).sum()

    value, gradient = ms.value_and_grad(program)(Tensor([1.0, 2.0]))
    assert float(value) == 17.0 and gradient.asnumpy().tolist() == [5.0, 6.0] and t.tolist() == [5.0, 6.0]


def test_the_other_transforms(mode: int) -> None:
    x = Tensor([1.0, 2.0])

    def program(a: Any) -> Any:
        b = a * 2
        t = torchspore.to_torch(b)
        b[0] = 5.0
        return torchspore.from_torch(torch.sin(t))

    slope = 2 * np.cos(4)
    np.testing.assert_allclose(ms.jacrev(program)(x).asnumpy(), [[0, 0], [0, slope]], rtol=1e-5)
    np.testing.assert_allclose(ms.jvp(program, x, Tensor([1.0, 1.0]))[1].asnumpy(), [0, slope], rtol=1e-5)
    np.testing.assert_allclose(ms.vmap(program)(x.reshape(1, 2)).asnumpy(), [np.sin([5, 4])], rtol=1e-5)
    second = ms.grad(lambda a: ms.grad(lambda b: program(b).sum())(a).sum())(x)
    np.testing.assert_allclose(second.asnumpy(), [0, -4 * np.sin(4)], rtol=1e-5)


def detached_write(a: Any) -> Any:
    b = a * 2
    torchspore.from_torch(torchspore.to_torch(b).detach())[0] = 100.0
    return (b * a).sum()


def bits(a: Any) -> Any:
    b = torchspore.from_torch(torch.ones(3, device=DEVICE))
    shown = torchspore.to_torch(b).view(torch.int32)
    b[0] = 2.0
    return a.sum() * float(shown[0])


SHARED = torch.ones(3, device=DEVICE)
FIRST, SECOND = torchspore.from_torch(SHARED), torchspore.from_torch(SHARED)


def both_written(a: Any) -> Any:
    FIRST[0], SECOND[1] = 5.0, 6.0
    return (FIRST * a).sum()


def test_two_tensors_of_one_memory(mode: int) -> None:
    def program(a: Any) -> Any:
        FIRST[0] = 5.0
        return (SECOND * a).sum()

    SHARED.fill_(1.0)
    assert ms.grad(program)(Tensor(VALUES)).asnumpy().tolist() == [5.0, 1.0, 1.0]
    assert SHARED.tolist() == [5.0, 1.0, 1.0]


@pytest.mark.parametrize("program", [detached_write, bits, both_written])
def test_what_can_not_follow_a_write_raises_and_names_the_line(mode: int, program: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"test_torch_aliases\.py:\d+: a write into a Tensor inside a gradient, while a detached tensor"):
        ms.grad(program)(Tensor(VALUES))
    assert not torch.overrides._get_current_function_mode_stack()
