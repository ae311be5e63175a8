"""What an object was constructed with, so that `serialize` can say it again."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def recorded(kind: type, constructor: Callable[..., None]) -> Callable[..., None]:
    """The `__init__` of a class that notes its arguments before it runs; of several that call each other, the first one's count."""

    @functools.wraps(constructor)
    def __init__(self: Any, *given: Any, **named: Any) -> None:
        self.__dict__.setdefault("_given", (kind, given, named))     # the class, for the function under it can't be pickled
        constructor(self, *given, **named)

    return __init__


def record(kind: type) -> None:
    """Has a class note what it is constructed with, where it has a constructor of its own."""
    own = kind.__dict__.get("__init__")
    if own is not None:
        kind.__init__ = recorded(kind, own)  # type: ignore[misc]


def arguments(made: Any) -> dict[str, Any]:
    """What an object was constructed with, by name; nothing where its class has no constructor."""
    if "_given" not in made.__dict__:
        return {}
    kind, given, named = made._given
    bound = inspect.signature(kind.__init__).bind(made, *given, **named)
    bound.apply_defaults()
    return dict(list(bound.arguments.items())[1:])


def constructor_of(made: Any) -> Callable[..., None] | None:
    """The constructor that noted those arguments; None where the class has none of its own."""
    found: Callable[..., None] | None = made.__dict__["_given"][0] if "_given" in made.__dict__ else None
    return found
