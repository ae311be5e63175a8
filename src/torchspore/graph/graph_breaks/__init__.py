"""Graph breaks: code that cannot be captured runs in Python, the Cells and statements around it as separate graphs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.engine.execution import thread_state
from torchspore.graph.graph_breaks.runner import of

DEEPEST = 16
"""The number of calls with graph breaks that may be nested; deeper calls run as PyNative, because each is tried as a graph first."""


def run(owner: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a call that no graph holds."""
    with thread_state.inside_breaks(owner):
        return of(function)(*args, **kwargs)


def part(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, which a call calls, in its split form if that call is split."""
    local = thread_state.local
    return of(function) if thread_state.breaking and local.breaks and not local.in_pynative else function


def construct_of(cell: Any) -> Callable[..., Any]:
    """A Cell's construct: split where its call is."""
    local = thread_state.local
    if local.broken is not cell or local.in_pynative:
        return cell.construct
    local.broken = None
    return of(cell.construct)
