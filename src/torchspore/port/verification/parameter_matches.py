"""The Parameters of a Cell beside the tensors of its port."""
from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch

from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.train import torch_layers
from torchspore.port.verification.results import CannotVerify


def copied_parameters(cell: Any, module: torch.nn.Module) -> Iterator[tuple[str, Any, torch.Tensor]]:
    """Return (path, Parameter, the tensor of the Module that corresponds). Raises CannotVerify if one has none."""
    for path, layer in cell.cells_and_names():
        parts = torch_layers._torch_path(cell, path).split(".")
        target_path = ".".join(part for part in parts if part != "_backbone")            # a layer that amp leaves in float32
        for attribute, parameter in layer._params.items():
            if parameter is None:
                continue
            name = torch_layers._renamed(layer, attribute)
            if name is None:                                 # averages of InstanceNorm, which no call reads
                continue
            try:
                target = functools.reduce(getattr, name.split("."), module.get_submodule(target_path))       # name.0 of a ParameterTuple
            except AttributeError as error:
                raise CannotVerify(f"{path or 'the Cell'}.{attribute} has no counterpart: {error}") from error
            if target is None and not parameter.requires_grad and _is_without_effect(parameter, name):
                continue
            if target is None and not name.startswith("running"):
                raise CannotVerify(f"{path or 'the Cell'}.{attribute} has no counterpart: the Module has None")
            if isinstance(target, torch.Tensor):
                yield f"{path}.{attribute}".lstrip("."), parameter, target
        yield from _parameters_in_lists(path, layer, module, target_path)


def _parameters_in_lists(path: str, layer: Any, module: Any, target_path: str) -> Iterator[tuple[str, Any, torch.Tensor]]:
    """Return those of Cells in lists and dicts that are attributes, which neither MindSpore nor torch registers."""
    counterpart = functools.reduce(lambda owner, part: getattr(owner, part, None), filter(None, target_path.split(".")), module)
    for name, value in list(vars(layer).items()):
        if name.startswith("_") or type(value) not in (list, tuple, dict):
            continue
        others: Any = getattr(counterpart, name, None)       # the counterpart of a distribution is no Module
        if type(others) is not type(value) or len(others) != len(value):
            continue
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            if isinstance(value[key], Cell) and isinstance(others[key], torch.nn.Module):
                for inner, parameter, target in copied_parameters(value[key], others[key]):
                    yield f"{path}.{name}[{key!r}].{inner}".lstrip("."), parameter, target


def _is_without_effect(parameter: Any, name: str) -> bool:
    """Return whether a norm's weight or bias is constant and changes nothing, as with affine=False: torch's norm has none."""
    values = {"weight": 1.0, "bias": 0.0}
    return name in values and bool((parameter.asnumpy() == values[name]).all())
