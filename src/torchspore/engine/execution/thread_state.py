"""The state of this thread: inside a call that runs as PyNative, or one that runs with graph breaks."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torchspore.base.text import message
from torchspore.context.store import STORE
from torchspore.engine.tensors import tensor
from torchspore.engine.tensors.tensor import frame

breaking = 0
"""How many calls run with graph breaks, in all threads."""

_counting = threading.Lock()

local = tensor.thread_state
"""Read on the way of each call, so it is asked directly."""


def is_graph_mode() -> bool:
    """Return whether this thread runs in GRAPH_MODE, and not the insides of a call that a graph can't hold."""
    return STORE.graph_mode and not local.in_pynative


@contextmanager
def inside_breaks(owner: Any) -> Iterator[None]:
    """Mark that a call of `owner` runs with graph breaks; the first call of a Cell inside it is split."""
    global breaking
    before = local.broken
    with _counting:
        breaking += 1
    local.broken, local.breaks = owner, local.breaks + 1
    try:
        yield
    finally:
        with _counting:
            breaking -= 1
        local.broken, local.breaks = before, local.breaks - 1


def in_pynative(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs a call operator by operator, whatever the mode."""
    before, local.in_pynative = local.in_pynative, True
    try:
        return function(*args, **kwargs)
    finally:
        local.in_pynative = before


def is_in_graph() -> bool:
    """Return whether this thread is inside of a call in GRAPH_MODE: one that is captured, or that runs because no graph can hold it."""
    return STORE.graph_mode and (frame() is not None or local.in_pynative or local.breaks > 0)


def is_in_jit() -> bool:
    """Return whether this thread is inside of a `@jit` function or a captured call."""
    around = frame()
    while around is not None and not around.traces:
        around = around.outer
    return around is not None or local.in_pynative or local.breaks > 0


def refuse_in_module(what: str) -> None:
    """Raises ValueError inside of a call of a Cell's torch Module. `what` describes the change of a Parameter that the program requests."""
    around = frame()
    if around is not None and around.modules is not None:
        text = message(f"{what} was set in a call of as_module", "a value that calls do not change", hint="set it before the call")
        raise ValueError(text)


def follows_graph_rules() -> bool:
    """Return whether gradients of this thread are those of graphs: of listed weights, whatever their `requires_grad` says."""
    return STORE.graph_mode or is_in_jit()
