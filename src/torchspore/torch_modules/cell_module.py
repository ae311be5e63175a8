"""`torchspore.as_module`: a Cell as a torch Module, whose parameters are the Cell's Parameters."""
from __future__ import annotations

import contextlib
import copy
import inspect
import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch

from torchspore.base.text import message, short
from torchspore.engine.tensors import change_counters
from torchspore.engine.tensors import tensor as engine
from torchspore.engine.tensors.tensor import LINKS, wrap
from torchspore.engine.torch_internals import torch_private
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.nn.cell_members import MemberDict
from torchspore.torch_modules import compiled_calls, parameter_links, torch_state
from torchspore.torch_modules.module_frame import ModuleFrame, refusing_other_draws, result_in_torch, to_mindspore
from torchspore.torch_modules.parameter_links import Link, can_be_trained, stored_tensor, torch_parameter_of

_STATISTICS = frozenset({"moving_mean", "moving_variance"})
"""Parameters of norms that are buffers in torch: the Cell writes into them, and no optimizer trains them."""
_HOOKS = (
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
    "_backward_hooks", "_backward_pre_hooks",
)
_CALLS = ("forward", "_compiled_call_impl")
"""Attributes of a Module that change what its call runs."""


def as_module(cell: Any, naming: str = "mindspore") -> torch.nn.Module:
    """Return a torch Module that computes with `cell` and has its Parameters, in the same memory.

    Raises TypeError for a value that is not a Cell, ValueError for another `naming` and for layers that torch has no names for.
    """
    if not isinstance(cell, Cell):
        raise TypeError(message(f"as_module({short(cell)})", f"a Cell, got {type(cell).__name__}"))
    if naming not in ("mindspore", "torch"):
        raise ValueError(message(f"as_module(naming={naming!r:.40})", "'mindspore' or 'torch'"))
    if "_module_" in cell.__dict__:                          # a Cell that `as_cell` returned
        return cell.module
    return module_of(cell, naming)


def module_of(cell: Cell, naming: str) -> CellModule:
    """Return the Module of a Cell that is not one of `as_cell`. Raises ValueError for layers that torch has no names for."""
    module = module_class(type(cell))(cell, {}, {})
    module._naming_ = naming
    if naming == "torch":
        torch_state.use_torch_names(module, cell)
    return module


CHANGED: dict[int, torch.Tensor] = {}
"""The result of `Walk.update` after a change of the structure."""


