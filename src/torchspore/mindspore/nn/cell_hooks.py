"""Hooks of Cells: before and after the call, and on the gradients of a Cell."""
from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from torchspore.base.text import message
from torchspore.engine.autograd.bprop import watch_gradients
from torchspore.engine.tensors import change_counters

_numbers = itertools.count()


class HookHandle:
    """Removes a hook."""

    def __init__(self, hooks: OrderedDict[int, Any], number: int) -> None:
        self._hooks_, self._number = hooks, number

    def remove(self) -> None:
        """Remove the hook; a second call has no effect."""
        self._hooks_.pop(self._number, None)
        change_counters.calls_changed()


class CellHooks:
    """The methods of a Cell for hooks."""

    _hooks_: dict[str, OrderedDict[int, Any]] | None

    def register_forward_pre_hook(self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False) -> HookHandle:
        """Call `hook_fn(cell, inputs)` before `construct`; its result, if not None, replaces the inputs.

        With `prepend`, call it before the existing hooks.
        """
        return self._register_("pre", hook_fn, with_kwargs, prepend=prepend)

    def register_forward_hook(
        self, hook_fn: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False,
    ) -> HookHandle:
        """Call `hook_fn(cell, inputs, output)` after `construct`; its result, if not None, replaces the output.

        With `prepend`, call it before the existing hooks; with `always_call`, also if the call fails, with the output so far (None);
        an error of the hook itself is then ignored.
        """
        return self._register_("forward", hook_fn, with_kwargs, always_call, prepend)

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call `hook_fn(cell, grad_input, grad_output)` in the backward pass; its result, if not None, replaces grad_input."""
        return self._register_("backward", hook_fn, False)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call `hook_fn(cell, grad_output)` before the backward pass of this Cell; its result, if not None, replaces
        grad_output.
        """
        return self._register_("backward_pre", hook_fn, False)

    def _register_(
        self, kind: str, hook: Callable[..., Any], with_kwargs: bool, always_call: bool = False, prepend: bool = False,
    ) -> HookHandle:
        if not callable(hook):
            raise TypeError(message(f"hook {hook!r}", "a function"))
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
        hooks = {kind: list(hooks_by_id.values()) for kind, hooks_by_id in (self._hooks_ or {}).items()}
        waiting, output, call_arguments = list(hooks.get("forward", [])), None, (args, kwargs)

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
                call_arguments = args, kwargs
            # Gradient hooks see the gradients of the results of the pre hooks and of the forward hooks.
            after, before = ([hook for hook, _, _ in hooks.get(kind, [])] for kind in ("backward", "backward_pre"))
            return watch_gradients(self, hooked, after, before)(*args, **kwargs) if after or before else hooked(*args, **kwargs)
        except Exception:
            for hook, with_kwargs, always_call in waiting:
                if always_call:
                    with suppress(Exception):          # the first error is the one to report
                        got = hook(self, *call_arguments, output) if with_kwargs else hook(self, call_arguments[0], output)
                        output = output if got is None else got
            raise
