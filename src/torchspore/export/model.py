"""A call as a graph for export: the caller's Tensors are its inputs, all other Tensors that it reads are its parameters."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.tensors.tensor import TensorBase, tensors
from torchspore.graph import passes
from torchspore.graph.capture.capture import In, Out
from torchspore.graph.refusal import Refusal
from torchspore.graph.settings import settings_of
from torchspore.graph.specialization import compilation


class NotExportable(ValueError):
    """The call can't be one graph; the text says why and where."""


@dataclass
class Model:
    """A graph whose inputs are first those of the caller, then `parameters`, with the structure of its result."""

    module: torch.fx.GraphModule
    names: list[str]                       # of all inputs, in the graph's order
    parameters: dict[str, torch.Tensor]    # those of them that the file holds
    result: Any                            # tuples, lists and dicts, with Out and In in the places of Tensors, and plain values

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs that the caller gives."""
        return [name for name in self.names if name not in self.parameters]


def captured(owner: Any, function: Callable[..., Any], args: Sequence[Any], call: str) -> Model:
    """The graph of `function(*args)`, a Cell's or a function's. Raises NotExportable."""
    try:
        captured = compilation.only_captured(owner, function, tuple(args), settings_of(owner, function))
    except Refusal as refusal:
        raise NotExportable(message(f"{call}: {refusal.line}: {compilation.name_of(owner)} {refusal.reason}", "a call that is one graph",
                                    hint="what Python must do belongs outside of construct")) from None
    if captured.write_backs:
        cell, name, _ = captured.write_backs[0]
        raise NotExportable(message(f"{call}: {type(cell).__name__} sets its attribute {name!r} in the call", "a call that sets none",
                                    hint="make it a Parameter, or call set_train(False) first"))
    given = {id(t): f"input{index}" for index, t in enumerate(tensors(list(args)))}
    names: list[str] = []
    parameters: dict[str, torch.Tensor] = {}
    for index, item in enumerate(captured.lifted):
        name = given.get(id(item)) or _name(item, index, parameters)
        if id(item) not in given:
            parameters[name] = (item._t if isinstance(item, TensorBase) else item()).detach()
        names.append(name)
    module = passes.run(passes.CLEAN, captured.module)
    return Model(_without_unread(module), names, parameters, captured.result)


def _name(item: Any, index: int, taken: dict[str, torch.Tensor]) -> str:
    name = getattr(item, "name", None) if getattr(item, "__parameter__", False) else None
    name = name if isinstance(name, str) and name else f"constant{index}"
    return name if name not in taken else f"{name}.{index}"


def _without_unread(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def filled(structure: Any, outputs: Sequence[Any], inputs: Sequence[Any]) -> Any:
    """Return the result of a call: the structure with outputs and inputs in their positions."""
    if isinstance(structure, Out):
        return outputs[structure.index]
    if isinstance(structure, In):
        return inputs[structure.index]
    if isinstance(structure, dict):
        return {key: filled(value, outputs, inputs) for key, value in structure.items()}
    if isinstance(structure, (tuple, list)):
        return type(structure)(filled(item, outputs, inputs) for item in structure)
    return structure


def leaves(structure: Any) -> list[Out | In]:
    """The Tensors of a result, from left to right."""
    if isinstance(structure, (Out, In)):
        return [structure]
    items = structure.values() if isinstance(structure, dict) else structure if isinstance(structure, (tuple, list)) else ()
    return [leaf for item in items for leaf in leaves(item)]
