"""`mindspore._extends`: internals of MindSpore that programs use: a decorator for constructors of Cells."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def cell_attr_register(fn: Any = None, attrs: Any = None) -> Any:
    """Decorates a Cell's `__init__`, so that its arguments, or those named in `attrs`, are stored as the text `cell_init_args`."""

    def decorate(init: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(init)

        @functools.wraps(init)
        def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            names = [attrs] if isinstance(attrs, str) else attrs
            arguments = {name: value for name, value in list(bound.arguments.items())[1:] if names is None or name in names}
            init(self, *args, **kwargs)
            self.__dict__["cell_init_args"] = f"{type(self).__name__}{arguments}"

        return initialise

    return decorate(fn) if fn is not None else decorate


__all__ = ["cell_attr_register"]
