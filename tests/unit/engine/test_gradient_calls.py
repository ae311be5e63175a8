"""The short way of a gradient's call: its results are those of the long way bit for bit, and it leaves to the long way what it lacks."""
from __future__ import annotations

import copy
import gc
import logging
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Parameter, ParameterTuple, Tensor, nn, ops

from torchspore.engine.autograd import backward_pass, grad
from torchspore.engine.native import operators
from torchspore.engine.tensors import tensor as engine

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3) / 4


@contextmanager
def the_long_way() -> Iterator[None]:
    """All gradients take the long way."""
    short, grad._differentiate_outermost = grad._differentiate_outermost, lambda *_: None
    try:
        yield
    finally:
        grad._differentiate_outermost = short


@pytest.fixture
def short_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gradients that were computed the short way: 'call' for its beginning, 'C++' for a backward pass of one call of C++."""
    ways: list[str] = []
    begin, backward = grad._differentiate_outermost, grad._gradients_of_leaves

    def note(way: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            out = function(*arguments)
            if out is not None:
                ways.append(way)
            return out

        return call

    monkeypatch.setattr(grad, "LISTENERS", [])               # earlier tests of this process may have used several devices or a server
    monkeypatch.setattr(grad.TRAINING_START, "hook", None)
    monkeypatch.setattr(grad, "_differentiate_outermost", note("call", begin))
    monkeypatch.setattr(grad, "_gradients_of_leaves", note("C++", backward))
    return ways


class Net(nn.Cell):
    """Weights of which `unused` has no gradient, and a buffer that a call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = Parameter(Tensor(X.copy()), name="weight"), Parameter(Tensor(X[0].copy()), name="bias")
        self.unused = Parameter(Tensor(X[1].copy()), name="unused")
        self.count = Parameter(Tensor([0.0]), name="count", requires_grad=False)
        self.last: Any = None

    def construct(self, x: Any) -> Any:
        self.count += 1
        self.last = ops.tanh(x * self.weight) + self.bias
        return self.last.sum()


def both(first: Any, second: Any) -> Any:
    return ops.exp(first * second).mean()


def several(x: Any) -> Any:
    return x * 2, ops.sin(x)


def through_integers(x: Any) -> Any:
    return (x * ops.cast(x * 3, ms.int32)).sum()


def of_a_gradient(x: Any) -> Any:
    return (ms.grad(lambda y: (y ** 3).sum())(x) * x).sum()


