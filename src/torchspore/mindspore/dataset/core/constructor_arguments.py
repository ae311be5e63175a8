"""Records the constructor arguments of objects, so that `serialize` can write them."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def recorded(kind: type, constructor: Callable[..., None]) -> Callable[..., None]:
    """Wrap the `__init__` of a class so that it records its arguments; if several call each other, the first call's arguments count."""

    @functools.wraps(constructor)
    def __init__(self: Any, *args: Any, **named: Any) -> None:
        self.__dict__.setdefault("_constructor_call", (kind, args, named))     # the class, because the wrapped function can't be pickled
        constructor(self, *args, **named)

    return __init__


def record(kind: type) -> None:
    """Make a class record its constructor arguments, if it defines a constructor."""
    constructor = kind.__dict__.get("__init__")
    if constructor is not None:
        kind.__init__ = recorded(kind, constructor)  # type: ignore[misc]


def arguments(instance: Any) -> dict[str, Any]:
    """Return an object's constructor arguments by name; empty if its class has no constructor."""
    if "_constructor_call" not in instance.__dict__:
        return {}
    kind, args, named = instance._constructor_call
    bound = inspect.signature(kind.__init__).bind(instance, *args, **named)
    bound.apply_defaults()
    return dict(list(bound.arguments.items())[1:])


def constructor_of(instance: Any) -> Callable[..., None] | None:
    """Return the constructor that recorded those arguments; None if the class does not define one."""
    call = instance.__dict__.get("_constructor_call")
    constructor: Callable[..., None] | None = None if call is None else call[0]
    return constructor
