"""The frame in which a Cell computes with the Parameters of its torch Module, and torch.autograd records what it computes."""
from __future__ import annotations

import copy
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from torchspore.base.text import message
from torchspore.engine.autograd.gradient_frame import GradFrame
from torchspore.engine.execution import thread_state
from torchspore.engine.random import generators, operator_streams
from torchspore.engine.tensors import tree
from torchspore.engine.tensors.tensor import Composite, Frame, TensorBase, raw, tensors, transform, wrap
from torchspore.engine.torch_internals import torch_private
from torchspore.mindspore.nn.cell import Cell


class ModuleFrame(GradFrame):
    """Returns the tensors of torch Modules for the Parameters of their Cells, and lets calls of inner Cells run their Modules' hooks."""

    heeds_flags = False
    _values: dict[int, torch.Tensor] = {}               # these stay empty
    _frozen, taken, cut = _values, {}, {}

    def __init__(self, homes: dict[int, tuple[Any, Any]], module_of: dict[int, Any]) -> None:
        """`homes` are the containers of the tensors and their keys there, by ids of Parameters; `module_of` is by ids of Cells."""
        self._homes, self._module_of = homes, module_of
        self._weights, self._modified, self._attributes = [], {}, []
        self.has_additions = True
        """True if calls of inner Cells may run hooks of their Modules."""
        self._root: Any = None
        """The Cell whose class overrides `__call__`, until its own code calls it."""

    def run(
        self, cell: Any, args: Sequence[Any], kwargs: dict[str, Any], convert: Callable[[Any], Any], values: dict[int, Any] | None,
    ) -> Any:
        """Return the result of the outer Cell in PyNative mode, with torch tensors; `convert` returns a result that is not a Tensor.

        `values` are the torch tensors by the ids of Tensors, if nothing can replace them during the call.
        """
        call = cell._run_
        if type(cell).__call__ is not Cell.__call__:               # its class overrides the call
            self._root = call = cell
        elif values is not None:
            self.has_additions = False
        self.modules = self
        state = thread_state.local
        was_in_pynative, state.in_pynative = state.in_pynative, True
        Frame.__enter__(self)                          # a cast to integers begins the block of gradients by integers
        try:
            if values is not None:
                self.look_up_in(values)
            result = call(*args, **kwargs)
            result = self.resolve(result) if isinstance(result, TensorBase) else convert(result)
            if self._versions is not None or self._attributes:
                self._write_back_assigned()
        except BaseException as error:
            self._leave(was_in_pynative, error)
            raise
        self._leave(was_in_pynative, None)
        return result

    def _leave(self, was_in_pynative: bool, error: BaseException | None) -> None:
        thread_state.local.in_pynative = was_in_pynative
        self.modules = self.lookup = None              # a cycle would keep the frame alive until garbage collection
        if self._block is None and self._watch is None:
            Frame.__exit__(self)
        else:
            self.__exit__(None if error is None else type(error), error, None)

    def resolve(self, tensor: TensorBase) -> torch.Tensor:
        if self._versions is None and self.outer is None:                 # the most frequent case takes no further call
            home = self._homes.get(id(tensor))
            if home is None:
                return tensor._t
            t = home[0].get(home[1])
            if isinstance(t, torch.Tensor):
                return t
        return super().resolve(tensor)

    def initial_value(self, tensor: TensorBase) -> torch.Tensor:
        home = self._homes.get(id(tensor))
        if home is None:
            return super().initial_value(tensor)
        t = home[0].get(home[1])
        if not isinstance(t, torch.Tensor):
            raise RuntimeError(message(
                f"as_module: {home[1]!r} was removed from the Module's parameters", "the parameters that the Cell had",
                hint="prune or parametrize the torch Module that computes with the result; a Cell computes with its Parameters",
            ))
        return t

    def run_cell(self, cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an inner Cell: by way of its Module if that has hooks or another forward."""
        if cell is self._root:
            self._root = None
            return cell._run_(*args, **kwargs)
        module = self._module_of.get(id(cell))
        if module is None or not has_additions(module):
            return cell._run_(*args, **kwargs)
        return to_mindspore(module(*transform(args, raw), **transform(kwargs, raw)))

    def leaf_ids(self) -> set[int]:
        return super().leaf_ids() | {id(home[key]) for home, key in self._homes.values()}

    def _write_back_assigned(self) -> None:
        """Write into the Module's tensors the values that the call assigned to Parameters, and detach the Cell's attributes from the
        record."""
        with torch.no_grad():
            self.finish((), False)

    def write_base(self, owner: TensorBase, value: torch.Tensor) -> None:
        """Write the last value of a Parameter into the tensor of its Module."""
        home = self._homes.get(id(owner))
        if home is None:
            Frame.write(self, owner, value)
        else:
            home[0][home[1]].copy_(value)


def to_mindspore(value: Any) -> Any:
    """Return `value` with Tensors for the torch tensors in it; lists, tuples and dicts keep their classes."""
    return transform(value, lambda tensor: tensor, wrap)


def result_in_torch(name: str, result: Any) -> Any:
    """Return a result with torch tensors for its Tensors, also in the attributes of an object such as a dataclass.

    Raises TypeError for iterators, functions, and sets of Tensors: their Tensors can't be replaced.
    """
    def convert(leaf: Any) -> Any:
        if isinstance(leaf, TensorBase):
            return raw(leaf)
        if isinstance(leaf, Composite):
            return leaf.rebuilt(tuple(map(raw, leaf.parts())))
        is_set = isinstance(leaf, (set, frozenset, deque)) and any(isinstance(item, TensorBase) for item in leaf)
        if is_set or isinstance(leaf, (Iterator, types.FunctionType)):
            raise TypeError(message(
                f"as_module of {name}: the result has a value of type {type(leaf).__name__}",
                "Tensors, numbers, texts, None, and lists, tuples, dicts and objects of them",
            ))
        if not hasattr(leaf, "__dict__") or isinstance(leaf, (type, Cell, torch.nn.Module)) or not any(True for _ in tensors(vars(leaf))):
            return leaf
        copied = copy.copy(leaf)
        for key, value in vars(leaf).items():
            object.__setattr__(copied, key, tree.mapped(value, convert))
        return copied

    return tree.mapped(result, convert)


def has_additions(module: Any) -> bool:
    """Return whether a call of a torch Module runs more than the `forward` of its class: hooks, or a `forward` of its own."""
    state = module.__dict__
    if "forward" in state or ("_compiled_call_impl" in state and state["_compiled_call_impl"] is not None):
        return True
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(state[name] for name in hooks) or torch_private.has_global_module_hooks()


@contextmanager
def refusing_other_draws(name: str) -> Iterator[None]:
    """Run a call of a Module inside a backward pass. Raises RuntimeError if it draws random numbers.

    `torch.utils.checkpoint` restores the states of torch's generators before its second run, and not those of MindSpore's.
    """
    before = _random_states()
    try:
        yield
    finally:
        if _random_states() != before:
            raise RuntimeError(message(
                f"as_module of {name} inside torch.utils.checkpoint: the second run draws other random numbers than the first",
                "a Cell that draws none", hint="call recompute() on the Cell, which draws the same numbers again",
            ))


def _random_states() -> tuple[Any, ...]:
    devices = ("cpu", *{device.type for device in generators.accelerators()})
    return operator_streams.snapshot(), *(generators.current_state(device).tolist() for device in devices)