CASES: dict[str, Callable[[Net, Any], Any]] = {
    "an input": lambda net, x: ms.value_and_grad(net)(x), "weights": lambda net, x: ms.value_and_grad(net, None, net.trainable_params())(x),
    "an input and weights": lambda net, x: ms.value_and_grad(net, 0, ParameterTuple(net.trainable_params()))(x),
    "one weight": lambda net, x: ms.grad(net, None, net.bias)(x), "all inputs": lambda net, x: ms.value_and_grad(both, (0, 1))(x, x + 1),
    "the second input": lambda net, x: ms.grad(both, 1)(x, x + 1), "one Tensor twice": lambda net, x: ms.grad(both, (0, 1))(x, x),
    "one position twice": lambda net, x: ms.grad(both, (0, 0))(x, x + 1), "a weight as an input": lambda net, x: ms.grad(
        lambda w: net(w) * 2, 0, net.trainable_params())(net.weight),
    "a weight twice": lambda net, x: ms.grad(net, None, [net.bias, net.bias])(x), "a number": lambda net, x: ms.grad(both)(x, 3),
    "a keyword": lambda net, x: ms.grad(lambda first, *, second: both(first, second))(x, second=x + 1),
    "has_aux": lambda net, x: ms.value_and_grad(lambda x: (net(x), x + 1), 0, net.trainable_params(), has_aux=True)(x),
    "sens": lambda net, x: ops.GradOperation(sens_param=True)(lambda x: x * x)(x, x + 2),
    "return_ids": lambda net, x: ms.grad(net, 0, net.trainable_params(), return_ids=True)(x),
    "a result of several values": lambda net, x: ms.value_and_grad(several)(x),
    "a result that is no number": lambda net, x: ms.grad(ops.exp)(x),
    "an integer result": lambda net, x: ms.grad(lambda x: (x * 0.5).sum().astype(ms.int32))(x),
    "a constant result": lambda net, x: ms.grad(lambda x: Tensor(1.0))(x),
    "the input as the result": lambda net, x: ms.grad(lambda x: x)(x[0, 0]),
    "a detached result": lambda net, x: ms.grad(lambda x: ops.stop_gradient(x.sum()))(x),
    "a torch result": lambda net, x: ms.grad(lambda x: torch.sum(x.torch() * 3))(x) if hasattr(x, "torch") else 0,
    "integers": lambda net, x: ms.grad(lambda x: x * x)(Tensor([2, 3])), "through integers": lambda net, x: ms.grad(through_integers)(x),
    "complex numbers": lambda net, x: ms.grad(lambda x: ops.real(x * x).sum())(x.astype(ms.complex64)),
    "float16": lambda net, x: ms.value_and_grad(lambda x: (x * x).sum())(x.astype(ms.float16)),
    "a gradient of a gradient": lambda net, x: ms.value_and_grad(of_a_gradient)(x),
    "grad of grad": lambda net, x: ms.grad(lambda x: ms.grad(lambda y: (y ** 3).sum())(x).sum())(x),
    "GradOperation": lambda net, x: ops.GradOperation()(net)(x), "get_all": lambda net, x: ops.GradOperation(get_all=True)(both)(x, x + 1),
    "get_by_list": lambda net, x: ops.GradOperation(get_by_list=True)(net, ParameterTuple(net.trainable_params()))(x),
    "get_all and by_list": lambda net, x: ops.GradOperation(get_all=True, get_by_list=True)(net)(x),
    "rows of a table": lambda net, x: ms.grad(lambda i: ops.gather(net.weight, i, 0).sum() * 2, None, [net.weight])(Tensor([1, 1, 0])),
    "a loss with a branch": lambda net, x: ms.grad(lambda x: x.sum() if x.sum() > 0 else -x.sum())(x),
    "a write": lambda net, x: ms.grad(lambda x: (ops.assign(net.weight, net.weight * 2) * x).sum(), 0, net.trainable_params())(x),
    "a flag after a read": lambda net, x: ms.grad(
        lambda x: (net.bias * x).sum() + (setattr(net.bias, "requires_grad", False) or 0), None, [net.weight, net.bias])(x),
    "rows alone": lambda net, x: ms.grad(
        lambda i: (ops.SparseGatherV2()(net.weight, i, 0) * net.bias).sum(), None, [net.weight, net.bias])(Tensor([1, 1, 0])),
    "a flag": lambda net, x: ms.grad(lambda x: setattr(net.bias, "requires_grad", False) or net(x), None, [net.weight, net.bias])(x),
}


def bits(value: Any) -> Any:
    """Return everything that a program can see of a result."""
    if isinstance(value, engine.TensorBase):
        t = value._t
        return type(value), t.dtype, tuple(t.shape), t.stride(), t.requires_grad, t.contiguous().reshape(-1).view(torch.uint8).tolist()
    if isinstance(value, (list, tuple)):
        return type(value), [bits(item) for item in value]
    return type(value), repr(value)


def outcome(case: Callable[[Net, Any], Any]) -> Any:
    net, x = Net(), Tensor(X.copy())
    try:
        result = case(net, x)
    except Exception as error:
        return type(error), str(error)
    last = net.last
    return bits(result), bits(net.count), bits(net.weight), bits(last), torch.is_grad_enabled(), engine.active, engine.frame()


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_long_way(name: str) -> None:
    with the_long_way():
        expected = outcome(CASES[name])
    assert outcome(CASES[name]) == expected
    assert not issubclass(expected[0], Exception) if isinstance(expected[0], type) else True


def test_losses_take_the_short_way(short_ways: list[str]) -> None:
    net, x = Net(), Tensor(X)
    ways = ["C++", "call"] if operators.is_loaded() else []
    for call in (ms.value_and_grad(net), ms.value_and_grad(net, None, net.trainable_params()), ops.GradOperation(get_by_list=True)(net)):
        short_ways.clear()
        call(x)
        assert short_ways == ways
    short_ways.clear()
    ms.grad(several)(x)
    assert short_ways == ways[1:]                             # the backward pass of several values needs the long way
    short_ways.clear()
    ms.grad(lambda x: x * x)(Tensor([2, 3]))
    assert short_ways == []


