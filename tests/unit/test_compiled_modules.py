"""`torch.compile` of a Cell's Module: what changes after the compilation, hooks, and parameters that a function replaces for a call."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from mindspore import Parameter, Tensor, nn

import torchspore


class Scale(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor(np.array([1.0, 2.0], np.float32)), name="w")
        self.k = Tensor(np.array([1.0, 1.0], np.float32))

    def construct(self, x: Any) -> Any:
        return self.w * x * self.k


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.a = Scale()

    def construct(self, x: Any) -> Any:
        return self.a(x)


X = torch.ones(2)


@pytest.fixture(autouse=True)
def _no_compilations() -> None:
    torch._dynamo.reset()


def compiled_and_called(**options: Any) -> tuple[Any, Any]:
    module = torchspore.as_module(Net())
    compiled = torch.compile(module, backend="aot_eager", **options)
    assert compiled(X).tolist() == [1, 2]
    return module, compiled


def replaced(values: float = 3.0) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.full((2,), values))


REPLACEMENTS: dict[str, Callable[[Any], Any]] = {
    "the attribute": lambda module: setattr(module.a, "w", replaced()),
    "twice": lambda module: (setattr(module.a, "w", replaced(9.0)), setattr(module.a, "w", replaced())),
    "load_state_dict": lambda module: module.load_state_dict({"a.w": torch.full((2,), 3.0)}, assign=True),
    "the dict": lambda module: module.a._parameters.update(w=replaced()),
    "set_data": lambda module: module.cell.a.w.set_data(Tensor(np.full(2, 3.0, np.float32))),
}


@pytest.mark.parametrize("way", REPLACEMENTS)
def test_parameters_that_are_replaced_after_the_compilation(way: str) -> None:
    module, compiled = compiled_and_called(fullgraph=True)
    REPLACEMENTS[way](module)
    result = compiled(X)
    result.sum().backward()
    assert result.tolist() == module(X).tolist() == [3, 3] and module.a.w.grad.tolist() == [1, 1]


def test_functional_call() -> None:
    module = torchspore.as_module(Net())

    def run(values: Any, x: Any) -> Any:
        return torch.func.functional_call(module, values, (x,))

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    for number in (7.0, 8.0):
        assert compiled({"a.w": torch.full((2,), number)}, X).tolist() == [number, number]
    gradient = torch.compile(torch.func.grad(lambda *args: run(*args).sum()), backend="aot_eager", fullgraph=True)
    assert gradient({"a.w": X * 7}, X * 2)["a.w"].tolist() == [2, 2] and module.a.w.tolist() == [1, 2]


def test_constants_and_dtypes_that_change() -> None:
    module, compiled = compiled_and_called(fullgraph=True)
    module.cell.a.k.assign_value(Tensor(np.array([5.0, 5.0], np.float32)))
    assert compiled(X).tolist() == module(X).tolist() == [5, 10]
    module.double()
    assert compiled(X.double()).dtype == compiled(X).dtype == module(X).dtype == torch.float64


@pytest.mark.parametrize("change", [
    lambda cell: setattr(cell, "a", Scale()), lambda cell: cell._cells.update(a=Scale()),
    lambda cell: cell.a._params.update(w=Parameter(Tensor([3.0, 3.0]), name="w")),
])
def test_another_structure_is_refused(change: Callable[[Any], Any]) -> None:
    module, compiled = compiled_and_called()
    change(module.cell)
    with pytest.raises(Exception, match=r"was added, removed or replaced: expected the structure that the Cell had"):
        compiled(X)


def test_hooks_run_in_each_call() -> None:
    """A graph would run them once, when it is traced."""
    module, compiled = compiled_and_called()
    sums: list[float] = []
    handles = [
        module.a.register_forward_hook(lambda _, __, result: result * 3),
        module.a.register_forward_pre_hook(lambda _, args: (args[0] * 2,)),
        module.cell.a.register_forward_hook(lambda _, __, result: sums.append(float(result.sum()))),
    ]
    for _ in range(2):
        assert compiled(X).tolist() == [6, 12]
    assert sums == [6, 6]
    for handle in handles:
        handle.remove()
    assert compiled(X).tolist() == [1, 2] and len(sums) == 2
    module.register_forward_hook(lambda _, __, result: result * 3)
    with torch.no_grad():
        assert compiled(X).tolist() == [3, 6]


def test_hooks_end_one_graph() -> None:
    module, compiled = compiled_and_called(fullgraph=True)
    module.a.register_forward_hook(lambda _, __, result: result * 3)
    with pytest.raises(Exception, match=r"torch.compile of as_module: a Cell or a Module inside has hooks"):
        compiled(X)


def test_another_forward() -> None:
    module, compiled = compiled_and_called()
    module.a.forward = lambda x: x * 50
    assert compiled(X).tolist() == module(X).tolist() == [50, 50]
    del module.a.forward
    assert compiled(X).tolist() == module(X).tolist() == [1, 2]


def test_modules_of_one_cell_share_a_new_parameter() -> None:
    cell = Scale()
    first, second = torchspore.as_module(cell), torchspore.as_module(cell)
    compiled = torch.compile(second, backend="aot_eager", fullgraph=True)
    compiled(X)
    first.w = replaced()
    second(X).sum().backward()
    assert second.w is first.w and first.w.grad.tolist() == [1, 1]
    assert first(X).tolist() == second(X).tolist() == compiled(X).tolist() == [3, 3]
    second.load_state_dict({"w": X * 5}, assign=True)
    assert second.w is first.w and first(X).tolist() == compiled(X).tolist() == cell(Tensor(X.numpy())).asnumpy().tolist() == [5, 5]


def test_a_write_into_the_parameters_of_a_module_is_its_alone() -> None:
    """`torch.func.functional_call` writes there for the time of a call."""
    cell = Scale()
    first, second = torchspore.as_module(cell), torchspore.as_module(cell)
    before = second(X).tolist()
    first._parameters["w"] = torch.nn.Parameter(X * 7)
    assert first(X).tolist() == [7, 7] and second(X).tolist() == cell(Tensor(X.numpy())).asnumpy().tolist() == before


@pytest.mark.parametrize("setting", [
    lambda weight: setattr(weight, "requires_grad", False), lambda weight: weight.requires_grad_(False),
])
def test_requires_grad_in_construct(setting: Callable[[Any], Any]) -> None:
    class Freezing(Scale):
        def construct(self, x: Any) -> Any:
            setting(self.w)
            return self.w * x

    text = "requires_grad of Parameter 'w' was set in a call of as_module: expected a value that calls do not change.\n\n"
    with pytest.raises(ValueError, match=f"^{text}hint: set it before the call.$"):
        torchspore.as_module(Freezing())(X)
