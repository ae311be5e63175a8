"""Where a call of a Cell, a `@jit` function or a gradient transform becomes a graph."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.context.store import STORE

version = 0


def changed() -> None:
    """Is told whenever an attribute, a Parameter or a Cell is set on a Cell."""
    global version
    version += 1


def is_graph_mode() -> bool:
    """Whether this thread runs in GRAPH_MODE."""
    return STORE.graph_mode


def call(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)


def compile(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    pass
