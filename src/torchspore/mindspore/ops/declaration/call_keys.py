"""Keys of calls of constructors, by which the checked arguments of earlier calls are stored."""
from __future__ import annotations

from typing import Any

MOST_CALLS = 64
"""The number of calls of a constructor whose checked arguments are stored."""
_HASHABLE = frozenset({bool, int, str, type(None)})


def call_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return a key of a call with ints, bools, strings and tuples of ints alone, which distinguishes 1 and True; None for others."""
    if not args and not kwargs:
        return ()
    values = (*args, *kwargs.values())
    for value in values:
        if value.__class__ not in _HASHABLE and (value.__class__ is not tuple or any(item.__class__ is not int for item in value)):
            return None
    return values, tuple(kwargs), tuple([value.__class__ for value in values])