class CellModule(torch.nn.Module):
    """A Cell as a torch Module. `as_module` creates it, with a Module of this class for each Cell inside."""

    def __init__(self, cell: Cell, modules: dict[int, CellModule], tensors: dict[int, torch.Tensor]) -> None:
        """`modules` and `tensors` are those that exist already, by the ids of Cells and Tensors: shared ones stay shared."""
        self.__dict__["_cell_"] = cell
        super().__init__()
        self._cell_, self._naming_ = cell, "mindspore"
        self._links_: list[Link] = []
        self._compiled_: Any = None
        self._walked_: Walk | None = None
        for name in ("_modules", *_HOOKS):
            self.__dict__[name] = MemberDict()              # counts its changes
        modules[id(cell)] = self
        for name, parameter in cell._params.items():
            if parameter is not None:
                self._join_(name, parameter, tensors)
        for name, buffer in cell._direct_buffers_():
            self._join_(name, buffer, tensors, cell.__dict__["_buffers"][name])
        for name, inner in cell._cells.items():
            if inner is not None:
                self._modules[name] = self._module_for_(inner, modules, tensors)
        self._mirrored_ = {name: (cell._cells[name], module) for name, module in self._modules.items()}
        for name in ("_modules", *_HOOKS):
            self.__dict__[name].notify(cell)

    @staticmethod
    def _module_for_(inner: Cell, modules: dict[int, CellModule], tensors: dict[int, torch.Tensor]) -> torch.nn.Module:
        """Return the Module for an inner Cell; the torch Module itself of one that `as_cell` returned."""
        if "_module_" in inner.__dict__:
            return inner.module
        existing = modules.get(id(inner))
        return existing if existing is not None else module_class(type(inner))(inner, modules, tensors)

    def _join_(self, name: str, tensor: Any, tensors: dict[int, torch.Tensor], is_persistent: bool = True) -> None:
        """Register the torch tensor of a Parameter or a buffer."""
        t = stored_tensor(tensor, f"{type(self._cell_).__name__}.{name}")
        is_parameter = tensor.__parameter__ and name not in _STATISTICS and (can_be_trained(t) or not tensor.requires_grad)
        if id(tensor) not in tensors:
            existing = torch_parameter_of(tensor) if is_parameter else t.detach()      # that of another Module of this Cell
            tensors[id(tensor)] = torch.nn.Parameter(t, requires_grad=tensor.requires_grad) if existing is None else existing
        home = self._parameters if is_parameter else self._buffers
        home[name] = tensors[id(tensor)]  # type: ignore[assignment]
        if not is_parameter and not is_persistent:
            self._non_persistent_buffers_set.add(name)
        self._links_.append(Link(tensor, tensors[id(tensor)], home, name, can_follow=True))

    @property
    def cell(self) -> Cell:
        """The Cell that computes."""
        return self._cell_

    # ---- the call

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the Cell, with torch tensors."""
        if torch.compiler.is_dynamo_compiling():
            return compiled_calls.call(self, args, kwargs)
        if engine.active and (around := engine.thread_state.frame) is not None:
            return self._call_in_frame_(around, args, kwargs)
        walk = self._walked_
        values = CHANGED if walk is None else walk.update()
        if walk is None or values is CHANGED:
            walk = self._collect_()
            values = walk.update()
        inputs = []
        for value in args:
            inputs.append(wrap(value) if value.__class__ is torch.Tensor else to_mindspore(value))
        kwargs = to_mindspore(kwargs) if kwargs else kwargs
        frame = ModuleFrame(walk.homes, walk.module_of)
        if torch_private.backward_node() is None:
            return frame.run(self._cell_, inputs, kwargs, walk.convert, values)
        with refusing_other_draws(type(self._cell_).__name__):
            return frame.run(self._cell_, inputs, kwargs, walk.convert, values)

    def _call_in_frame_(self, around: engine.Frame, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the Cell inside a call of another Module, or inside a gradient or a graph of MindSpore, which returns substitutes."""
        call = self._cell_ if around.modules is None else self._cell_._run_
        return result_in_torch(type(self._cell_).__name__, call(*to_mindspore(args), **to_mindspore(kwargs)))

    @torch.compiler.assume_constant_result
    def _prepare_compiled_(self) -> tuple[Any, ...]:
        """Run while Dynamo traces a call. Dynamo of torch 2.11 accepts such a method, but no such function with a Module as an argument."""
        return compiled_calls.prepare(self)

    @torch.compiler.disable(reason="torch.compile of as_module: a Cell or a Module inside has hooks")
    def _call_with_hooks_(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call outside of the graphs of torch.compile: a graph would run hooks once, when it is traced."""
        return self.forward(*args, **kwargs)

    def _cell_modules_(self) -> Iterator[CellModule]:
        return (module for module in self.modules() if isinstance(module, CellModule))

    def _module_cells_(self) -> Iterator[Cell]:
        """Return the Cells inside that `as_cell` returned."""
        return (cell for module in self._cell_modules_() for cell, _ in module._mirrored_.values() if "_module_" in cell.__dict__)

    def _all_links_(self) -> Iterator[Link]:
        """Return what joins the tensors of Cells and Modules, of all Cells inside."""
        yield from (link for module in self._cell_modules_() for link in module._links_)
        yield from (link for cell in self._module_cells_() for link in cell.__dict__[LINKS])

    def _collect_(self) -> Walk:
        """Collect the Modules and links inside. Raises RuntimeError if a Cell has other Cells or Parameters than its Module."""
        for module in self._cell_modules_():
            module._check_structure_()
        walk = self.__dict__["_walked_"] = Walk(self)
        return walk

    # ---- one memory

    def synchronize(self) -> None:
        """Join the memory of both sides after one of them received other memory. Calls of the Module do it first.

        Raises RuntimeError if the Cell has other Cells or Parameters than the Module.
        """
        if self._walked_ is None or self._walked_.update() is CHANGED:
            self._collect_().update()

    def _check_structure_(self) -> None:
        cell = self._cell_
        inner = {name: value for name, value in cell._cells.items() if value is not None}
        names = [name for name in {**inner, **self._modules}
                 if self._mirrored_.get(name, (None, None)) != (inner.get(name), self._modules.get(name))]
        own = {id(value) for value in cell._params.values() if value is not None}
        if own != {id(link.tensor) for link in self._links_ if link.tensor.__parameter__}:
            names.append("a Parameter")
        if names:
            raise RuntimeError(message(
                f"as_module of {type(cell).__name__}: {', '.join(names)} was added, removed or replaced", "the structure that the Cell had",
                hint="change the Cell first, then call torchspore.as_module again",
            ))

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _CALLS:
            self._cell_._changed_(name)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name in _CALLS:
            self._cell_._changed_(name)

    def register_parameter(self, name: str, param: torch.nn.Parameter | None) -> None:
        """As torch's; a torch Parameter that replaces one of the Cell gives the Cell's Parameter its memory."""
        super().register_parameter(name, param)
        for link in self.__dict__.get("_links_", ()):
            if link.home is self._parameters and link.name == name:
                link.adopt()

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Any:
        self._synchronize_own_()
        super()._apply(fn, recurse)
        for link in self._links_:
            if link.is_replaced():
                link.adopt()
            link.update()
        for cell, _ in self._mirrored_.values():
            if "_module_" in cell.__dict__:
                cell.synchronize()
        linked = {id(link.tensor) for link in self._links_}
        for value in self._cell_.__dict__.values():
            if isinstance(value, Tensor) and id(value) not in linked:         # a constant follows to the device and dtype
                value._t = fn(value._t)
        return self

    def _synchronize_own_(self) -> None:
        for link in self._links_:
            if not link.is_replaced():
                link.update()

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """As torch's, in the names of `Cell.state_dict`, or in torch's names with `naming="torch"`."""
        self._synchronize_own_()
        return super().state_dict(*args, **kwargs)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """As torch's, from the names that `state_dict` has."""
        self.synchronize()
        result = super().load_state_dict(state_dict, strict, assign)
        if assign:
            for link in self._all_links_():
                link.adopt()
        return result

    # ---- the training mode

    @property
    def training(self) -> bool:
        """The training mode of the Cell: `train()`, `eval()` and `set_train` set it."""
        return bool(self._cell_.training)

    @training.setter
    def training(self, mode: bool) -> None:
        if "_links_" in self.__dict__:                      # nn.Module sets it when it is created
            self._cell_.training = mode
            self._cell_._flags_["training"] = mode

    # ---- copies and files

    def __deepcopy__(self, memo: dict[int, Any]) -> CellModule:
        self.synchronize()
        copied = module_of(copy.deepcopy(self._cell_, memo), self._naming_)
        copied._restore_(self._additions_())
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.synchronize()
        return _restored, (self._cell_, self._naming_, self._additions_())

    def _additions_(self) -> list[dict[str, Any]]:
        """Return the hooks of each Module, which a copy has too."""
        return [{name: dict(module.__dict__[name]) for name in _HOOKS if module.__dict__[name]} for module in self._cell_modules_()]

    def _restore_(self, additions: list[dict[str, Any]]) -> None:
        for module, hooks in zip(self._cell_modules_(), additions):
            for name, functions in hooks.items():
                module.__dict__[name].update(functions)

    def __repr__(self) -> str:
        return f"as_module({self._cell_!r})"


class Walk:
    """The Modules inside of a Cell's Module and what joins them with Cells, collected once: a call needs them, and they rarely change."""

    def __init__(self, module: CellModule) -> None:
        self._count = change_counters.cells
        self.links = list(module._all_links_())
        self.homes = {id(link.tensor): (link.home, link.name) for link in self.links}
        self.module_of = {id(inner._cell_): inner for inner in module._cell_modules_()}
        self.convert = partial(result_in_torch, type(module._cell_).__name__)
        """Return a result of the Cell with torch tensors for its Tensors."""
        modules = list(module.modules())
        self._states = [inner.__dict__ for inner in modules if inner is not module]
        cells = [inner._cell_ for inner in modules if isinstance(inner, CellModule)]
        self._members: list[tuple[dict[str, Any], dict[str, Any]]] = [
            (members, dict(members)) for cell in cells for members in (cell._cells, cell._params)
        ]
        self._members += [(inner._modules, dict(inner._modules)) for inner in modules]
        self._has_other_modules = len(cells) < len(modules)
        self._values = {id(link.tensor): link.t for link in self.links}
        self._joins = parameter_links.joins

    def _has_changed(self) -> bool:
        """Return whether a Cell or a Module inside has other Cells, Modules or Parameters."""
        for members, before in self._members:
            if len(members) != len(before) or any(members.get(name, self) is not value for name, value in before.items()):
                return True
        return False

    def update(self) -> dict[int, torch.Tensor] | None:
        """Give the tensors of both sides the memory, dtype and requires_grad of the side that has changed.

        Return the tensors of the Modules by the ids of those of Cells; None if hooks, torch Modules or a function that replaces parameters
        for a while can change them during a call; CHANGED if the Cells or Modules inside are others. A call does this first. It is one
        function without further calls, because after a training step each object that it reads must be fetched into the cache again.
        """
        count = change_counters.cells                       # the members of Cells and of their Modules count their changes
        if count != self._count or self._has_other_modules:
            if self._has_changed():
                return CHANGED
            self._count = count
        is_fixed = not self._has_other_modules
        for link in self.links:
            t = link.t
            if link.home.get(link.name) is not t:
                is_fixed = False                            # replaced for a while, as in torch.func.functional_call
            elif (
                link.tensor._t is not link.stored or t.data_ptr() != link.address or t.dtype is not link.dtype
                or not (link.is_buffer or (t.requires_grad is link.is_trained and link.is_alone))
            ):
                link.update()
        for state in self._states:
            if (
                state["_forward_hooks"] or state["_forward_pre_hooks"] or state["_backward_hooks"] or state["_backward_pre_hooks"]
                or "forward" in state or ("_compiled_call_impl" in state and state["_compiled_call_impl"] is not None)
            ):
                is_fixed = False
        if not is_fixed or torch_private.has_global_module_hooks():
            return None
        if self._joins != parameter_links.joins:
            self._joins = parameter_links.joins
            self._values = {id(link.tensor): link.t for link in self.links}
        return self._values


_classes: WeakKeyDictionary[type, type[CellModule]] = WeakKeyDictionary()


def module_class(kind: type[Cell]) -> type[CellModule]:
    """Return the class of Modules for a class of Cells: torch.compile counts its compilations by the code of `forward`."""
    if kind not in _classes:
        code = CellModule.forward.__code__.replace(co_name="forward")
        forward: Any = types.FunctionType(code, globals(), "forward", None, CellModule.forward.__closure__)
        with contextlib.suppress(TypeError, ValueError):                     # a construct of a C extension has no signature
            forward.__signature__ = inspect.signature(kind.construct)        # trainers choose columns and arguments by it
        _classes[kind] = type(f"Module of {kind.__name__}", (CellModule,), {"forward": forward, "__module__": __name__})
    return _classes[kind]


def _restored(cell: Cell, naming: str, additions: list[dict[str, Any]]) -> CellModule:
    module = module_of(cell, naming)
    module._restore_(additions)
    return module
