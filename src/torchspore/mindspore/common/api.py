"""`jit`, `ms_function` and related functions."""
from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchspore.base.lazy_modules import import_lazily
from torchspore.base.suggest import closest
from torchspore.base.text import message, with_hint, with_type
from torchspore.engine.front_end import FRONT
from torchspore.engine.tensors import tensor as engine
from torchspore.mindspore.common.executor import (
    _cell_graph_executor,
    _CellGraphExecutor,
    _no_grad,
    _pynative_executor,
    _PyNativeExecutor,
    cells_compile_cache,
    flops_collection,
    init_exec_dataset,
)
from torchspore.observe.debug import recorded_steps
from torchspore.public_names import missing

if TYPE_CHECKING:
    from torchspore.graph import dispatch
    from torchspore.graph.capture import constants
else:
    import_lazily(globals(), "torchspore.graph.dispatch", "torchspore.graph.capture.constants")

__all__ = [
    "JitConfig", "_CellGraphExecutor", "_PyNativeExecutor", "_cell_graph_executor", "_no_grad", "_pynative_executor", "cells_compile_cache",
    "constexpr", "flops_collection", "init_exec_dataset", "jit", "jit_class", "ms_function", "ms_memory_recycle",
]

_OPTION_NAMES = ("capture_mode", "jit_level", "dynamic", "fullgraph", "backend")
_OLDER = ("fn", "mode", "input_signature", "hash_args", "jit_config", "compile_once", "infer_boost", "exec_order")
_CHOICES = {
    "jit_level": ("", "O0", "O1", "O2"), "exc_mode": ("auto", "sink", "no_sink"), "jit_syntax_level": ("", "STRICT", "COMPATIBLE", "LAX"),
    "debug_level": ("RELEASE", "DEBUG"), "infer_boost": ("on", "off"), "capture_mode": ("ast", "bytecode", "trace"),
    "exec_order": ("", "bfs", "dfs"),
}


class _LevelOfContext(str):
    """The default of `jit_level`: MindSpore's signature says "O0", but the level of the context applies, unlike for an explicit "O0"."""


def _check(call: str, **options: Any) -> None:
    """Raises ValueError for a value that an option does not accept."""
    for key, value in options.items():
        allowed = _CHOICES[key]
        if value not in allowed:
            text = f"{call}({key}={value!r:.40}): expected one of {', '.join(repr(a) for a in allowed if a)}."
            near = closest(str(value), allowed)
            raise ValueError(with_hint(text, f"write {key}={near!r}") if near else text)


class JitConfig:
    """Compile options of one function or Cell, which override the context's: `jit_level` and the other options of `jit_config`."""

    def __init__(
        self, jit_level: str = "", exc_mode: str = "auto", jit_syntax_level: str = "", debug_level: str = "RELEASE",
        infer_boost: str = "off", **kwargs: Any,
    ) -> None:
        exec_order = kwargs.pop("exec_order", None) or ""
        _check("JitConfig", jit_level=jit_level, exc_mode=exc_mode, jit_syntax_level=jit_syntax_level, debug_level=debug_level,
               infer_boost=infer_boost, exec_order=exec_order)
        if infer_boost == "on" and jit_level not in ("", "O0"):
            raise ValueError(f"JitConfig(infer_boost='on', jit_level={jit_level!r}): expected infer_boost 'on' only together with "
                             "jit_level 'O0'.\n\nhint: write jit_level='O0'.")
        self.jit_config_dict = {
            "jit_level": jit_level, "exc_mode": exc_mode, "jit_syntax_level": jit_syntax_level, "debug_level": debug_level,
            "infer_boost": infer_boost, **kwargs,
        }
        if exec_order:
            self.jit_config_dict["exec_order"] = exec_order


