"""Measured times of a graph's operators, if TORCHSPORE_GRAPH_TIMES=1 requests them; otherwise the page shows estimates."""
from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.node import Node

from torchspore.base import event_log
from torchspore.engine.torch_internals.interpreter import Interpreter
from torchspore.engine.torch_internals.torch_private import without_modes

LEAST, MOST, LONGEST = 3, 20, 1.0
"""Runs of the whole graph, one operator at a time, and about how many seconds they may take; the least time of each operator counts."""


def are_requested() -> bool:
    """Return whether someone asked for them."""
    return os.environ.get("TORCHSPORE_GRAPH_TIMES", "") not in ("", "0")


def seconds(module: torch.fx.GraphModule, inputs: Callable[[], list[torch.Tensor]]) -> dict[str, float]:
    """Return the seconds of each operator by its name, a branch or loop as one; empty if the graph cannot run separately.

    `inputs` returns the real tensors; the measurement uses copies of them, and restores the random state.
    """
    from torchspore.graph.backend import measurement  # it is above this room, which levels hand their graphs to

    try:
        with without_modes(), measurement.undisturbed():
            arguments = inputs()
            timed, started = _Timed(module), time.perf_counter()
            for turn in range(MOST):
                timed.run(*[measurement.copy(t) for t in arguments])
                if turn >= LEAST and time.perf_counter() - started > LONGEST:
                    break
        return timed.seconds
    except (RuntimeError, TypeError, ValueError, IndexError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        event_log.event("graphs", f"the operators' times can't be measured: {reason}")
        return {}


class _Timed(Interpreter):
    """Runs a graph node by node and keeps the least time of each call."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.seconds: dict[str, float] = {}
        self._name = ""

    def run_node(self, n: Node) -> Any:
        """Record which node runs."""
        self._name = n.name
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs a call and takes its time."""
        started = time.perf_counter()
        result = target(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.device.type != "cpu":
            torch.accelerator.synchronize()
        took = time.perf_counter() - started
        self.seconds[self._name] = min(took, self.seconds.get(self._name, took))
        return result
