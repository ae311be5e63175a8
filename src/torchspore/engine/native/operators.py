"""Short paths of frequent operators in C++ (operators.cpp): a small operator spends most of its time in Python and torch's argument parser.

A short path has the arguments of its operator and returns None for arguments that it does not support; then Python computes the operator.
Without the library all operators run in Python, with equal results. A platform wheel contains it (bundled_libraries.py). Otherwise a
program that runs for some seconds builds it when it ends, in a process of the lowest priority, for the programs after it.
"""
from __future__ import annotations

import atexit
import contextlib
import functools
import os
import time
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import torch

from torchspore.engine.native.native_build import Source
from torchspore.translations import translatable

BUILDS_AT_END = "TORCHSPORE_BUILD"
"""With `TORCHSPORE_BUILD=0` no program builds the library at its end; `torchspore build` does."""

_SECONDS = 10.0
"""Programs that end earlier do not build the library: most of them would end before the build."""
NOT_BUILT = translatable("a program of more than 10 seconds builds them when it ends")
NOT_LOADED = translatable("the library cannot be loaded")
_NAME = "torchspore_operators"
_SOURCE = Source(Path(__file__).with_name("operators.cpp"), is_module=True)

_OF_TORCH: dict[Callable[..., Any], str] = {
    torch.add: "add", torch.sub: "sub", torch.rsub: "rsub", torch.mul: "mul", torch.true_divide: "div", torch.maximum: "maximum",
    torch.minimum: "minimum", torch.eq: "equal", torch.ne: "not_equal", torch.lt: "less", torch.le: "less_equal", torch.gt: "greater",
    torch.ge: "greater_equal", torch.matmul: "matmul", torch.relu: "relu", torch.exp: "exp", torch.log: "log", torch.sqrt: "sqrt",
    torch.rsqrt: "rsqrt", torch.square: "square", torch.abs: "abs", torch.neg: "neg", torch.tanh: "tanh", torch.sigmoid: "sigmoid",
    torch.sin: "sin", torch.cos: "cos", torch.erf: "erf", torch.floor: "floor",
}
"""The functions of torch that a short path computes: for float32, or for any supported dtype if they have two operands."""


def _load() -> tuple[Any, str]:
    """Return the library, or None and why there is none. A library that cannot be loaded stays: the next one may be the same."""
    global _is_damaged
    try:
        reason = _SOURCE.why_not()
        path = None if reason else _SOURCE.library()
        if path is None or not path.exists():
            return None, reason or NOT_BUILT
        _SOURCE.check(path)
        loader = ExtensionFileLoader(_NAME, str(path))
        spec = spec_from_loader(_NAME, loader)
        assert spec is not None
        module = module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:                       # a library for another torch, a damaged file
        if path is not None and path == _SOURCE.bundled():
            _SOURCE.reject_bundled(str(error))
            return _load()
        _is_damaged = True
        return None, str(error)
    except OSError as error:                           # a folder that others can write
        return None, str(error)
    return module, ""


_is_damaged = False
_library, _reason = _load()
_start = time.monotonic()
_process = os.getpid()


def configure(base: type, tensor: type, number: type, names: dict[str, Any], state: Any) -> None:
    """Pass the classes of Tensors and numbers, the names of their module and its thread-local state to the library. It is unused before."""
    if _library is not None:
        _library.configure(base, tensor, number, names, state)


def short_path(function: Callable[..., Any] | str | None) -> Callable[..., Any] | None:
    """Return the short path of a function of torch, or with a name; None without the library, or without a name."""
    if _library is None or not function:
        return None
    name = function if isinstance(function, str) else _OF_TORCH.get(function)
    return None if name is None else getattr(_library, name)


def intercept(operator: Callable[..., Any], of: Callable[..., Any] | str | None) -> None:
    """Let calls of `operator` from C, as Python makes them for `x + y`, try the short path of `of` first, without a frame of Python.

    `operator` does the same as a function of Python; its form without the short path is its attribute `in_python`.
    """
    name = of if isinstance(of, str) else _OF_TORCH.get(of) if of is not None else None
    if _library is not None and name is not None:
        _library.intercept(operator, name)


def register_convolutions() -> bool:
    """Let torch know the operators of convolution.h; return False without the library. Another library of this process may have them."""
    if _library is None:
        return False
    _library.register_convolutions()
    return True


def has_short_path(function: Callable[..., Any]) -> bool:
    """Return whether the library has a short path for a function of torch, whether or not it is loaded."""
    return function in _OF_TORCH


def with_short_path(function: Callable[..., Any], of: Callable[..., Any] | str | None) -> Callable[..., Any]:
    """Return `function` with the short path of a function of torch, or with a name, before it; `function` itself without one."""
    short = short_path(of)
    if short is None:
        return function
    operator = functools.wraps(function)(_operator(function, short))
    operator.in_python, operator.short_path = function, of  # type: ignore[attr-defined]
    intercept(operator, of)
    return operator


def _operator(function: Callable[..., Any], short: Callable[..., Any]) -> Callable[..., Any]:
    def operator(*arguments: Any, **keywords: Any) -> Any:
        if not keywords:
            out = short(*arguments)
            if out is not None:
                return out
        return function(*arguments, **keywords)

    return operator


SHORT_PATH = _operator(len, len).__code__
"""The code of all functions that `with_short_path` returns, if they have a short path."""


def build() -> None:
    """Build the library if it is missing or cannot be loaded, which takes a quarter of a minute. The next program uses it."""
    global _is_damaged
    with contextlib.suppress(OSError):
        if _is_damaged:
            _SOURCE.built_library().unlink(missing_ok=True)
            _is_damaged = False
        _SOURCE.build()


def is_loaded() -> bool:
    """Return whether this process uses the short paths."""
    return _library is not None


def is_bundled() -> bool:
    """Return whether the short paths of this process are the library of a wheel."""
    return _library is not None and str(_SOURCE.bundled()) == _library.__file__


def why_not_bundled() -> str:
    """Return why the library of the wheel is not used; empty if it is, or if the wheel contains none."""
    return _SOURCE.why_not_bundled()


def missing() -> str:
    """Return why there is no library for the next program; empty if there is one."""
    if _library is not None:
        return ""
    if _is_damaged:
        return NOT_LOADED
    try:
        return _SOURCE.why_not() or ("" if _SOURCE.library().exists() else NOT_BUILT)
    except OSError as error:
        return str(error)


def _build_at_end() -> None:
    """Start the build of a missing library. A process forked from this one does not."""
    if os.getpid() == _process and time.monotonic() - _start > _SECONDS and os.environ.get(BUILDS_AT_END, "") != "0":
        _SOURCE.start_build()


if _reason == NOT_BUILT:
    atexit.register(_build_at_end)
