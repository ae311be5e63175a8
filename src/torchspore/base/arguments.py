"""Checks of arguments: a wrong Python type is a TypeError, a wrong value a ValueError."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short


def is_int(value: Any) -> bool:
    """Return whether `value` is an int and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_type(call: str, argument: str, value: Any, types: type | tuple[type, ...], expected: str, *, hint: str | None = None) -> None:
    """Raises TypeError unless `value` is one of `types`; a bool is not a number."""
    accepted = types if isinstance(types, tuple) else (types,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        raise TypeError(message(f"{call}({argument}={short(value)})", f"{expected}, got {type(value).__name__}", hint=hint))


def check_bool(call: str, argument: str, value: Any) -> None:
    """Raises TypeError unless `value` is True or False."""
    check_type(call, argument, value, bool, "True or False")


def check_bools(call: str, **arguments: Any) -> None:
    """Raises TypeError for an argument that is not a bool."""
    for argument, value in arguments.items():
        if not isinstance(value, bool):
            raise TypeError(f"{call}({argument}={value!r:.40}): expected a bool, got {type(value).__name__}.")


def check_int_type(call: str, argument: str, value: Any) -> None:
    """Raises TypeError unless `value` is an int and not a bool."""
    check_type(call, argument, value, int, "an int")


def check_int(call: str, argument: str, value: Any, low: int, high: int | None = None, *, hint: str | None = None) -> None:
    """Raises TypeError unless `value` is an int, ValueError unless it is in [low, high]; `high` None is no limit."""
    check_type(call, argument, value, int, "an int", hint=hint)
    if value < low or (high is not None and value > high):
        limits = f"from {low}" if high is None else f"from {low} to {high}"
        raise ValueError(message(f"{call}({argument}={value!r})", f"an int {limits}", hint=hint))


def check_counts(call: str, **counts: Any) -> None:
    """Raises TypeError for a value that is not an int, ValueError for one below 1."""
    for argument, value in counts.items():
        check_int_type(call, argument, value)
        if value < 1:
            raise ValueError(message(f"{call}({argument}={value})", "an int from 1 on"))
