"""The hook that runs before the first step of a training: the parameter server connects to the other processes there."""
from __future__ import annotations

from collections.abc import Callable


class _TrainingStart:
    """`hook` is called before a gradient or a graph that is not part of another one; None if there is nothing to do."""

    def __init__(self) -> None:
        self.hook: Callable[[], None] | None = None


TRAINING_START = _TrainingStart()
