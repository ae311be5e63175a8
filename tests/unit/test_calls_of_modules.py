"""Calls of `torchspore.as_module` read what rarely changes once: each change between two calls must be seen by the next."""
from __future__ import annotations

import copy
import gc
import threading
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn, ops

import torchspore
from torchspore.engine.execution import thread_state
from torchspore.engine.tensors import tensor as engine
from torchspore.torch_modules.module_frame import ModuleFrame


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(3, 4), nn.Dense(4, 2)

    def construct(self, x: Any) -> Any:
        return self.second(ops.relu(self.first(x)))


def expected(module: Any, x: torch.Tensor) -> torch.Tensor:
    """Return what the parameters of the Module say now, computed by torch."""
    first, second = module.first, module.second
    return torch.nn.functional.linear(torch.relu(torch.nn.functional.linear(x, first.weight, first.bias)), second.weight, second.bias)


def fresh() -> tuple[Any, torch.Tensor]:
    """Return a Module that was called, and an input."""
    module, x = torchspore.as_module(Net()), torch.randn(5, 3)
    assert torch.equal(module(x), expected(module, x))
    return module, x


def _assign_parameter(module: Any) -> None:
    module.first.weight = torch.nn.Parameter(torch.randn(4, 3))


def _set_data_of_the_cell(module: Any) -> None:
    module.cell.first.weight.set_data(Tensor(np.ones((4, 3), np.float32)))


def _exchange_modules(module: Any) -> None:
    module.cell.first.weight, module.cell.second.bias = Tensor(np.ones((4, 3), np.float32)), Tensor(np.ones(2, np.float32))


