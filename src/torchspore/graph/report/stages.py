"""The stages of the running compilation: each producer of a stage passes the graph here; without a recording this costs one look-up.

A recording belongs to a context (PEP 567), so that the thread with a larger stack that `depth.with_room` starts writes into the same
recording, and other threads do not see it.
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import torch

from torchspore.base import progress
from torchspore.base.context_values import during
from torchspore.translations import translate

Code = TypeVar("Code")


class Recording(Protocol):
    """Receives the stages of one compilation."""

    def keep(self, name: str, module: torch.fx.GraphModule) -> None:
        """Record the present graph."""

    def keep_pass(self, name: str, module: torch.fx.GraphModule) -> None:
        """Record the graph after a pass."""

    def began(self, capture: Any) -> None:
        """Called when the capture of a call begins."""

    def traced(self, module: torch.fx.GraphModule, lifted: list[Any], function: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        """Record the trace of a call, and the Tensors that are its inputs."""

    def emitted(self, module: torch.fx.GraphModule, inputs: Callable[[], list[torch.Tensor]]) -> None:
        """Record the graph that runs, and the sources of its inputs."""

    def part(self, name: str) -> None:
        """Called before one half of the graph."""


now: ContextVar[Recording | None] = ContextVar("torchspore_recording", default=None)


def keep(name: str, module: torch.fx.GraphModule) -> None:
    """Record the graph as it is after the step `name`, a word such as `precision`, for the running compilation."""
    progress.note(lambda: translate("rewrites a graph of {count:,} nodes (after the step {name!r}).").format(
        count=len(module.graph.nodes), name=name))
    recording = now.get()
    if recording is not None:
        recording.keep(name, module)


def began(capture: Any) -> None:
    """Report that the capture of a call begins; it has a `tracer`."""
    graph = capture.tracer.graph
    progress.note(lambda: translate("traces the program, {count:,} nodes so far.").format(count=len(graph.nodes)))
    recording = now.get()
    if recording is not None:
        recording.began(capture)


def traced(module: torch.fx.GraphModule, lifted: list[Any], function: Any, args: tuple[Any, ...], kwargs: Any) -> None:
    """Records the trace of `function(*args, **kwargs)`; `lifted` are the Tensors that are its inputs."""
    recording = now.get()
    if recording is not None:
        recording.traced(module, lifted, function, args, kwargs)


def keep_pass(name: str, module: torch.fx.GraphModule) -> None:
    """Record the graph after a pass that every level runs."""
    recording = now.get()
    if recording is not None:
        recording.keep_pass(name, module)


def part(name: str) -> None:
    """Report that the following stages belong to one half of the graph, `forward` or `backward`."""
    recording = now.get()
    if recording is not None:
        recording.part(name)


def shown(code: Code, module: torch.fx.GraphModule | None) -> Code:
    """Return `code`, which runs `module`, with a reference to the module for code that shows it or runs it in another way."""
    code.graph = module  # type: ignore[attr-defined]
    return code


def graph_of(code: Any) -> torch.fx.GraphModule | None:
    """Return the graph that `shown` stored for a code."""
    return getattr(code, "graph", None)


def emitted(code: Any, module: torch.fx.GraphModule, inputs: Callable[[], list[torch.Tensor]]) -> None:
    """Record the operators of a compiled graph's code; `module` if the code does not contain them. `inputs` returns the real tensors."""
    recording = now.get()
    if recording is not None:
        recording.emitted(graph_of(code) or module, inputs)


def recorded_by(recording: Recording | None) -> AbstractContextManager[None]:
    """Use `recording` in the block; a nested compilation has a separate one."""
    return during(now, recording)
