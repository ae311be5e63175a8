"""Python numbers in attributes that code of the program assigns between calls: `net.epoch += 1`, `self.scale = ...` in a method."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from torchspore.base.frames import is_user_file, user_frames
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors.number import is_large
from torchspore.graph.capture.code_names import assigned_attributes


def of_call(owner: Any, function: Callable[..., Any]) -> list[tuple[Any, str]]:
    """(`__dict__` of a Cell, name) of each number that the code around this call, or a method of the Cell's class, assigns."""
    cells = {id(cell): cell for root in _roots(owner, function) for _, cell in root.cells_and_names()}
    around: set[str] = set()
    for frame in user_frames():
        if frame.f_code.co_name != "__init__":
            around |= assigned_attributes(frame.f_code)
    assigned = []
    for cell in cells.values():
        attributes = cell.__dict__
        names = around | _assigned_by_methods(type(cell))
        assigned += [(attributes, name) for name in names if type(attributes.get(name)) in (int, float) and not is_large(attributes[name])]
    return assigned


def _roots(owner: Any, function: Callable[..., Any]) -> Iterator[Any]:
    """Return the Cells that a call may run: the Cell itself, and those that the function names."""
    inner: Any = getattr(function, "__func__", function)
    candidates = [owner, getattr(function, "__self__", None)]
    if isinstance(inner, FunctionType):
        candidates += [inner.__globals__.get(name) for name in inner.__code__.co_names]
        for variable in inner.__closure__ or ():
            try:
                candidates.append(variable.cell_contents)
            except ValueError:            # the variable has no value yet
                continue
    yield from (candidate for candidate in candidates if isinstance(candidate, FRONT.cell))


def _assigned_by_methods(cls: type) -> set[str]:
    """The attributes that methods of a program's class assign, other than `__init__` and `construct`."""
    names: set[str] = set()
    for base in cls.__mro__:
        for name, method in list(vars(base).items()):          # another thread may set an attribute of the class
            code: CodeType | None = getattr(method, "__code__", None) or getattr(getattr(method, "fset", None), "__code__", None)
            if code is not None and name not in ("__init__", "construct") and is_user_file(code.co_filename):
                names |= assigned_attributes(code)
    return names
