"""`saved_tensors_hooks`: user-defined handling of values saved for the backward pass."""
from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torchspore.base.text import message, short


def check_hooks(call: str, pack_hook: Any, unpack_hook: Any) -> None:
    """Raises TypeError unless both hooks are callable."""
    for name, hook in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
        if not callable(hook):
            raise TypeError(message(f"{call}({name}={short(hook)})", f"a function of one value, got {type(hook).__name__}"))


class saved_tensors_hooks:
    """A context: values saved for the backward pass go through `pack_hook`, and back through `unpack_hook` when they are needed.

    `unpack_hook` gets the result of `pack_hook`, and returns a Tensor of the saved shape and dtype. Raises TypeError for hooks that
    are not callable.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        check_hooks("saved_tensors_hooks", pack_hook, unpack_hook)
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        self._open: list[AbstractContextManager[Any]] = []

    def __enter__(self) -> None:
        from torchspore.engine.autograd import saved_tensor_hooks

        context = saved_tensor_hooks.hooks(self.pack_hook, self.unpack_hook)
        context.__enter__()
        self._open.append(context)

    def __exit__(self, *error: Any) -> None:
        self._open.pop().__exit__(*error)


def register_saved_tensors_hooks(pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> Callable[..., Any]:
    """Decorate a function whose values saved for a gradient go through the hooks, in both modes.

    Raises TypeError for hooks that are not callable.
    """
    check_hooks("register_saved_tensors_hooks", pack_hook, unpack_hook)

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            from torchspore.engine.autograd.saved_tensor_hooks import hooked

            return hooked(function, pack_hook, unpack_hook)(*args, **kwargs)

        return called

    return decorated
