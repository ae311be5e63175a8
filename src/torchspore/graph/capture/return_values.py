"""The result of a call: a graph creates Tensors, numbers, lists and dicts in each run; everything else must have existed before."""
from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.tensors import dtypes
from torchspore.engine.tensors.tensor import Composite, TensorBase
from torchspore.graph.capture.value_kinds import attributes, is_constant
from torchspore.graph.refusal import Kind, Refusal
from torchspore.translations import translate

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)


class Results:
    """Checks the result of a trace before its Tensors become outputs."""

    def __init__(self, watch: Any, argument_ids: set[int], line: Callable[[], str]) -> None:
        """`argument_ids` are the ids of the arguments and of their contents; `line` is the line of the call."""
        self._line, self._argument_ids, self._born = line, argument_ids, watch.born
        self._state = watch.contents.ids()
        self._read = {id(read.value) for read in watch.reads.values()}

    def check(self, value: Any) -> None:
        """Raise Refusal for values that another run of the graph would have to create again, or must not copy."""
        if isinstance(value, (list, dict)) and id(value) in self._state:
            is_argument = id(value) in self._argument_ids
            whose = "that it was given" if is_argument else "that is part of the program's state"
            refusal = Refusal(f"returns a {type(value).__name__} {whose}", self._line())
            refusal.is_allowed = is_argument or isinstance(value, list)
            raise refusal
        if isinstance(value, (list, tuple, dict)):
            items = list(value.values()) if isinstance(value, dict) else list(value)
            for item in items:
                self.check(item)
            if type(value) not in (list, tuple, dict):
                self._check_attributes(value, {id(item) for item in items})
        elif not self._lasts(value):
            text = translate("returns an object of {kind} that is created in the call").format(kind=type(value).__name__)
            refusal = Refusal(text, self._line())
            if isinstance(value, (types.FunctionType, types.MethodType)):
                refusal.hint = translate("return the result of a call; Function in output is not supported.")
            raise refusal

    def _check_attributes(self, value: Any, items: set[int]) -> None:
        """Refuse attributes of a list or dict of the program's class, which are not created again; those that are items too are handled
        with them."""
        for item in (attributes(value) or {}).values():
            if id(item) not in items and (isinstance(item, (TensorBase, Composite)) or not self._lasts(item)):
                raise Refusal(f"returns a {type(value).__name__} with attributes that are created in the call", self._line())

    def _lasts(self, value: Any) -> bool:
        """Return whether one run may give what another one gave, or the graph makes it anew."""
        if isinstance(value, (TensorBase, Composite, dtypes.Type)) or id(value) in self._state or id(value) in self._read:
            return True
        if isinstance(value, _SYMBOLS):
            raise Refusal("returns a length that is open", kind=Kind.TWO_KINDS)
        if isinstance(value, types.FunctionType) and value.__closure__ is not None:
            return False
        return is_constant(value) and id(value) not in self._born
