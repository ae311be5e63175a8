"""The stages of the compilation that is under way: whoever makes one hands the graph in; where nothing is saved this is one look.

A recording belongs to a context (PEP 567), so that the thread with a larger stack that `depth.with_room` starts writes into the same one
and other threads do not see it.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch


class Recording(Protocol):
    """What takes the stages of one compilation."""

    def keep(self, name: str, module: torch.fx.GraphModule) -> None:
        """Takes the graph as it is now."""


_recording: ContextVar[Recording | None] = ContextVar("torchspore_recording", default=None)


def keep(name: str, module: torch.fx.GraphModule) -> None:
    """Records the graph as it is after the step `name`, a word such as `precision`, for the compilation that runs here now."""
    recording = _recording.get()
    if recording is not None:
        recording.keep(name, module)


def current() -> Recording | None:
    """The recording of the compilation that runs here now, None where nothing is saved."""
    return _recording.get()


@contextmanager
def recorded_by(recording: Recording | None) -> Iterator[None]:
    """Makes `recording` the one of the block; a compilation inside of another one has its own."""
    token = _recording.set(recording)
    try:
        yield
    finally:
        _recording.reset(token)
