"""What steers PyNative by hand: `_pynative_executor` and `_no_grad`."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchspore.engine import eager, recording
from torchspore.engine.tensor import TensorBase


class _no_grad:
    """A context in which nothing counts for gradients, also as a decorator (`@_no_grad()`)."""

    def __enter__(self) -> None:
        self._before = recording.is_enabled()
        recording.set_enabled(False)

    def __exit__(self, *_: Any) -> None:
        recording.set_enabled(self._before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def without(*args: Any, **kwargs: Any) -> Any:
            with type(self)():
                return function(*args, **kwargs)

        return without


class _PyNativeExecutor:
    """Records what runs between `new_graph` and `end_graph`, and gives its gradients."""

    def __init__(self) -> None:
        self._flag = False

    def new_graph(self, obj: Any, *args: Any, **kwargs: Any) -> None:
        """Begins a record of the call `obj(*args, **kwargs)`, which the caller makes next."""
        recording.begin(obj, args, kwargs)

    def end_graph(self, obj: Any, output: Any, *args: Any, **kwargs: Any) -> None:
        """Ends the record of `obj`, whose call gave `output`. Raises RuntimeError where none was begun."""
        del obj, args, kwargs               # the record has them from `new_graph`
        recording.end(output)

    def grad(self, obj: Any, grad: Any, weights: Any, grad_position: Any, *args: Any) -> Any:
        """Gradients of the record that ended last, or of a fresh call `obj(*args)`, grouped as the GradOperation `grad` says.

        `grad_position` (an int or a tuple) names the arguments, where `grad` does not ask for all; since 2.6 a bool stands before `args`:
        whether the first output alone is differentiated.
        """
        has_aux = bool(args) and isinstance(args[0], bool)
        aux, args = (args[0], args[1:]) if has_aux else (False, args)
        by_list, every = getattr(grad, "get_by_list", bool(weights)), getattr(grad, "get_all", False)
        listed = () if not by_list else (weights,) if isinstance(weights, TensorBase) else tuple(weights)
        sens, args = (args[-1], args[:-1]) if getattr(grad, "sens_param", False) else (None, args)
        at = (grad_position,) if isinstance(grad_position, int) else tuple(grad_position or ())
        positions = tuple(range(len(args))) if every else at or (() if by_list else (0,))
        _, by_position, by_weight = recording.gradients(obj, args, positions, listed, sens, aux)
        by_position = [g for g in by_position if g is not None]
        inputs = tuple(by_position) if every or isinstance(grad_position, tuple) else by_position[0] if by_position else ()
        if not by_list:
            return inputs
        return (inputs, tuple(by_weight)) if positions else tuple(by_weight)

    def enable_grad(self) -> bool:
        """Whether what runs counts for gradients: not within `_no_grad`."""
        return recording.is_enabled()

    def set_enable_grad(self, flag: bool) -> None:
        """Says whether what runs from now on counts for gradients."""
        recording.set_enabled(flag)

    def grad_flag(self) -> bool:
        """What `set_grad_flag` said."""
        return self._flag

    def set_grad_flag(self, flag: bool) -> None:
        """Says that gradients will be wanted; records begin with `new_graph` alone, here."""
        self._flag = flag

    def requires_grad(self) -> bool:
        """Whether gradients are wanted and not switched off."""
        return self._flag and recording.is_enabled()

    def sync(self) -> None:
        """Waits until the device has done what it was given."""
        eager.wait()

    def clear_res(self) -> None:
        """Forgets that gradients are wanted."""
        self._flag = False


_pynative_executor = _PyNativeExecutor()


def _function_forbid_reuse(func: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function whose graph is never shared between calls; here each call site is captured by itself anyway."""
    if not callable(func):
        raise TypeError(f"_function_forbid_reuse({func!r:.40}): expected a function, got {type(func).__name__}.")
    func.__dict__["__function_forbid_reuse__"] = True
    return func