def test_hooks_receive_gradients() -> None:
    seen: list[Any] = []
    net, x = Net(), Tensor(X)
    handle = net.bias.register_hook(lambda gradient: seen.append("bias") or gradient * 2)
    expected = ms.grad(Net(), None, Net().trainable_params())

    def loss(x: Any) -> Any:
        y = x * net.weight
        y.register_hook(lambda gradient: seen.append("inside") or gradient * 3)
        net.weight.register_hook(lambda gradient: seen.append("weight"))
        return (y + net.bias).sum()

    of_weight, of_bias = ms.grad(loss, None, [net.weight, net.bias])(x)
    assert sorted(seen) == ["bias", "inside", "weight"] and callable(expected)
    assert np.allclose(of_weight.asnumpy(), 3 * X) and np.allclose(of_bias.asnumpy(), 4)
    handle.remove()
    seen.clear()
    ms.grad(lambda x: (x * net.weight + net.bias).sum(), None, [net.weight, net.bias])(x)
    assert seen == []                                          # a hook on a value of one call concerns that call alone


def test_an_error_in_a_hook_is_raised_once() -> None:
    calls: list[int] = []

    def fail(gradient: Any) -> Any:
        calls.append(1)
        raise KeyError("from the hook")

    def loss(x: Any) -> Any:
        y = x * 2
        y.register_hook(fail)
        return y.sum()

    for kind in (ms.grad(loss), ms.value_and_grad(loss)):
        calls.clear()
        with pytest.raises(KeyError, match="from the hook"):
            kind(Tensor(X))
        assert calls == [1] and engine.frame() is None and engine.active == 0
    assert ms.grad(lambda x: (x * x).sum())(Tensor(X)).asnumpy().tolist() == (2 * X).tolist()


def test_errors_end_the_frame_and_the_recording() -> None:
    net = Net()

    def loss(x: Any) -> Any:
        net.count += 1
        net.last = x * net.weight
        raise ValueError("in the middle")

    before = torch.is_grad_enabled()
    with pytest.raises(ValueError, match="in the middle"):
        ms.value_and_grad(loss, None, net.trainable_params())(Tensor(X))
    assert (torch.is_grad_enabled(), engine.frame(), engine.active) == (before, None, 0)
    assert net.count.asnumpy().tolist() == [1] and not net.last._t.requires_grad
    with torch.no_grad():
        assert ms.grad(lambda x: (x * x).sum())(Tensor(X)).asnumpy().tolist() == (2 * X).tolist()
        assert not torch.is_grad_enabled()


def test_an_undefined_gradient_is_explained() -> None:
    from torchspore.engine.tensors.tensor import raw, wrap

    def loss(x: Any) -> Any:
        return wrap(torch.igamma(raw(x), raw(x))).sum()

    def message(call: Callable[..., Any]) -> str:
        with pytest.raises(TypeError) as error:
            call(Tensor(X))
        return str(error.value).partition(": ")[2]

    with the_long_way():
        expected = message(ms.grad(loss))
    assert message(ms.grad(loss)) == expected and "the gradient of igamma is not defined" in expected


