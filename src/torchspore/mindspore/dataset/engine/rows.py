"""Rows, and the state of one run through a pipeline.

A row is a tuple with one value for each column: a NumPy array, or a dict from a source.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.engine.failures import PipelineError

Row = tuple[Any, ...]


class _Closeable(Protocol):
    @property
    def close(self) -> Callable[[], None]: ...


Opened = TypeVar("Opened", bound=_Closeable)


class Run:
    """One iterator's run through a pipeline: the seed, the epoch, and the state of each node."""

    def __init__(self) -> None:
        self.seed = config.fresh_seed()
        self.epoch = 0
        self.is_closing = False
        self._states: dict[tuple[int, str], Any] = {}
        self._requests: dict[int, list[int]] = {}
        self._without_draws: set[int] = set()
        self._closers: list[Callable[[], None]] = []

    def keep(self, node: Any, make: Callable[[], Any], name: str = "") -> Any:
        """Return the state of `node` in this run, created at the first call; a node with several states names them."""
        key = (id(node), name)
        if key not in self._states:
            self._states[key] = make()
        return self._states[key]

    def states_of(self, node: Any) -> list[Any]:
        """Return all states of `node` in this run."""
        return [value for (owner, _), value in list(self._states.items()) if owner == id(node)]

    def turn(self, node: Any) -> int:
        """Return the number of earlier passes of `node` in this run: more than epochs below a `repeat`."""
        turns: list[int] = self.keep(node, lambda: [-1], "turn")
        turns[0] += 1
        return turns[0]

    def request_rows(self, source: Any, indices: list[int]) -> None:
        """Make the next epoch of a source read these rows instead of those of its sampler."""
        self._requests[id(source)] = indices

    def take_request(self, source: Any) -> list[int] | None:
        """Return the requested rows of a source's next epoch, and forget the request; None if there is none."""
        return self._requests.pop(id(source), None)

    def forbid_draws(self, node: Any) -> None:
        """Forbid random transforms in a `map`, because its rows are cached."""
        self._without_draws.add(id(node))

    def may_draw(self, node: Any) -> bool:
        """Return whether the transforms of a `map` may be random."""
        return id(node) not in self._without_draws

    def on_close(self, closer: Callable[[], None]) -> None:
        """Register `closer`, which is called when the run ends for any reason."""
        self._closers.append(closer)

    def closing(self, opened: Opened) -> Opened:
        """Return `opened`, and close it when the run ends for any reason."""
        self._closers.append(opened.close)
        return opened

    def close(self) -> None:
        """End the run: its threads stop."""
        while self._closers:
            self._closers.pop()()


def writable_copy(value: Any) -> Any:
    """Return a copy that a user's function may modify, because a source's array is read in every epoch."""
    kind = type(value)
    if kind is np.ndarray:
        return value.copy()
    if kind is dict:
        return {key: writable_copy(item) for key, item in value.items()}
    return kind(map(writable_copy, value)) if kind in (list, tuple) else value


def to_array(value: Any, where: str) -> Any:
    """Convert a function's result to a column's value: an array, a Tensor, a PIL image, a number, a str, bytes, or a list of these.

    A dict stays unchanged for the functions of later steps; `iterators` converts its numbers to arrays.
    """
    if type(value) is np.ndarray:
        if value.dtype.kind == "O":
            raise PipelineError(f"{where}: expected an array of numbers or of text, got one of Python objects.")
        return value
    if isinstance(value, dict):
        return value
    if hasattr(value, "asnumpy"):
        return value.asnumpy()
    if value is None:
        raise PipelineError(f"{where}: expected a value for each column, got None.\n\nhint: return the value at the end of the function.")
    try:
        array = np.asarray(value)
    except Exception as error:  # a list of unequal lengths
        raise PipelineError(f"{where}: expected an array, got {type(value).__name__} that cannot be converted ({error}).") from None
    if array.dtype.kind == "O":
        raise PipelineError(f"{where}: expected an array, a number or text, got {type(value).__name__}.")
    return array
