"""`torchspore.as_cell`: a torch Module as a Cell, whose Parameters are the Module's."""
from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

import torch

from torchspore.base.text import message, short
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import LINKS, rebind, wrap
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor, copied_attributes
from torchspore.mindspore.nn.cell import Cell
from torchspore.torch_modules import module_call
from torchspore.torch_modules.cell_module import CellModule
from torchspore.torch_modules.parameter_links import Link, tensor_of

_OF_THE_MODULE = frozenset({"_module_", "_places_", "_lists_", LINKS, "_params", "_cells", "_buffers", "training"})
"""Attributes of a ModuleCell that a copy gets from its own Module."""


def as_cell(module: Any) -> Cell:
    """Return a Cell that computes with a torch Module and has its parameters, in the same memory.

    Raises TypeError for a value that is not a torch Module, for parameters without memory, and for parts that torch.jit has compiled.
    """
    if isinstance(module, Cell):
        return module
    if not isinstance(module, torch.nn.Module):
        raise TypeError(message(f"as_cell({short(module)})", f"a torch Module, got {type(module).__name__}"))
    if isinstance(module, CellModule):
        module.synchronize()
        return module.cell
    if any(isinstance(inner, torch.jit.ScriptModule) for inner in module.modules()):
        raise TypeError(message(
            f"as_cell({type(module).__name__})", "a Module without parts that torch.jit has compiled",
            hint="take the Module before torch.jit.script or trace, or store it in a tuple: self.teacher = (module,)",
        ))
    return ModuleCell(module)


class ModuleCell(Cell):
    """A torch Module as a Cell. `as_cell` creates it; like every new Cell it is not in training mode."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.__dict__["_module_"] = module
        module.eval()
        persistent = module.state_dict(keep_vars=True)
        of_cells = {id(link.t): link.tensor for inner in module.modules() if isinstance(inner, CellModule) for link in inner._links_}
        places: dict[int, list[module_call.Place]] = {}
        named: dict[int, tuple[str, Any]] = {}
        for path, inner in module.named_modules(remove_duplicate=False):
            for home in (inner._parameters, inner._buffers):
                for name, t in home.items():
                    if t is not None:
                        places.setdefault(id(t), []).append((inner, home, name))
                        named.setdefault(id(t), (f"{path}.{name}" if path else name, t))
        self.__dict__["_places_"] = []
        self.__dict__["_torch_links_"] = []
        for key, (path, t) in named.items():
            tensor = of_cells.get(key)
            if tensor is None:
                tensor = tensor_of(t)                            # another Cell has this Module, or a Module that shares the parameter
                if tensor is None:
                    tensor = _tensor_of(path, t, path in persistent)
            elif tensor.__parameter__:
                tensor.name = path
            if tensor.__parameter__:
                self._params[path] = tensor
            else:
                self.__dict__[path] = tensor
                self.__dict__.setdefault("_buffers", OrderedDict())[path] = False
            self.__dict__["_places_"].append(module_call.Stored(tensor, t, places[key]))
            self.__dict__["_torch_links_"].append(Link(tensor, t, *places[key][0][1:]))
        self.__dict__["_lists_"] = module_call.lists_with_tensors(module, self.__dict__["_places_"])

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the Module, with Tensors."""
        if engine.frame() is None:
            self.synchronize()
        state = self.__dict__
        return module_call.call(self, self._module_, state["_places_"], state["_lists_"], args, kwargs)

    @property
    def module(self) -> torch.nn.Module:
        """The torch Module, with the present values."""
        self.synchronize()
        return self.__dict__["_module_"]

    def synchronize(self) -> None:
        """Join the memory of both sides after one of them received other memory. Calls in PyNative mode do it first."""
        for link in self.__dict__["_torch_links_"]:
            if link.is_replaced() and not link.take_values():
                raise RuntimeError(message(
                    f"as_cell of {type(self.__dict__['_module_']).__name__}: {link.name!r} was replaced in the Module",
                    "the parameters that it had", hint="change the Module first, then call torchspore.as_cell again",
                ))
            link.update()

    @property
    def training(self) -> bool:
        """The training mode of the Module: `set_train` and `train()` set it."""
        return bool(self.__dict__["_module_"].training)

    @training.setter
    def training(self, mode: bool) -> None:
        self.__dict__["_module_"].train(mode)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            module = self.__dict__.get("_module_")
            if module is None or name.startswith("_"):
                raise
            return getattr(module, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> ModuleCell:
        copied = ModuleCell(copy.deepcopy(self.module, memo))
        copied._take_settings_(self._settings_())
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _restored, (self.module, self._settings_())

    def _settings_(self) -> tuple[bool, dict[str, Any], list[dict[str, Any]]]:
        """Return what a copy has too: the mode, the Cell's own attributes, the names and flags of Parameters."""
        own = {
            name: value for name, value in self.__getstate__().items()
            if name not in _OF_THE_MODULE and not isinstance(value, Tensor)
        }
        return self.training, own, [copied_attributes(parameter) for parameter in self._params.values()]

    def _take_settings_(self, settings: tuple[bool, dict[str, Any], list[dict[str, Any]]]) -> None:
        mode, own, attributes = settings
        self.training = mode
        self.__dict__.update(own)
        for parameter, values in zip(self._params.values(), attributes):
            parameter.__dict__.update(values)

    def extend_repr(self) -> str:
        """Return the text of the Module."""
        return repr(self.__dict__["_module_"])


def _tensor_of(path: str, t: torch.Tensor, is_persistent: bool) -> Tensor:
    """Return a Parameter in the memory of a Module's parameter or saved buffer, a Tensor for another buffer."""
    if t.is_meta or t.layout is not torch.strided or isinstance(t, (torch.nn.UninitializedParameter, torch.nn.UninitializedBuffer)):
        raise TypeError(message(f"as_cell: {path!r}", "a parameter with dense memory and values",
                                hint="call the Module once, or give it memory by to_empty and load_state_dict"))
    if not isinstance(t, torch.nn.Parameter) and not is_persistent:
        return wrap(t.detach())
    parameter = Parameter(wrap(t.detach()[:0] if t.ndim else t.detach()), name=path, requires_grad=t.requires_grad)
    rebind(parameter, t.detach())
    return parameter


def _restored(module: torch.nn.Module, settings: tuple[bool, dict[str, Any], list[dict[str, Any]]]) -> ModuleCell:
    cell = ModuleCell(module)
    cell._take_settings_(settings)
    return cell
