"""Checks of arguments. The output of a port contains the text of those that it calls."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def checked_type(value: Any, types: Any) -> Any:
    """The value. Raises TypeError for one of another type; a bool is no number."""
    kinds = tuple(types) if isinstance(types, (list, tuple)) else (types,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise TypeError(f"expected {' or '.join(kind.__name__ for kind in kinds)}, got {type(value).__name__}")
    return value


def checked_number(value: Any, relation: str, limit: Any, kind: type) -> Any:
    """The value. Raises TypeError for one of another type, ValueError for a number that has not this relation to the limit."""
    checked_type(value, kind)
    holds = {"==": value == limit, "!=": value != limit, "<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit}
    if not holds[relation]:
        raise ValueError(f"expected a number {relation} {limit}, got {value}")
    return value


def checked_range(value: Any, relation: str, lower: Any, upper: Any, kind: type) -> Any:
    """The value. Raises TypeError for one of another type, ValueError for a number outside of an interval such as "[)"."""
    checked_number(value, ">=" if relation[0] == "[" else ">", lower, kind)
    return checked_number(value, "<=" if relation[1] == "]" else "<", upper, kind)


def checked_choice(value: Any, choices: Sequence[Any]) -> Any:
    """The value. Raises ValueError for one that is not among the choices."""
    if value not in choices:
        raise ValueError(f"expected one of {', '.join(map(repr, choices))}, got {value!r}")
    return value
