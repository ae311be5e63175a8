"""The boundary around public functions that converts errors: to the documented types, with the name of the call, in our words.

Operators (`declare.py`) and calls of layers (`Cell.__call__`) explain their own errors. All other public functions, constructors and
methods are wrapped here once, when their module is loaded. A successful call costs one frame; everything else happens only when an
exception propagates to the user's code.
"""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from torchspore.engine.native.operators import SHORT_PATH, with_short_path
from torchspore.mindspore.ops.declaration.declare import OPERATORS
from torchspore.mindspore.ops.declaration.explain import is_front_end, replaced
from torchspore.mindspore.ops.declaration.older_keywords import renamed_keywords

_FRONT_END = "torchspore.mindspore"
_WRAPPED = frozenset({"__new__", "__init__", "__call__", "__next__", "__iter__", "__getitem__", "__setitem__", "__len__", "__contains__"})
_EXEMPT = frozenset({"construct", "__call__", "__contains__", "__len__", "__iter__"})
"""Methods of Cells: Graph mode reads the source of `construct`, and the call contains the boundary."""
_HOT = frozenset({"astype", "reshape", "view", "transpose", "permute", "expand", "dim", "numel", "item", "asnumpy"})
"""Methods of Tensors that call an operator directly, whose error messages suffice: they get no extra frame."""

_INNER = frozenset(f"dataset.{module}" for module in (
    "core.operation", "core.randomness", "core.validator_helpers", "engine.blocks", "engine.failures", "engine.pace",
    "engine.processes", "engine.rows", "engine.workers", "text.operation",
))
"""Modules of data pipelines whose functions run for each row. No program calls them; the public functions around them have the boundary."""

_WRAPPED_OPERATOR_MODULES = frozenset((
    "auto_generate", "communication", "declaration.primitive", "gradients.gradient", "gradients.transforms", "process_groups.arguments",
    "process_groups.comm_func", "process_groups.exchange", "process_groups.groups", "process_groups.point_to_point",
    "process_groups.store", "program.composite", "program.custom", "sparse_formats.sparse_tensors",
))
"""Modules of operators with functions that are not operators; operators explain their own errors."""

_closed: set[int] = set()
"""The classes and functions that have the boundary, by identity: they exist as long as the process."""
_loaded: set[ModuleType] = set()
"""The modules that have the boundary."""
_wrappers: dict[Callable[..., Any], Callable[..., Any]] = {}
"""Functions of modules, and their wrappers."""


def close() -> None:
    """Add the boundary to the modules of the front end that were loaded since the last call."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(_FRONT_END) and _is_new(module)]
    functions: list[tuple[ModuleType, str, FunctionType]] = []
    for module in modules:
        path, wraps_functions = module.__name__, _wraps_functions(module)
        for name, value in list(vars(module).items()):
            if type(value) is FunctionType:
                functions.append((module, name, value))
                if wraps_functions and name[0] != "_" and _is_open(value, module):
                    _closed.add(id(value))
                    _wrappers[value] = _closed_function(value, value.__name__)
            elif isinstance(value, type) and value.__module__ == path:
                _close_class(value)
        if not _is_running(module):
            _loaded.add(module)
    for module, name, function in functions:                   # under every name in every module
        if function in _wrappers:
            setattr(module, name, _wrappers[function])


def _is_new(module: Any) -> bool:
    return isinstance(module, ModuleType) and module not in _loaded


def _is_running(module: ModuleType) -> bool:
    """Return whether the code of a module still runs: it may define more functions and classes."""
    return bool(getattr(module.__spec__, "_initializing", False))


def _wraps_functions(module: ModuleType) -> bool:
    """Return whether functions of a module get the boundary. Those of operators explain their own errors."""
    folder = module.__name__.removeprefix(_FRONT_END + ".")
    is_of_operators = folder.startswith("ops.") and folder.removeprefix("ops.") not in _WRAPPED_OPERATOR_MODULES
    return folder not in _INNER and folder != "log" and not is_of_operators


def _is_open(function: FunctionType, module: ModuleType) -> bool:
    return function.__module__ == module.__name__ and id(function) not in _closed and not hasattr(function, "has_error_boundary")


def around(cls: type) -> type:
    """Add the boundary to a class that is created from a table and is not in a module under its name."""
    _close_class(cls)
    return cls


def around_function(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the function of a table with the boundary, under its name there."""
    return _closed_function(function, name)


