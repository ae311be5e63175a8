"""Keeps torch from loading sympy and its compilers while it computes with sizes that are numbers.

torch's shape kernels import functions for symbolic sizes at each call, even if no size is a symbol. In a block of `static_symbols` these
imports receive the objects below, which answer questions about numbers as torch's modules do. Any other question, and any code outside of
torch, loads the real module, which `sys.modules` contains from then on.
"""
from __future__ import annotations

import functools
import importlib
import operator
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import Any

import torch
import torch.fx.experimental._config
from torch._compile import _disable_dynamo
from torch.utils._ordered_set import OrderedSet

SYMBOLIC_SHAPES = "torch.fx.experimental.symbolic_shapes"
_COMPILER = "torch._dynamo"
_TORCH = os.path.dirname(torch.__file__)
_NUMBERS = (bool, int, float)
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):                              # another thread may be in the lock
    os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.RLock()))


# ---- questions about numbers

def _is_number(*values: Any, **_: Any) -> bool:
    return all(type(value) in _NUMBERS for value in values)


def _is_fixed(value: Any, *_: Any) -> bool:
    """Return whether a number, a tensor or a sequence of them holds no symbol."""
    if value is None or type(value) in _NUMBERS:
        return True
    if isinstance(value, (tuple, list)):
        return all(map(_is_fixed, value))
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        return all(type(size) is int for size in (*value.shape, *value.stride(), value.storage_offset()))
    return False


def _is_int(value: Any, *_: Any, **__: Any) -> bool:
    return type(value) in (bool, int)


def _are_bools(*values: Any, **_: Any) -> bool:
    return bool(values) and all(type(value) is bool for value in values)


