"""What programs call on MindSpore's executors: to wait for the device, to ask whether gradients are taken, to compile a Cell."""
from __future__ import annotations

import contextlib
import gc
from typing import Any

from torchspore.base.text import message, short
from torchspore.engine import eager, grad
from torchspore.engine import tensor as engine
from torchspore.engine.graph import dispatch


class _PyNativeExecutor:
    """Answers for PyNative mode as MindSpore's executor of that name; there is one, `_pynative_executor`."""

    def sync(self) -> None:
        """Waits until the device has computed all that was asked of it."""
        eager.wait()

    def clear_res(self) -> None:
        """Frees what nobody holds any more."""
        gc.collect()

    def enable_grad(self) -> bool:
        """Whether gradients may be taken: not within `_no_grad`."""
        return eager.takes_gradients()

    def set_enable_grad(self, flag: bool) -> None:
        """Says whether gradients flow through what is computed from now on in this thread."""
        _check_flag("set_enable_grad", flag)
        eager.take_gradients(flag)

    def grad_flag(self) -> bool:
        """Whether a gradient is being taken of what runs now."""
        return grad.is_recording()

    def requires_grad(self) -> bool:
        """Whether a gradient is being taken, and may be."""
        return self.enable_grad() and self.grad_flag()

    def high_order(self) -> bool:
        """Whether a gradient of a gradient is being taken."""
        around = engine.frame()
        count = 0
        while around is not None:
            count += isinstance(around, grad.GradFrame)
            around = around.outer
        return count > 1


class _CellGraphExecutor:
    """Compiles and runs Cells as graphs, as MindSpore's executor of that name; there is one, `_cell_graph_executor`."""

    def compile(
        self, obj: Any, *args: Any, phase: str = "predict", do_convert: bool = True, jit_config_dict: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> tuple[str, bool]:
        """Captures the graph of a Cell (or function) for these arguments without running it: (name of the compilation, True).

        `phase` is part of the name and of nothing else, for graphs here are found by what they were captured for. Options in
        `jit_config_dict` belong to the Cell: `set_jit_config` takes them.
        """
        if not callable(obj):
            raise TypeError(message(f"compile({short(obj)})", f"a Cell or a function, got {type(obj).__name__}"))
        if not do_convert or jit_config_dict:
            raise ValueError(message("compile(do_convert=..., jit_config_dict=...)", "the defaults", hint="write net.set_jit_config(...)"))
        if hasattr(obj, "construct"):
            obj.compile(*args, **kwargs)
        else:
            dispatch.compile(obj, obj, args, kwargs)
        return f"{phase}.{type(obj).__name__}.{id(obj)}", True

    def __call__(self, obj: Any, *args: Any, phase: str = "predict") -> Any:
        """Runs a Cell as a captured graph, whatever the mode."""
        if not isinstance(phase, str):
            raise TypeError(message(f"phase={short(phase)}", f"a str, got {type(phase).__name__}"))
        return obj.compile_and_run(*args)

    run = __call__


class _no_grad(contextlib.ContextDecorator):
    """Around statements (`with _no_grad():`) or a function: no gradient flows through what they compute."""

    def __enter__(self) -> None:
        self._before = eager.takes_gradients()
        eager.take_gradients(False)

    def __exit__(self, *error: Any) -> None:
        eager.take_gradients(self._before)


def _check_flag(name: str, flag: Any) -> None:
    if not isinstance(flag, bool):
        raise TypeError(message(f"{name}({short(flag)})", f"a bool, got {type(flag).__name__}"))


_pynative_executor = _PyNativeExecutor()
_cell_graph_executor = _CellGraphExecutor()
