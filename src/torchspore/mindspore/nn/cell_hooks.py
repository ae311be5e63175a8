"""Hooks of Cells: before and after the call, and on the gradients that pass a Cell."""
from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from torchspore.engine.autograd.bprop import watch_gradients
from torchspore.engine.core import change_counters

_numbers = itertools.count()


class HookHandle:
    """Takes a hook away again."""

    def __init__(self, hooks: OrderedDict[int, Any], number: int) -> None:
        self._hooks_, self._number = hooks, number

    def remove(self) -> None:
        """Takes the hook away; a second time does nothing."""
        self._hooks_.pop(self._number, None)
        change_counters.calls_changed()


class CellHooks:
    """What a Cell offers of hooks."""

    _hooks_: dict[str, OrderedDict[int, Any]] | None

    def register_forward_pre_hook(self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> HookHandle:
        """Calls `hook_fn(cell, inputs)` before `construct`; what it gives back, if not None, replaces the inputs.

        With `prepend` before the hooks that are there.
        """
        return self._register_("pre", hook_fn, with_kwargs, prepend=prepend)

    def register_forward_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False,
    ) -> HookHandle:
        """Calls `hook_fn(cell, inputs, output)` after `construct`; what it gives back, if not None, replaces the output.

        With `prepend` before the hooks that are there, with `always_call` also where the call fails, with what output there is (None);
        an error of the hook itself is then passed over.
        """
        return self._register_("forward", hook_fn, with_kwargs, always_call, prepend)

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Calls `hook_fn(cell, grad_input, grad_output)` in the backward pass; what it gives back, if not None, replaces grad_input."""
        return self._register_("backward", hook_fn, False)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Calls `hook_fn(cell, grad_output)` before the backward pass of this Cell; what it gives back, if not None, replaces
        grad_output.
        """
        return self._register_("backward_pre", hook_fn, False)

    def _register_(
        self, kind: str, hook: Callable[..., Any], with_kwargs: bool, always_call: bool = False, prepend: bool = False,
    ) -> HookHandle:
        if not callable(hook):
            raise TypeError(f"hook {hook!r}: expected a function.")
        change_counters.calls_changed()
        if self._hooks_ is None:
            self.__dict__["_hooks_"] = {}
        assert self._hooks_ is not None
        hooks = self._hooks_.setdefault(kind, OrderedDict())
        number = next(_numbers)
        hooks[number] = (hook, with_kwargs, always_call)
        if prepend:
            hooks.move_to_end(number, last=False)
        return HookHandle(hooks, number)

    def _call_with_hooks_(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        hooks = {kind: list(found.values()) for kind, found in (self._hooks_ or {}).items()}
        waiting, output, given = list(hooks.get("forward", [])), None, (args, kwargs)

        def hooked(*args: Any, **kwargs: Any) -> Any:
            nonlocal output
            output = call(*args, **kwargs)
            while waiting:
                hook, with_kwargs, _ = waiting.pop(0)
                got = hook(self, args, kwargs, output) if with_kwargs else hook(self, args, output)
                output = output if got is None else got
            return output

        try:
            for hook, with_kwargs, _ in hooks.get("pre", []):
                got = hook(self, args, kwargs) if with_kwargs else hook(self, args)
                if got is not None:
                    args, kwargs = got if with_kwargs else (got if isinstance(got, tuple) else (got,), kwargs)
                given = args, kwargs
            # The gradient's hooks see the gradients of what the pre hooks gave and of what the forward hooks gave.
            after, before = ([hook for hook, _, _ in hooks.get(kind, [])] for kind in ("backward", "backward_pre"))
            return watch_gradients(self, hooked, after, before)(*args, **kwargs) if after or before else hooked(*args, **kwargs)
        except Exception:
            for hook, with_kwargs, always_call in waiting:
                if always_call:
                    with suppress(Exception):          # the first error is the one to be seen
                        got = hook(self, *given, output) if with_kwargs else hook(self, given[0], output)
                        output = output if got is None else got
            raise
