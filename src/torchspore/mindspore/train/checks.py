"""Argument checks of the training functions: a wrong Python type is a TypeError, a wrong value a ValueError."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short


def check_type(call: str, argument: str, value: Any, types: type | tuple[type, ...], expected: str) -> None:
    """Raises TypeError unless `value` is one of `types`; a bool is not a number."""
    accepted = types if isinstance(types, tuple) else (types,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        raise TypeError(message(f"{call}({argument}={short(value)})", f"{expected}, got {type(value).__name__}"))


def check_int(call: str, argument: str, value: Any, low: int) -> None:
    """Raises TypeError unless `value` is an int, ValueError if it is below `low`."""
    check_type(call, argument, value, int, "an int")
    if value < low:
        raise ValueError(message(f"{call}({argument}={value})", f"an int from {low}"))


def check_bool(call: str, argument: str, value: Any) -> None:
    """Raises TypeError unless `value` is True or False."""
    check_type(call, argument, value, bool, "True or False")