def _close_class(cls: type) -> None:
    if id(cls) in _closed or issubclass(cls, BaseException):
        return
    module = cls.__module__.removeprefix(_FRONT_END + ".")
    is_inner = module.startswith("dataset.") and (module in _INNER or cls.__name__.startswith("_")) and module != "dataset.core.operation"
    _closed.add(id(cls))
    is_cell = any(base.__name__ == "Cell" for base in cls.__mro__)
    for name, value in list(vars(cls).items()):
        if is_inner and name != "__init__":                    # runs for each row; only the constructor, which runs once, gets the boundary
            continue
        is_wrapped = name in _WRAPPED and (cls.__name__ != "Tensor" or name == "__init__")
        if (name.startswith("_") and not is_wrapped) or (is_cell and name in _EXEMPT):
            continue
        kind = type(value) if isinstance(value, (staticmethod, classmethod)) else None
        function = value.__func__ if kind is not None else value
        is_function = isinstance(function, FunctionType) and function.__module__.startswith(_FRONT_END)
        if not is_function or hasattr(function, "has_error_boundary"):
            continue
        if cls.__name__ == "Tensor" and name in _HOT:
            continue
        if cls.__name__ == "Tensor" and getattr(OPERATORS.get(function.__name__), "function", None) is function:
            continue                                           # it contains the boundary
        called = cls.__name__ if name in ("__init__", "__new__") else f"{cls.__name__}.{name}"
        is_method, short_path = kind is not staticmethod or name == "__new__", getattr(function, "short_path", None)
        if short_path is not None:                             # the boundary is behind the short path, which raises no errors
            in_python = function.in_python                     # type: ignore[attr-defined]
            wrapped = with_short_path(_closed_function(in_python, called, is_method), short_path)
        else:
            wrapped = _closed_function(function, called, is_method)
        # Bypasses the class of Tensors, which reports changes to graphs: a module that is loaded during a capture changes nothing.
        type.__setattr__(cls, name, wrapped if kind is None else kind(wrapped))


def _closed_function(function: Callable[..., Any], called: str, is_method: bool = False) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except Exception as error:
            if is_front_end(_calling_file()):                              # its caller has a boundary too
                raise
            name = _name(called, arguments[:is_method])
            older_spelling = renamed_keywords(function, error, arguments, keywords, name)
            if older_spelling is not None:
                return call(*arguments, **older_spelling)
            shown_as = replaced(error, function, name, arguments[is_method:], keywords)
            if shown_as is error:
                del shown_as
                raise
            try:
                raise shown_as from None
            finally:
                del shown_as               # otherwise its frame, with all values of the call, stays until the next collection

    call.has_error_boundary = True  # type: ignore[attr-defined]
    return call


def _calling_file() -> str:
    """Return the file that calls the function with a boundary which asks, past the frame of a short path."""
    caller = sys._getframe(2)
    if caller.f_code is SHORT_PATH and caller.f_back is not None:
        caller = caller.f_back
    return caller.f_code.co_filename


def _name(called: str, owner: tuple[Any, ...]) -> str:
    """Return the name of the call, by the class of the object: `Adam`, not the base with the constructor; `Resize` for a call of one."""
    if not owner:
        return called
    cls = owner[0] if isinstance(owner[0], type) else type(owner[0])
    method = called.partition(".")[2]
    return f"{cls.__name__}.{method}" if method not in ("", "__call__") else cls.__name__
