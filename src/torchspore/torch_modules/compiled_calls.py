"""Calls of a Cell's Module inside torch.compile: one function of tensors, which Dynamo takes as it is and AOTAutograd traces.

Dynamo does not look into this function. Before each call it compares the training modes of the Cells and the counts of their changes with
those of the compilation, and compiles again after a change. A Cell that changes an attribute in `construct` is refused.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.execution import thread_state
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tensor import TensorBase, raw, transform
from torchspore.torch_modules.module_frame import ModuleFrame, to_mindspore


class CompiledCall:
    """The call of one Module: the tensors that it reads, and the function that Dynamo's graph calls."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._tensors: list[TensorBase] = []
        self.values: list[torch.Tensor] = []
        self.cells: list[Any] = []
        self.torch_modules: list[torch.nn.Module] = []
        self.function = self._function()

    def prepare(self) -> None:
        """Collect the tensors of Parameters, buffers and constants. It runs while Dynamo traces."""
        self._module.synchronize()
        self.cells = [module.cell for module in self._module._cell_modules_()]
        for cell in self.cells:
            cell.__dict__.setdefault(change_counters.SETTINGS_CHANGED_AT, 0)
        self.torch_modules = [module for module in self._module.modules() if not hasattr(module, "_cell_")]
        tensors = {id(link.tensor): (link.tensor, link.home[link.name]) for link in self._module._all_links_()}
        for cell in self.cells:
            for value in cell.__dict__.values():
                for item in value if type(value) in (list, tuple) else (value,):
                    if isinstance(item, TensorBase):
                        tensors.setdefault(id(item), (item, item._t))
        self._tensors = [tensor for tensor, _ in tensors.values()]
        self.values = [t for _, t in tensors.values()]

    def _function(self) -> Callable[..., Any]:
        def run_cell(_: list[Any], values: list[torch.Tensor], args: Any, kwargs: Any) -> Any:
            result = self._compute(values, args, kwargs)
            _check(self._module.cell, result)
            return result

        torch.compiler.allow_in_graph(run_cell)
        return run_cell

    def _compute(self, values: list[torch.Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the Cell with `values` in place of its tensors."""
        cell = self._module.cell
        frame = TracedFrame(cell, {id(tensor): (values, number) for number, tensor in enumerate(self._tensors)})
        with frame.open():
            result = thread_state.in_pynative(cell._run_, to_mindspore(args), to_mindspore(kwargs))
            result = transform(result, raw)
            frame.write_back()
        return result


class TracedFrame(ModuleFrame):
    """The frame of a call that torch traces: what no graph of torch.compile represents raises."""

    def __init__(self, cell: Any, homes: dict[int, tuple[Any, Any]]) -> None:
        super().__init__(homes, {})
        self._cell = cell

    def _refuse(self, what: str, hint: str) -> RuntimeError:
        return RuntimeError(message(f"torch.compile of as_module({type(self._cell).__name__}): construct {what}",
                                    "a construct that computes its result from its arguments and Parameters", hint=hint))

    def attribute_set(self, owner: Any, name: str, value: Any) -> None:  # noqa: ARG002
        if not getattr(owner.__dict__.get("_params", {}).get(name), "__parameter__", False):
            hint = "call the Module without torch.compile, or keep the value in a Parameter with requires_grad=False"
            raise self._refuse(f"sets {type(owner).__name__}.{name}", hint)

    def host(self, tensor: TensorBase) -> torch.Tensor:  # noqa: ARG002
        raise self._refuse("reads the values of a Tensor", "call the Module without torch.compile")


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a call that Dynamo traces."""
    module._prepare_compiled_()
    compiled = module._compiled_
    cells = [cell.__dict__ for cell in compiled.cells]
    state = [str(change_counters.generation), [(cell["training"], str(cell[change_counters.SETTINGS_CHANGED_AT])) for cell in cells],
             [inner.training for inner in compiled.torch_modules]]
    return compiled.function(state, compiled.values, args, kwargs)


def prepare(module: Any) -> bool:
    """Bring the form that torch.compile traces up to date."""
    if module._compiled_ is None:
        module._compiled_ = CompiledCall(module)
    module._compiled_.prepare()
    return True


def _check(cell: Any, result: Any) -> None:
    """Raises TypeError for a result that a graph of torch.compile cannot have."""
    if isinstance(result, (list, tuple)):
        for item in result:
            _check(cell, item)
    elif not isinstance(result, torch.Tensor):
        raise TypeError(message(
            f"torch.compile of as_module({type(cell).__name__}): the result has a value of type {type(result).__name__}",
            "a Tensor, or tuples and lists of Tensors",
        ))
