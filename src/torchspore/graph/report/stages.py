"""The stages of the compilation that is under way: whoever makes one hands the graph in; where nothing is saved this is one look.

A recording belongs to a context (PEP 567), so that the thread with a larger stack that `depth.with_room` starts writes into the same one
and other threads do not see it.
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import torch

from torchspore.base import progress
from torchspore.base.context_values import during

Code = TypeVar("Code")


class Recording(Protocol):
    """Receives the stages of one compilation."""

    def keep(self, name: str, module: torch.fx.GraphModule) -> None:
        """Takes the graph as it is now."""

    def keep_pass(self, name: str, module: torch.fx.GraphModule) -> None:
        """Takes the graph as it is after a pass."""

    def began(self, capture: Any) -> None:
        """Is told of the capture of a call, which begins."""

    def traced(self, module: torch.fx.GraphModule, lifted: list[Any], function: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        """Takes the trace of a call, and the Tensors that are its inputs."""

    def emitted(self, module: torch.fx.GraphModule, inputs: Callable[[], list[torch.Tensor]]) -> None:
        """Takes the graph that runs, and where its inputs come from."""

    def part(self, name: str) -> None:
        """Is told that one half of the graph follows."""


now: ContextVar[Recording | None] = ContextVar("torchspore_recording", default=None)


def keep(name: str, module: torch.fx.GraphModule) -> None:
    """Records the graph as it is after the step `name`, a word such as `precision`, for the compilation that runs here now."""
    progress.note(lambda: f"rewrites a graph of {len(module.graph.nodes):,} nodes (after the step {name!r}).")
    recording = now.get()
    if recording is not None:
        recording.keep(name, module)


def began(capture: Any) -> None:
    """Says that the capture of a call begins; it has a `tracer`."""
    graph = capture.tracer.graph
    progress.note(lambda: f"traces the program, {len(graph.nodes):,} nodes so far.")
    recording = now.get()
    if recording is not None:
        recording.began(capture)


def traced(module: torch.fx.GraphModule, lifted: list[Any], function: Any, args: tuple[Any, ...], kwargs: Any) -> None:
    """Records the trace of `function(*args, **kwargs)`; `lifted` are the Tensors that are its inputs."""
    recording = now.get()
    if recording is not None:
        recording.traced(module, lifted, function, args, kwargs)


def keep_pass(name: str, module: torch.fx.GraphModule) -> None:
    """Records the graph as it is after one pass of those that every level runs."""
    recording = now.get()
    if recording is not None:
        recording.keep_pass(name, module)


def part(name: str) -> None:
    """Says that what is compiled from now on is one half of the graph, `forward` or `backward`."""
    recording = now.get()
    if recording is not None:
        recording.part(name)


def shown(code: Code, module: torch.fx.GraphModule | None) -> Code:
    """`code`, which runs `module`: that is remembered for who wants to show it, or to run it in another way."""
    code.graph = module  # type: ignore[attr-defined]
    return code


def graph_of(code: Any) -> torch.fx.GraphModule | None:
    """Return the graph that `shown` stored for a code."""
    return getattr(code, "graph", None)


def emitted(code: Any, module: torch.fx.GraphModule, inputs: Callable[[], list[torch.Tensor]]) -> None:
    """Records what the code of a compiled graph runs; `module` where the code does not say. `inputs` gives the real tensors."""
    recording = now.get()
    if recording is not None:
        recording.emitted(graph_of(code) or module, inputs)


def recorded_by(recording: Recording | None) -> AbstractContextManager[None]:
    """Makes `recording` the one of the block; a compilation inside of another one has its own."""
    return during(now, recording)
