"""`PIJitCaptureContext`, which implements `jit(capture_mode='bytecode')` in MindSpore."""
from __future__ import annotations

import inspect
import types
from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.common.api import jit
from torchspore.public_names import missing

__getattr__ = missing(__name__)


class Unsupported(RuntimeError):
    """The error of 2.10 for a graph break with `fullgraph`; other compilation errors have other classes here."""


class PIJitCaptureContext:
    """Decorates functions, methods, Cells and classes of Cells like `jit(capture_mode='bytecode')`."""

    def __init__(self, fullgraph: bool = False, jit_config: Any = None) -> None:
        if not isinstance(fullgraph, bool):
            raise TypeError(message(f"PIJitCaptureContext(fullgraph={short(fullgraph)})", f"True or False, got {type(fullgraph).__name__}"))
        self.fullgraph, self.jit_config = fullgraph, jit_config

    def __call__(self, fn: Any) -> Any:
        """Return the function as a graph; return other values unchanged."""
        if inspect.isclass(fn) and hasattr(fn, "construct"):
            fn.construct = self(fn.construct)
            return fn
        if hasattr(fn, "construct"):
            return types.MethodType(self(type(fn).construct), fn)
        if inspect.ismethod(fn):
            return types.MethodType(self(fn.__func__), fn.__self__)
        if not inspect.isfunction(fn) or inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn):
            return fn
        return jit(fn, capture_mode="bytecode", fullgraph=self.fullgraph, jit_config=self.jit_config)