def jit(
    function: Callable[..., Any] | None = None, *, capture_mode: str = "ast", jit_level: str = _LevelOfContext("O0"), dynamic: int = 0,
    fullgraph: bool = False,
    backend: str = "", **options: Any,
) -> Any:
    """Run the decorated function (or method) as one captured graph, in both modes; code that a graph cannot contain runs in parts.

    Of a Cell, or of the Cells of a decorated class, `construct` runs that way.

    Raises TypeError for a value that is not a function.
    """
    if options.get("fn") is not None:
        if function is not None:
            raise TypeError("jit(function=..., fn=...): expected one function; `fn` is the older name.\n\nhint: write jit(function=...).")
        function = options["fn"]
    options.pop("fn", None)
    unknown = [key for key in options if key not in _OLDER]
    if unknown:
        raise TypeError(f"jit({unknown[0]}={options[unknown[0]]!r:.40}): expected one of {', '.join(_OPTION_NAMES)}.")
    _check("jit", capture_mode=capture_mode, jit_level=jit_level, exec_order=options.get("exec_order") or "")
    if not isinstance(fullgraph, bool):
        raise TypeError(message(f"jit(fullgraph={fullgraph!r:.40})", with_type("a bool", fullgraph)))
    if isinstance(dynamic, bool) or dynamic not in (0, 1):
        raise ValueError(f"jit(dynamic={dynamic!r:.40}): expected 0 or 1.")
    with_options = functools.partial(
        jit, capture_mode=capture_mode, jit_level=jit_level, dynamic=dynamic, fullgraph=fullgraph, backend=backend, **options,
    )
    if function is None:
        return with_options
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(with_options(function.__func__))
    if not callable(function):
        raise TypeError(message(f"jit({function!r:.40})", with_type("a function", function)))
    if inspect.isclass(function):
        return _jit_class(function, with_options)
    if hasattr(function, "construct"):
        return _jit_cell(function, with_options)

    @functools.wraps(function, updated=())
    def compiled(*args: Any, **kwargs: Any) -> Any:
        around = engine.frame()
        if around is not None and not dispatch.is_recorded():
            return around.callee(function)(*args, **kwargs)
        if recorded_steps.ACTIVE.runner is not None and not recorded_steps.is_inside():
            return recorded_steps.run(compiled, f"jit {function.__qualname__}", function, compiled, args, kwargs)
        first = args[0] if args else None
        is_method = getattr(first, "__dict__", None) is not None and inspect.isfunction(function) and _is_method(first, function)
        if is_method and compiled._owner() is not first:  # type: ignore[attr-defined]
            compiled._owner = weakref.ref(first)  # type: ignore[attr-defined]
        call = dispatch.call_outermost if around is None else dispatch.call
        return call(first if is_method else compiled, function, args, kwargs)

    compiled._owner = weakref.ref(compiled)  # type: ignore[attr-defined]       # the object that its graphs belong to
    if inspect.isfunction(function):
        function._compiled = weakref.ref(compiled)  # type: ignore[attr-defined]
    compiled._jit_config_ = _options(jit_level, options, fullgraph)  # type: ignore[attr-defined]
    if inspect.isfunction(function) and compiled._jit_config_:  # type: ignore[attr-defined]
        function._jit_config_ = compiled._jit_config_  # type: ignore[attr-defined]    # of a method: the graph belongs to the Cell
    return compiled


def _options(jit_level: str, others: dict[str, Any], fullgraph: bool) -> dict[str, Any]:
    """Return the options passed with the function; without one, the context decides. `fullgraph` means syntax level STRICT."""
    config = others.get("jit_config") or {}
    config_options = dict(getattr(config, "jit_config_dict", config))
    if not isinstance(jit_level, _LevelOfContext):
        config_options["jit_level"] = jit_level
    if fullgraph:
        config_options["jit_syntax_level"] = "STRICT"
    if others.get("exec_order"):
        config_options["exec_order"] = others["exec_order"]
    if "infer_boost" in others:
        config_options["infer_boost"] = others["infer_boost"]
    return config_options


def _is_method(first: Any, function: Any) -> bool:
    """Return whether `first` is the object whose class has `function` as a method."""
    member = getattr(type(first), function.__name__, None)
    return hasattr(first, "construct") and getattr(member, "__wrapped__", None) is function


def _jit_cell(cell: Any, with_options: Callable[..., Any]) -> Any:
    """Make the Cell run as a graph in both modes; return it."""
    cell.__dict__["construct"] = with_options(type(cell).construct.__get__(cell))
    return cell


def _jit_class(cls: Any, with_options: Callable[..., Any]) -> Any:
    """Make all Cells of a class run as graphs in both modes; other classes are unchanged, because graphs may use their objects."""
    if hasattr(cls, "construct"):
        cls.construct = with_options(cls.construct)
    return cls


ms_function = jit


def jit_class(cls: type) -> type:
    """Mark a class whose objects may be used inside graphs; here all classes may be."""
    if not inspect.isclass(cls):
        raise TypeError(f"jit_class({cls!r:.40}): expected a class, got {type(cls).__name__}.")
    return cls


def constexpr(
    fn: Callable[..., Any] | None = None, get_instance: bool = True, name: str | None = None, reuse_result: bool = True, check: bool = True,
) -> Any:
    """Mark a function that is computed once during a capture, not by the graph; its arguments are constants then."""
    if fn is None:
        return functools.partial(constexpr, get_instance=get_instance, name=name, reuse_result=reuse_result, check=check)

    @functools.wraps(fn)
    def computed(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs) if engine.frame() is None else constants.constant(fn, args, kwargs)

    return computed


def ms_memory_recycle() -> None:
    """Free the memory of captured graphs and of the allocator's cache."""
    import gc

    gc.collect()


def _convert_python_data(data: Any) -> Any:
    """Return the values of a result as a program sees them; they are Tensors here already."""
    return data


def _warn(text: str) -> None:
    from torchspore.mindspore import log

    log.warning(text)


FRONT.warn = _warn

__getattr__ = missing(__name__)