def _are_lengths(x: Any, y: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return isinstance(y, (tuple, list)) and all(type(size) is int for size in (*x, *y))
    return _is_int(x) and _is_int(y)


def _are_equal(x: Any, y: Any) -> bool:
    return tuple(x) == tuple(y) if isinstance(x, (tuple, list)) else bool(x == y)


def _unchanged(value: Any, *_: Any, **__: Any) -> Any:
    return value


def _answer(name: str, can_answer: Callable[..., bool], answer: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function `name`: it returns `answer(...)` where `can_answer(...)`, and calls torch's otherwise."""

    def ask(*arguments: Any, **keywords: Any) -> Any:
        if can_answer(*arguments, **keywords):
            return answer(*arguments, **keywords)
        return getattr(load(SYMBOLIC_SHAPES), name)(*arguments, **keywords)

    return ask


_ANSWERS: dict[str, Callable[..., Any]] = {
    name: _answer(name, can_answer, answer) for name, can_answer, answer in (
        ("guard_or_false", _are_bools, _unchanged),
        ("guard_or_true", _are_bools, _unchanged),
        ("guard_size_oblivious", _are_bools, _unchanged),
        ("guard_bool", _are_bools, _unchanged),
        ("expect_true", lambda value, *_: type(value) is bool, _unchanged),
        ("statically_known_true", _are_bools, _unchanged),
        ("statically_known_false", _are_bools, operator.not_),
        ("guard_int", lambda value: type(value) is int, _unchanged),
        ("guard_scalar", _is_number, _unchanged),
        ("optimization_hint", lambda value, *_, **__: type(value) is int, _unchanged),
        ("size_hint", lambda value, *_, **__: type(value) is int, _unchanged),
        ("guarding_hint_or_throw", _is_int, _unchanged),
        ("has_hint", _is_number, lambda _: True),
        ("has_guarding_hint", _is_number, lambda _: True),
        ("is_symbolic", _is_number, lambda _: False),
        ("is_nested_int", _is_number, lambda _: False),
        ("sym_eq", _are_lengths, _are_equal),
        ("sym_and", _are_bools, lambda *values: all(values)),
        ("sym_or", _are_bools, lambda *values: any(values)),
        ("has_free_symbols", _is_fixed, lambda _: False),
        ("has_free_unbacked_symbols", _is_fixed, lambda _: False),
        ("free_unbacked_symbols", _is_fixed, lambda _: OrderedSet()),
        ("_iterate_nodes", _is_fixed, lambda _: ()),
        ("_iterate_exprs", _is_fixed, lambda _: ()),
        ("compute_unbacked_bindings", lambda shape_env, *_, **__: shape_env is None, lambda *_, **__: None),
    )
}


class _NoExpression:
    """A class for `isinstance(x, sympy.Basic)`, which is False for numbers and tensors."""


class _NoValue(RuntimeError):
    """A class for `except GuardOnDataDependentSymNode`. torch raises it if a size depends on values, and its module is loaded then."""


_OBJECTS: dict[str, dict[str, Any]] = {
    SYMBOLIC_SHAPES: {**_ANSWERS, "GuardOnDataDependentSymNode": _NoValue},
    "sympy": {"Basic": _NoExpression},
    "torch.utils._sympy.functions": {"Max": _NoExpression},
}
_ASKERS = {
    "Basic": ("elementwise_dtypes",), "GuardOnDataDependentSymNode": ("_get_output_info_for_cache_entry", "<module>"),
    "Max": ("_is_non_overlapping_and_dense_or_false",),
}
"""The functions of torch that receive these objects, by the name of the object."""

_imported_objects: list[tuple[dict[str, Any], str, Any]] = []
"""(the variables of a module, a name in a module below, the object that the module imported from it)."""


# ---- the modules that imports receive

class _Substitute(ModuleType):
    """A substitute for a module. It loads the module for questions that it cannot answer."""

    def __getattr__(self, name: str) -> Any:
        if name in ("__warningregistry__", "__wrapped__") or (name == "__path__" and self.__name__ != "sympy"):
            raise AttributeError(name)
        frame = sys._getframe(1)
        code, substitute = frame.f_code, _OBJECTS[self.__name__].get(name)
        if substitute is not None and code.co_filename.startswith(_TORCH) and code.co_name in _ASKERS.get(name, (code.co_name,)):
            if code.co_name == "<module>":
                _imported_objects.append((frame.f_globals, name, substitute))
                if _REPLACER not in sys.meta_path:
                    sys.meta_path.insert(0, _REPLACER)
            return substitute
        real = load(self.__name__)
        if name == "__path__" and code.co_name == "_find_and_load_unlocked":     # an import of a submodule
            sys.meta_path.insert(0, _Loaded(real))
        return getattr(real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the module: a program that imported the substitute changes what all see, as `mock.patch` does."""
        setattr(load(self.__name__), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(load(self.__name__), name)

    def __dir__(self) -> list[str]:
        return dir(load(self.__name__))

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)


class _Replacer:
    """Finds torch's module of symbolic shapes, and after its import replaces the objects that other modules imported in a block."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return torch's specification with a loader that calls `_replace` too."""
        spec = PathFinder.find_spec(name, path) if name == SYMBOLIC_SHAPES else None
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            def exec_module(module: ModuleType) -> None:
                del loader.exec_module
                loader.exec_module(module)
                self._replace(module)

            loader.exec_module = exec_module
        return spec

    def _replace(self, real: ModuleType) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        while _imported_objects:
            variables, name, substitute = _imported_objects.pop()
            for variable in [variable for variable, value in variables.items() if value is substitute]:
                variables[variable] = getattr(real, name)


_REPLACER = _Replacer()


class _Loaded:
    """Finds submodules that came with their package: the import of `sympy.core` that loads the package must not load `core` twice."""

    def __init__(self, package: ModuleType) -> None:
        self._prefix = f"{package.__name__}."
        self._thread = threading.get_ident()
        self._spec: Any = None

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Answer the import that read the package's path, and no later import."""
        if threading.get_ident() != self._thread:
            return None
        sys.meta_path.remove(self)
        if not name.startswith(self._prefix) or name not in sys.modules:
            return None
        return ModuleSpec(name, self)                            # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the loaded module."""
        module = sys.modules[spec.name]
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module unchanged."""
        module.__spec__ = self._spec


class _Options:
    """`torch._dynamo.config` for the dispatch of fake tensors, which reads one option."""

    def __getattr__(self, name: str) -> Any:
        if name == "_custom_ops_profile" and f"{_COMPILER}.config" not in sys.modules:
            return None
        return getattr(importlib.import_module(f"{_COMPILER}.config"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(importlib.import_module(f"{_COMPILER}.config"), name, value)


class _Compiler:
    """A substitute for the attribute `torch._dynamo`, which loads the package on access."""

    config = _Options()

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(_COMPILER), name)


def _create_substitute(name: str) -> _Substitute:
    module, package = _Substitute(name, __doc__), name.rpartition(".")[0]
    spec = PathFinder.find_spec(name, importlib.import_module(package).__path__ if package else None)
    if spec is not None:
        vars(module).update(__spec__=spec, __file__=spec.origin, __loader__=spec.loader, __package__=spec.parent)
    return module


@functools.cache
def _substitutes() -> dict[str, _Substitute]:
    return {name: _create_substitute(name) for name in _OBJECTS}


@functools.cache
def _hidden_functions() -> tuple[Any, ...]:
    """Return the shape kernels that torch hides from torch._dynamo. Their wrappers load it at the first call, unless they are marked."""
    wrapper = _disable_dynamo(lambda: None).__code__
    unseen = [kernel for table in torch._decomp.global_decomposition_table.values() for kernel in table.values()]
    seen, functions = set(unseen), []
    while unseen:
        kernel = unseen.pop()
        parts = [cell.cell_contents for cell in getattr(kernel, "__closure__", None) or ()]
        if getattr(kernel, "__code__", None) is wrapper:
            functions.append(parts[kernel.__code__.co_freevars.index("fn")])
        inner = {part for part in parts if isinstance(part, FunctionType)} - seen
        unseen += inner
        seen |= inner
    return tuple(functions)


# ---- the blocks

class _Uses:
    """The running blocks of each kind. A set, so that an interrupt (Ctrl-C, an alarm) where a block begins leaves none behind."""

    def __init__(self) -> None:
        self.symbols: set[object] = set()
        self.kernels: set[object] = set()
        self.compiler = _Compiler()


_USES = _Uses()


def load(name: str) -> ModuleType:
    """Load the real module into `sys.modules` and return it."""
    with _lock:
        _remove(name)
    return importlib.import_module(name)


def _remove(name: str) -> None:
    module, (package, _, last) = _substitutes()[name], name.rpartition(".")
    if sys.modules.get(name) is module:
        del sys.modules[name]
    if package and vars(sys.modules[package]).get(last) is module:
        delattr(sys.modules[package], last)


def _install() -> None:
    for name, module in _substitutes().items():
        if name not in sys.modules:
            sys.modules[name] = module
            package, _, last = name.rpartition(".")
            if package:
                setattr(sys.modules[package], last, module)


def _install_for_kernels() -> None:
    if _COMPILER not in sys.modules and "_dynamo" not in vars(torch):
        torch._dynamo = _USES.compiler                           # type: ignore[assignment]
        for function in _hidden_functions():
            function.__dynamo_disable = function


def _uninstall_for_kernels() -> None:
    if vars(torch).get("_dynamo") is _USES.compiler:
        del torch._dynamo
    for function in _hidden_functions():
        if vars(function).get("__dynamo_disable") is function:
            del function.__dynamo_disable


@contextmanager
def static_symbols() -> Iterator[None]:
    """A block in which torch does not load sympy for questions about numbers. Blocks of several threads may overlap."""
    block = object()
    try:
        with _lock:
            _USES.symbols.add(block)
            if len(_USES.symbols) == 1:
                _install()
        yield
    finally:
        with _lock:
            _USES.symbols.discard(block)
            if not _USES.symbols:
                for name in _substitutes():
                    _remove(name)


@contextmanager
def static_kernels() -> Iterator[None]:
    """A block of `static_symbols` in which torch's shape kernels do not load torch._dynamo either."""
    block = object()
    with static_symbols():
        try:
            with _lock:
                _USES.kernels.add(block)
                if len(_USES.kernels) == 1:
                    _install_for_kernels()
            yield
        finally:
            with _lock:
                _USES.kernels.discard(block)
                if not _USES.kernels:
                    _uninstall_for_kernels()
