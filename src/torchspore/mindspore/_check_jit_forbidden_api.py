"""`mindspore._check_jit_forbidden_api`: the mark of functions that MindSpore's compiler refuses. Graphs here run them in Python."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


def jit_forbidden_register(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged."""
    return fn


__all__ = ["jit_forbidden_register"]
