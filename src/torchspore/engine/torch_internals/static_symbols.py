"""Keeps torch from loading sympy and its compilers while it computes with sizes that are numbers.

torch's shape kernels import functions for symbolic sizes at each call, even if no size is a symbol. In a block of `static_symbols` the
import statements in functions of torch receive the objects below, which answer questions about numbers as torch's modules do. Any other
question loads the real module. Other code, other threads and `sys.modules` do not see these objects.
"""
from __future__ import annotations

import builtins
import importlib
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._ordered_set import OrderedSet

from torchspore.base.forks import at_fork

SYMBOLIC_SHAPES = "torch.fx.experimental.symbolic_shapes"
_COMPILER = "torch._dynamo"
_NUMBERS = (bool, int, float)
_lock = threading.RLock()
at_fork(after_in_child=lambda: globals().update(_lock=threading.RLock()))              # another thread may be in the lock


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
        return getattr(importlib.import_module(SYMBOLIC_SHAPES), name)(*arguments, **keywords)

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


# ---- what functions of torch receive

class _Substitute(SimpleNamespace):
    """Some objects of a module. It loads the module for any other."""

    def __init__(self, _module: str, **objects: Any) -> None:
        super().__init__(**objects)
        self._module = _module

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._module), name)


_SYMBOLS = {
    SYMBOLIC_SHAPES: _Substitute(SYMBOLIC_SHAPES, **_ANSWERS, GuardOnDataDependentSymNode=_NoValue),
    "sympy": _Substitute("sympy", Basic=_NoExpression),
    "torch.utils._sympy.functions": _Substitute("torch.utils._sympy.functions", Max=_NoExpression),
}

_disabled: list[Any] = []
"""The functions that torch has marked in blocks with `_disable`. The last block removes the marks."""


def _disable(function: Any, *_: Any, **__: Any) -> Any:
    """`torch._dynamo.disable` for shape kernels that torch's compiler must not enter: they need nothing while it is not loaded."""
    _disabled.append(function)
    return function


_COMPILERS = {
    "torch._compile": _Substitute(_COMPILER, disable=_disable),
    "torch._subclasses.fake_tensor": _Substitute(_COMPILER, config=_Substitute(f"{_COMPILER}.config", _custom_ops_profile=None)),
}
"""The object that functions of each module receive as `torch._dynamo`."""


# ---- the blocks

_blocks: dict[object, int] = {}
"""The running blocks, with their threads. An interrupt (Ctrl-C, an alarm) where a block begins leaves none behind."""


def _is_in_block() -> bool:
    return threading.get_ident() in _blocks.values()


class _Hooks:
    """The functions that Python calls for import statements and for names that torch lacks, while a block runs in any thread."""

    def __init__(self) -> None:
        self._import, self._read = builtins.__import__, vars(torch)["__getattr__"]
        self._installed: tuple[Any, Any] = self.find, self.read

    def install(self) -> None:
        builtins.__import__, torch.__getattr__ = self._installed  # type: ignore[method-assign]

    def uninstall(self) -> None:
        """Restore the functions, unless another library has replaced ours meanwhile and calls them."""
        for owner, name, ours, before in (
            (builtins, "__import__", self._installed[0], self._import), (torch, "__getattr__", self._installed[1], self._read),
        ):
            if vars(owner)[name] is ours:
                setattr(owner, name, before)

    def find(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """Do what `__import__` does. What the body of a module imports would outlive the block, so it receives the real objects."""
        if locals is not globals and globals is not None and name not in sys.modules and _is_in_block():
            module: str = globals.get("__name__", "")
            substitute = _SYMBOLS.get(name)
            if substitute is not None and f"{module}.".startswith("torch."):
                if name == "sympy" if not fromlist else all(item in vars(substitute) for item in fromlist):
                    return substitute
            elif name == _COMPILER and not fromlist and module in _COMPILERS:
                return torch
        return self._import(name, globals, locals, fromlist, level)

    def read(self, name: str) -> Any:
        """Do what torch's `__getattr__` does."""
        if name == "_dynamo" and _COMPILER not in sys.modules and _is_in_block():
            substitute = _COMPILERS.get(sys._getframe(1).f_globals.get("__name__", ""))
            if substitute is not None:
                return substitute
        return self._read(name)


_compiler: Any = torch._C._dynamo.eval_frame
for _function in (_Hooks.find, _Hooks.read, _is_in_block):       # torch.compile in another thread must not compile these
    _compiler.set_code_exec_strategy(
        _function.__code__, _compiler._FrameExecStrategy(_compiler._FrameAction.SKIP, _compiler._FrameAction.DEFAULT)
    )

_hooks: list[_Hooks] = []
"""The installed hooks. Later blocks create them anew, because another library may have replaced the functions in between."""


def _begin(block: object) -> None:
    with _lock:
        _blocks[block] = threading.get_ident()
        if not _hooks:
            _hooks.append(_Hooks())
            _hooks[0].install()


def _end(block: object) -> None:
    with _lock:
        _blocks.pop(block, None)
        if not _blocks:
            for hooks in _hooks:
                hooks.uninstall()
            _hooks.clear()
            for function in _disabled:
                vars(function).pop("__dynamo_disable", None)
            _disabled.clear()


@contextmanager
def static_symbols() -> Iterator[None]:
    """A block in which torch does not load sympy or its compilers for questions about numbers. Blocks of several threads may overlap."""
    block = object()
    try:
        _begin(block)
        yield
    finally:
        try:
            _end(block)
        finally:
            _end(block)                                          # a signal's handler may have raised in the first call