CHANGES: dict[str, Callable[[Any], Any]] = {
    "another Parameter": _assign_parameter,
    "other memory": lambda module: setattr(module.first.weight, "data", torch.randn(4, 3)),
    "values in place": lambda module: module.first.weight.data.mul_(2),
    "set_data of the Cell's Parameter": _set_data_of_the_cell,
    "values assigned to the Cell": _exchange_modules,
    "load_state_dict": lambda module: module.load_state_dict({key: torch.ones_like(value) for key, value in module.state_dict().items()}),
    "load_state_dict(assign=True)": lambda module: module.load_state_dict(
        {key: torch.ones_like(value) for key, value in module.state_dict().items()}, assign=True,
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_next_call_computes_with_changed_parameters(change: str) -> None:
    module, x = fresh()
    CHANGES[change](module)
    result = module(x)
    assert torch.equal(result, expected(module, x))
    result.sum().backward()
    gradient = module.first.weight.grad.clone()
    module.zero_grad()
    expected(module, x).sum().backward()
    assert torch.equal(gradient, module.first.weight.grad)
    assert np.array_equal(module.cell.first.weight.asnumpy(), module.first.weight.detach().numpy())
    assert np.array_equal(module.cell(Tensor.from_torch(x)).asnumpy(), result.detach().numpy())


def test_another_dtype_and_frozen_parameters() -> None:
    module, x = fresh()
    module.double()
    assert torch.equal(module(x.double()), expected(module, x.double()))
    module.float()
    module.first.weight.requires_grad_(False)
    module(x).sum().backward()
    assert module.first.weight.grad is None and module.first.bias.grad is not None and module.cell.first.weight.requires_grad is False
    module.cell.first.weight.requires_grad = True
    module(x).sum().backward()
    assert module.first.weight.grad is not None


def test_hooks_and_forwards_that_are_added_and_removed() -> None:
    module, x = fresh()
    before = module(x)
    handle = module.first.register_forward_hook(lambda *_: torch.ones(5, 4))
    assert torch.equal(module(x), torch.nn.functional.linear(torch.ones(5, 4), module.second.weight, module.second.bias))
    handle.remove()
    assert torch.equal(module(x), before)
    module.second.forward = lambda x: x * 2
    assert torch.equal(module(x), torch.relu(module.first(x)) * 2)
    del module.second.forward
    assert torch.equal(module(x), before)
    module.first._forward_hooks = {0: lambda *_: torch.ones(5, 4)}                    # some libraries replace the dict
    assert not torch.equal(module(x), before)
    module.first._forward_hooks = {}
    names: list[str] = []
    handle = torch.nn.modules.module.register_module_forward_hook(lambda inner, *_: names.append(type(inner).__name__))
    try:
        module(x)
    finally:
        handle.remove()
    assert len(names) == 3 and torch.equal(module(x), before)


def test_parameters_that_are_replaced_for_one_call() -> None:
    module, x = fresh()
    ones = {name: torch.ones_like(parameter) for name, parameter in module.named_parameters()}
    assert torch.equal(torch.func.functional_call(module, ones, (x,)), torch.relu(x.sum(1, keepdim=True) + 1) * 4 @ torch.ones(1, 2) + 1)
    assert torch.equal(module(x), expected(module, x))
    torch.nn.utils.parametrize.register_parametrization(module.second, "bias", torch.nn.Tanh())
    with pytest.raises(RuntimeError, match="parametrizations was added"):
        module(x)


@pytest.mark.parametrize("change", [
    lambda module: setattr(module.first, "extra", torch.nn.ReLU()), lambda module: setattr(module.cell, "third", nn.Dense(2, 2)),
    lambda module: setattr(module.cell, "first", nn.Dense(3, 4)), lambda module: module._modules.pop("first"),
    lambda module: module.cell._cells.update(second=nn.Dense(4, 2)),
])
def test_a_structure_that_changes_between_calls_raises(change: Callable[[Any], Any]) -> None:
    module, x = fresh()
    change(module)
    with pytest.raises(RuntimeError, match="was added, removed or replaced"):
        module(x)


def test_a_torch_module_inside_a_cell_that_changes() -> None:
    net, x = Net(), torch.randn(5, 3)
    net.second = inner = torch.nn.Sequential(torch.nn.Linear(4, 2))
    module = torchspore.as_module(net)
    module(x)
    inner.append(torch.nn.ReLU())
    assert torch.equal(module(x), inner(torch.relu(module.first(x))))
    handle = inner[0].register_forward_hook(lambda *_: torch.ones(5, 2))
    assert torch.equal(module(x), torch.ones(5, 2))
    handle.remove()
    assert torch.equal(module(x), inner(torch.relu(module.first(x))))


class Rebinding(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 3)

    def construct(self, x: Any) -> Any:
        y = self.dense(x)
        self.dense.bias.set_data(Tensor(np.full(3, 7, np.float32)))
        return y + self.dense.bias


def test_construct_that_gives_a_parameter_other_values() -> None:
    net, x = Rebinding(), torch.randn(2, 3)
    module = torchspore.as_module(net)
    for _ in range(2):
        bias = module.dense.bias.detach().clone()
        y = torch.nn.functional.linear(x, module.dense.weight, bias) + 7
        assert torch.allclose(module(x), y) and module.dense.bias.tolist() == [7, 7, 7]


class Failing(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.count = nn.Dense(3, 3), ms.Parameter(Tensor(0.0), name="count", requires_grad=False)

    def construct(self, x: Any, fails: bool = False) -> Any:
        self.count = self.count + 1
        y = self.dense(x)
        if fails:
            raise LookupError("inside")
        return y + self.count


def test_an_exception_leaves_nothing_open() -> None:
    module, x = torchspore.as_module(Failing()), torch.randn(2, 3)
    before = engine.active, thread_state.local.in_pynative, thread_state.local.frame
    module(x)
    with pytest.raises(LookupError, match="inside"):
        module(x, fails=True)
    assert (engine.active, thread_state.local.in_pynative, thread_state.local.frame) == before
    assert torch.equal(module(x).detach(), module.dense(x).detach() + 2)               # the failed call wrote nothing


class Truncating(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(3, 3)

    def construct(self, x: Any) -> Any:
        y = self.dense(x) * 3
        return (y - y.astype(ms.int32) * 2).sum()


def test_casts_to_integers_have_mindspores_gradient() -> None:
    net, x = Truncating(), torch.randn(4, 3)
    module = torchspore.as_module(net)
    module(x).backward()
    gradient, = ms.grad(net, None, [net.dense.weight])(Tensor.from_torch(x))
    assert np.array_equal(module.dense.weight.grad.numpy(), gradient.asnumpy())
    module.zero_grad()
    (module(x) + Net()(Tensor.from_torch(x)).torch().sum()).backward()                 # nothing follows integers after the call
    assert np.array_equal(module.dense.weight.grad.numpy(), gradient.asnumpy())


def test_calls_leave_no_garbage() -> None:
    module, x = fresh()
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            module(x).sum().backward()
        assert not any(type(value) is ModuleFrame for value in gc.get_objects())
    finally:
        gc.enable()


def test_calls_in_two_threads() -> None:
    module, x = fresh()
    copied = copy.deepcopy(module)
    copied.first.weight.data.zero_()
    answers: dict[str, list[bool]] = {"module": [], "copied": []}

    def run(name: str, each: Any) -> None:
        for _ in range(60):
            answers[name].append(torch.equal(each(x), expected(each, x)))

    threads = [threading.Thread(target=run, args=case) for case in (("module", module), ("copied", copied), ("module", module))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {"module": [True] * 120, "copied": [True] * 60}
