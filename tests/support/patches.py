"""Replaced attributes of modules and objects, in processes that end with the test."""
from __future__ import annotations

from typing import Any


def replace(owner: Any, **values: Any) -> None:
    """Set attributes that `owner` has. Raises AttributeError for a name that it does not have: such a patch would change nothing."""
    for name, value in values.items():
        if not hasattr(owner, name):
            raise AttributeError(f"{getattr(owner, '__name__', type(owner).__name__)} has no {name!r}: the name was changed or removed")
        setattr(owner, name, value)
