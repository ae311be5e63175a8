"""What this thread is inside of: a call that runs as PyNative, or one that runs in parts."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torchspore.context.store import STORE

DEEPEST = 16
"""So many calls that run in parts may lie in each other; what is deeper runs as PyNative, because each is tried as a graph first."""

parting = 0
"""How many calls run in parts, in all threads."""

_counting = threading.Lock()


class _Local(threading.local):
    in_pynative = False
    parted: Any = None             # the Cell whose construct is to run in parts
    in_parts = 0


local = _Local()
"""Read on the way of each call, so it is asked directly."""


def is_graph_mode() -> bool:
    """Whether this thread runs in GRAPH_MODE, and not the insides of a call that a graph can't hold."""
    return STORE.graph_mode and not local.in_pynative


def in_parts(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a call that no graph holds: what can't be captured in Python, the Cells and statements around it as graphs of their own."""
    global parting
    before = local.parted
    with _counting:
        parting += 1
    local.parted, local.in_parts = owner, local.in_parts + 1
    try:
        return _parts_of(function)(*args, **kwargs)
    finally:
        with _counting:
            parting -= 1
        local.parted, local.in_parts = before, local.in_parts - 1


def _parts_of(function: Callable[..., Any]) -> Callable[..., Any]:
    from torchspore.engine.graph.breaks.runner import of  # it runs its pieces through this file

    return of(function)


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which a call calls: in parts where that call runs in parts."""
    return _parts_of(function) if parting and local.in_parts and not local.in_pynative else function


def construct_of(cell: Any) -> Callable[..., Any]:
    """A Cell's construct: in parts where its call runs in parts."""
    if local.parted is not cell or local.in_pynative:
        return cell.construct
    local.parted = None
    return _parts_of(cell.construct)


def in_pynative(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a call operator by operator, whatever the mode."""
    before, local.in_pynative = local.in_pynative, True
    try:
        return function(*args, **kwargs)
    finally:
        local.in_pynative = before
