"""Set a context variable for a block."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any


@contextmanager
def during(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Set the variable to this value for the block, in the thread that runs it."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