@pytest.mark.parametrize("kind", [torch.autograd.graph.saved_tensors_hooks, None], ids=["hooks", "a replaced function"])
def test_other_code_takes_part(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    plain = torch.autograd.grad

    def replaced(*arguments: Any, **keywords: Any) -> Any:
        calls.append("grad")
        return plain(*arguments, **keywords)

    if kind is None:
        monkeypatch.setattr(torch.autograd, "grad", replaced)
        gradient = ms.grad(lambda x: (x * x).sum())(Tensor(X))
    else:
        with kind(lambda t: calls.append("pack") or t, lambda t: calls.append("unpack") or t):
            gradient = ms.grad(lambda x: (x * x).sum())(Tensor(X))
    assert gradient.asnumpy().tolist() == (2 * X).tolist() and calls


def test_the_log_of_torch_sees_backward_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not backward_pass.is_observed()
    logger = logging.getLogger("torch.autograd.graph")
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    logger._cache.clear()                                     # type: ignore[attr-defined]
    try:
        assert backward_pass.is_observed()
    finally:
        monkeypatch.undo()
        logger._cache.clear()                                 # type: ignore[attr-defined]


def test_leaves_and_graphs_are_freed() -> None:
    net, x = Net(), Tensor(X)
    gradient = ms.value_and_grad(net, None, net.trainable_params())
    values: list[Any] = []

    def loss(x: Any) -> Any:
        y = x * net.weight
        values.append(weakref.ref(y._t))
        return y.sum()

    gc.disable()
    try:
        gradient(x)
        ms.value_and_grad(loss, None, [net.weight])(x)
        assert values[0]() is None                            # without the garbage collector
    finally:
        gc.enable()
    assert not net.last._t.requires_grad and not net.weight._t.requires_grad and net.weight._t.grad is None


def test_leaves_share_the_memory_and_the_writes_of_weights() -> None:
    """A value that the backward pass needs is written to meanwhile: torch refuses it, as for `detach`."""
    weight = Parameter(Tensor(X.copy()), name="weight")

    def loss() -> Any:
        y = (weight * weight).sum()
        weight._t.add_(1)
        return y

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        ms.grad(loss, None, [weight])()


def test_threads_compute_gradients_beside_each_other() -> None:
    results: list[bool] = []

    def compute(number: int) -> None:
        x = Tensor(X + number)
        for _ in range(20):
            value, gradient = ms.value_and_grad(lambda x: (x * x + x[0]).sum())(x)
            plain = (x + x).asnumpy()
            results.append(np.array_equal(plain, 2 * (X + number)) and value.shape == () and not gradient._t.requires_grad)

    for _ in range(3):                                         # threads that end, whose numbers and memory others get
        threads = [threading.Thread(target=compute, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 240 and all(results) and engine.active == 0


def test_a_thread_beside_a_gradient_has_no_frame() -> None:
    """Operators of another thread compute with the Tensors themselves, while this one replaces them."""
    weight = Parameter(Tensor(X.copy()), name="weight")
    outside: list[Any] = []

    def loss() -> Any:
        thread = threading.Thread(target=lambda: outside.append(weight * 2))
        thread.start()
        thread.join()
        return (weight * 3).sum()

    (gradient,) = ms.grad(loss, None, [weight])()
    assert not outside[0]._t.requires_grad and gradient.asnumpy().tolist() == np.full_like(X, 3).tolist()


def train_step(**options: Any) -> nn.TrainOneStepCell:
    net = nn.Dense(3, 2, weight_init="ones", bias_init="zeros")
    return nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1), **options)


def test_steps_share_their_gradient_function(monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[Any] = []
    create = ops.value_and_grad
    monkeypatch.setattr(ops, "value_and_grad", lambda *arguments, **keywords: created.append(arguments) or create(*arguments, **keywords))
    step, batch = train_step(), (Tensor(X), Tensor(np.ones((2, 2), np.float32)))
    losses = [step(*batch).asnumpy().item() for _ in range(3)]
    assert len(created) == 1 and losses[0] > losses[1] > losses[2]
    copied = copy.deepcopy(step)
    assert copied(*batch).asnumpy().item() == step(*batch).asnumpy().item() and len(created) == 2
    assert np.array_equal(copied.network.backbone_network.weight.asnumpy(), step.network.backbone_network.weight.asnumpy())
    assert b"_gradient_function_" not in pickle.dumps(step.__getstate__().keys() and list(step.__getstate__()))
    other = nn.Dense(3, 2)
    step.network = nn.WithLossCell(other, nn.MSELoss())
    step.weights = ParameterTuple(other.trainable_params())
    step.optimizer = nn.SGD(other.trainable_params(), 0.1)
    before = other.weight.asnumpy().copy()
    step(*batch)
    assert len(created) == 3 and not np.array_equal(other.weight.asnumpy(), before)
    step.weights = list(other.trainable_params())
    step(*batch)
    step(*batch)
    assert len(created) == 5                                   # a list may change between two steps


def test_steps_in_a_graph_after_steps_in_pynative() -> None:
    step, batch = train_step(), (Tensor(X), Tensor(np.ones((2, 2), np.float32)))
    expected = train_step()
    losses = [step(*batch).asnumpy().item()]
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        losses.append(step(*batch).asnumpy().item())
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    losses.append(step(*batch).asnumpy().item())
    assert np.allclose(losses, [expected(*batch).asnumpy().item() for _ in range(3)])
