"""Calls of a Cell's Module inside torch.compile: one function of tensors, which Dynamo takes as it is and AOTAutograd traces.

Dynamo does not look into this function. It reads the parameters and buffers in the dicts of the Modules, and gives them to the function as
inputs, so that those which replace them are used, also inside `torch.func.functional_call`. Before each call it compares the training modes
of the Cells and the counts of their changes, which the hooks of their Modules count too, with those of the compilation, and compiles again
after a change. It also compares the numbers and texts in lists, dicts and sets of the Cells. Calls with hooks inside run without a graph.
A Cell that changes an attribute or such a container in `construct`, or draws random numbers of Python or NumPy, is refused.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors.tensor import TensorBase, raw, tensors, transform
from torchspore.graph.capture.state import Contents, Randomness, Unwatchable
from torchspore.torch_modules.module_frame import ModuleFrame, has_additions, to_mindspore

_MOST_VALUES = 256
"""Containers with more values are not compared before each call."""


class CompiledCall:
    """The call of one Module: the tensors that it reads, and the function that Dynamo's graph calls."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._tensors: list[TensorBase] = []
        self.homes: list[tuple[dict[str, Any], tuple[str, ...]]] = []
        """The dicts of Modules with their parameters and buffers, and the names there: Dynamo reads them in each call."""
        self.constants: list[TensorBase] = []
        self.has_hooks = False
        self.cells: list[Any] = []
        self.torch_modules: list[torch.nn.Module] = []
        self.containers: list[tuple[dict[str, Any], str]] = []
        """The lists, dicts and sets of the Cells that consist of numbers and texts: the dict of the Cell, and the name there."""
        self.function = self._function()

    def prepare(self) -> None:
        """Collect the tensors of Parameters, buffers and constants. It runs while Dynamo traces."""
        module = self._module
        module.synchronize()
        self.cells = [inner.cell for inner in module._cell_modules_()]
        for cell in self.cells:
            cell.__dict__.setdefault(change_counters.SETTINGS_CHANGED_AT, 0)
            cell._params.notify(cell)
            cell._cells.notify(cell)
        self.torch_modules = [inner for inner in module.modules() if not hasattr(inner, "_cell_")]
        self.has_hooks = any(hooks for cell in self.cells for hooks in (cell._hooks_ or {}).values())
        self.has_hooks |= any(has_additions(inner) for inner in module.modules() if inner is not module)
        links = {id(link.tensor): link for link in module._all_links_()}
        homes: dict[int, tuple[dict[str, Any], dict[str, TensorBase]]] = {}
        for link in links.values():
            homes.setdefault(id(link.home), (link.home, {}))[1][link.name] = link.tensor
        self.homes = [(home, tuple(members)) for home, members in homes.values()]
        constants: dict[int, TensorBase] = {}
        self.containers = []
        for cell in self.cells:
            for name, value in _contents(cell):
                constants.update((id(item), item) for item in tensors(value) if id(item) not in links)
                if type(value) in (list, dict, set) and 0 <= _count_values(value) <= _MOST_VALUES:
                    self.containers.append((cell.__dict__, name))
        self.constants = list(constants.values())
        self._tensors = [tensor for _, members in homes.values() for tensor in members.values()] + self.constants

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
        frame = TracedFrame(cell, {id(tensor): (dict(enumerate(values)), number) for number, tensor in enumerate(self._tensors)})
        contents, randomness = Contents(), Randomness()
        for each in self.cells:
            for _, value in _contents(each):
                with contextlib.suppress(Unwatchable):
                    contents.take(value)
        try:
            result = frame.run(cell, to_mindspore(args), to_mindspore(kwargs), lambda result: transform(result, raw), None)
        except AssertionError as error:
            if "convert all Tensors to FakeTensors" not in str(error):
                raise
            raise frame.error_for("reads a Tensor that is not an attribute of a Cell", "store it in an attribute of the Cell") from error
        finally:
            has_changed, has_drawn = bool(contents.restore()), randomness.was_used()
            if has_drawn:
                randomness.restore()
        if has_changed:
            raise frame.error_for("changes a list, a dict or an object in place", _CALL_WITHOUT)
        if has_drawn:
            raise frame.error_for("draws random numbers of Python or NumPy", "draw with mindspore.ops")
        return result


_CALL_WITHOUT = "call the Module without torch.compile"


def _contents(cell: Any) -> list[tuple[str, Any]]:
    """Return the attributes of a Cell that are not torchspore's."""
    return [(name, value) for name, value in cell.__dict__.items() if not (name.startswith("_") and (name.endswith("_") or name in _OURS))]


_OURS = frozenset({"_params", "_cells", "_buffers"})


def _count_values(value: Any) -> int:
    """Return how many numbers and texts a container consists of; a number below 0 if it has other values."""
    if isinstance(value, (list, tuple, set, dict)):
        items = [*value, *value.values()] if isinstance(value, dict) else value
        counts = [_count_values(item) for item in items]
        return -1 if any(count < 0 for count in counts) else sum(counts)
    return 1 if value is None or type(value) in (int, float, bool, str) else -1


def _values(value: Any) -> list[Any]:
    """Return the keys and values of a container of numbers and texts."""
    if isinstance(value, dict):
        return [item for key, inner in value.items() for item in (key, *_values(inner))]
    return [item for inner in value for item in _values(inner)] if isinstance(value, (list, tuple, set)) else [value]


class TracedFrame(ModuleFrame):
    """The frame of a call that torch traces: what no graph of torch.compile represents raises."""

    def __init__(self, cell: Any, homes: dict[int, tuple[Any, Any]]) -> None:
        super().__init__(homes, {})
        self._cell = cell

    def error_for(self, what: str, hint: str) -> RuntimeError:
        return RuntimeError(message(f"torch.compile of as_module({type(self._cell).__name__}): construct {what}",
                                    "a construct that computes its result from its arguments and Parameters", hint=hint))

    def attribute_set(self, owner: Any, name: str, value: Any) -> None:  # noqa: ARG002
        if not getattr(owner.__dict__.get("_params", {}).get(name), "__parameter__", False):
            hint = "call the Module without torch.compile, or keep the value in a Parameter with requires_grad=False"
            raise self.error_for(f"sets {type(owner).__name__}.{name}", hint)

    def host(self, tensor: TensorBase) -> torch.Tensor:  # noqa: ARG002
        raise self.error_for("reads the values of a Tensor", _CALL_WITHOUT)


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a call that Dynamo traces."""
    expected = module._prepare_compiled_()
    compiled = module._compiled_
    for value, constant in zip([item for holder, name in compiled.containers for item in _values(holder[name])], expected):
        if value != constant:                                # Dynamo compares a number only if a branch depends on it
            raise RuntimeError("a container of a Cell changed while torch.compile traced its call")
    cells = [cell.__dict__ for cell in compiled.cells]
    state = [str(change_counters.generation), [(cell["training"], str(cell[change_counters.SETTINGS_CHANGED_AT])) for cell in cells],
             [inner.training for inner in compiled.torch_modules]]
    if compiled.has_hooks:
        return module._call_with_hooks_(args, kwargs)
    values = [home.get(name) for home, names in compiled.homes for name in names] + [constant._t for constant in compiled.constants]
    return compiled.function(state, values, args, kwargs)


def prepare(module: Any) -> tuple[Any, ...]:
    """Bring the form that torch.compile traces up to date. Return the numbers and texts in containers of the Cells."""
    if module._compiled_ is None:
        module._compiled_ = CompiledCall(module)
    module._compiled_.prepare()
    return tuple(item for holder, name in module._compiled_.containers for item in _values(holder[name]))


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
