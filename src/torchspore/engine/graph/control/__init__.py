"""Control flow on Tensors as control flow of the graph: source to closures, branches and loops, their gradients, what STRICT refuses.

What a capture needs of it stands here; the rest is loaded when a capture converts.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchspore.engine.graph.control import records


def lowered(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The captured graph with direct calls in the place of branches and loops."""
    from torchspore.engine.graph.control.lower import lower as run

    return run(module)


def converted(function: Callable[..., Any], watch: Any) -> Callable[..., Any]:
    """What to call for `function` in a capture that converts; `watch` learns of its free variables."""
    from torchspore.engine.graph.control.helpers import call

    made = call(function)
    watch.learn(made)
    return made


def forget() -> None:
    """Is told that a capture has ended."""
    records.RECORDS.clear()
