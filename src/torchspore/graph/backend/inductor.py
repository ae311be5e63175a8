"""Kernels that torch's Inductor writes for a cluster of operators, compiled by the machine's C++ compiler."""
from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from torchspore.base import event_log
from torchspore.base.context_values import during
from torchspore.base.frames import line_prefix
from torchspore.context import effects
from torchspore.engine.torch_internals import torch_private
from torchspore.graph.compile_cache import kernel_store
from torchspore.graph.fx import open_sizes
from torchspore.graph.fx.fingerprint import of_text, signature
from torchspore.translations import translate

Kernel = Callable[..., list[Any]]
Compiler = Callable[..., Any]
"""The type of `torch_private.inductor`: it returns a kernel, with `source` and `libraries`, for a graph, inputs and Inductor's settings."""

_LEVELS = "jit_level O1 and O2 generate kernels"
_NONE: Mapping[str, Any] = {}


class _Compiler:
    """State of the C++ compiler."""

    def __init__(self) -> None:
        self.failure: str | None = None
        """Why Inductor cannot compile here; reported once."""


_COMPILER = _Compiler()
_compiler: ContextVar[Compiler | None] = ContextVar("compiler", default=None)


def compiled_by(compiler: Compiler) -> AbstractContextManager[None]:
    """Let `compiler` write the kernels of this thread instead of torch's Inductor."""
    return during(_compiler, compiler)


_missing: ContextVar[list[str] | None] = ContextVar("missing_kernels", default=None)
_is_for_others: ContextVar[bool] = ContextVar("kernels_for_others", default=False)


class NotStored(RuntimeError):
    """A graph would have to be measured or compiled in a block that only uses stored results."""


@contextmanager
def only_stored() -> Iterator[list[str]]:
    """A block that uses stored kernels and compiles none; yields the list of graphs whose kernel is not stored."""
    missing: list[str] = []
    with during(_missing, missing):
        yield missing


def expect_compilation() -> None:
    """Raise NotStored in a block of `only_stored`."""
    if _missing.get() is not None:
        raise NotStored("the form of a graph is not stored")


def for_another_process() -> AbstractContextManager[None]:
    """Use only kernels that are stored for another process in the block."""
    return during(_is_for_others, True)


def failure() -> str | None:
    """Return why kernels cannot be compiled here; None as far as is known."""
    return _COMPILER.failure


def fail(text: str, line: str) -> None:
    """Report once that another process of this program could not compile kernels; `line` is the user's line of the graph."""
    if _COMPILER.failure is None:
        _COMPILER.failure = text
        _report_failure(_LEVELS, f"{line}: " if line else "")


def is_there() -> bool:
    """Return whether kernels can be compiled, as far as is known."""
    return _COMPILER.failure is None


def kernel(module: torch.fx.GraphModule, level: str, more: Mapping[str, Any] = _NONE, subject: str = _LEVELS) -> Kernel | None:
    """Return one compiled function for the graph, which contains no writes.

    None if the compiler is missing or failed, which is reported once, or if Inductor cannot compile this graph, which `explain` reports.
    `more` are settings of Inductor, `subject` names the caller. A kernel for open lengths is not stored: the conditions on them are part of
    the trace that it was compiled for. An interrupt passes through; Inductor writes its files atomically.
    """
    if _COMPILER.failure is not None:
        return None
    started, key = time.perf_counter(), of_text("compiled", f"{level} {sorted(more.items())} {signature(module)}")
    inputs = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    is_stored = not any(map(open_sizes.is_open, inputs))
    stored = kernel_store.find(key) if is_stored else None
    if stored is not None:
        event_log.event("load", f"a kernel for {_shown(module)} in {time.perf_counter() - started:.3f} s")
        return stored
    missing = _missing.get()
    if missing is not None:
        missing.append(_shown(module))
        return None
    try:
        compiled = (_compiler.get() or torch_private.inductor)(module, inputs, {**_options(level), **more})
    except torch_private.NoCompiler as error:
        _COMPILER.failure = translate("the C++ compiler is missing ({error})").format(error=_first_line(error))
    except Exception as error:                # after any failure the program runs without it
        if not torch_private.is_of_compiler(error):
            text = translate("no kernel is generated for {graph}: {error}")
            effects.note("compiler", text.format(graph=_shown(module), error=_first_line(error)))
            event_log.event("compile", f"no kernel for {_shown(module)}: {_first_line(error)}")
            return None
        _COMPILER.failure = translate("the C++ compiler failed ({error})").format(error=_first_line(error))
    else:
        is_kept = is_stored and kernel_store.keep(key, compiled.source, compiled.libraries)
        if _is_for_others.get() and not is_kept:
            event_log.event("compile", f"the kernel for {_shown(module)} can't be stored for another process")
            return None
        event_log.event("compile", f"a kernel for {_shown(module)} in {time.perf_counter() - started:.1f} s")
        return compiled
    _report_failure(subject, line_prefix())
    return None


def compile_single_kernel(module: torch.fx.GraphModule, more: Mapping[str, Any] = _NONE) -> Kernel | None:
    """One C++ function for a graph with no writes in it, calls of other kernels included; None where Inductor can't write it.

    `more` are settings of Inductor.
    """
    if _COMPILER.failure is not None:
        return None
    if _missing.get() is not None or _is_for_others.get():
        return None
    started = time.perf_counter()
    inputs = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    try:
        kernel: Kernel = (_compiler.get() or torch_private.inductor)(module, inputs, {**_options("O1"), **more}, True)
    except Exception as error:                # some kernels cannot be called from its C++; other forms exist
        event_log.event("level", f"one launch is skipped: {_first_line(error)}")
        return None
    event_log.event("compile", f"one launch for {_shown(module)} in {time.perf_counter() - started:.1f} s")
    return kernel


def _report_failure(subject: str, prefix: str) -> None:
    text = translate("{subject}, and {failure}; graphs run without them.").format(subject=subject, failure=_COMPILER.failure)
    print(f"torchspore: {prefix}{text}", file=sys.stderr)
    effects.note("compiler", text)


def _options(level: str) -> dict[str, Any]:
    """Inductor's settings: the same random numbers as PyNative's, and at O2 whatever tuning it has."""
    options: dict[str, Any] = {"fallback_random": True, "compile_threads": 1}
    if level == "O2":
        options |= {"max_autotune": True, "coordinate_descent_tuning": True}
    return options


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:120]


def _shown(module: torch.fx.GraphModule) -> str:
    names = [str(node.target).split(".")[1] for node in module.graph.nodes if node.op == "call_function" and "." in str(node.target)]
    return " ".join(names[:6]) + (f" .. ({len(names)} operators)" if len(names) > 6 else "")
