"""What a row is, and the state of one run through a pipeline.

A row is a tuple with one value for each column: a NumPy array, or a dict that a source gave.
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
    """One iterator's way through a pipeline: the seed, the epoch, and what each node keeps from epoch to epoch."""

    def __init__(self) -> None:
        self.seed = config.fresh_seed()
        self.epoch = 0
        self.is_closing = False
        self._kept: dict[tuple[int, str], Any] = {}
        self._closers: list[Callable[[], None]] = []

    def keep(self, node: Any, make: Callable[[], Any], what: str = "") -> Any:
        """The state of `node` in this run, made at the first call; a node that has several names them."""
        key = (id(node), what)
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def kept(self, node: Any) -> list[Any]:
        """All that `node` keeps in this run."""
        return [value for (owner, _), value in list(self._kept.items()) if owner == id(node)]

    def turn(self, node: Any) -> int:
        """How often `node` has begun to give its rows before, in this run: more often than there are epochs below a `repeat`."""
        turns: list[int] = self.keep(node, lambda: [-1], "turn")
        turns[0] += 1
        return turns[0]

    def on_close(self, closer: Callable[[], None]) -> None:
        """Has `closer` called when the run ends, however it ends."""
        self._closers.append(closer)

    def closing(self, opened: Opened) -> Opened:
        """`opened` itself, which is closed when the run ends, however it ends."""
        self._closers.append(opened.close)
        return opened

    def close(self) -> None:
        """Ends the run: its threads stop."""
        while self._closers:
            self._closers.pop()()


def own(value: Any) -> Any:
    """What a function of the user's is given: an array of its own, which it may write into. A source's array is read in every epoch."""
    kind = type(value)
    if kind is np.ndarray:
        return value.copy()
    if kind is dict:
        return {key: own(item) for key, item in value.items()}
    return kind(map(own, value)) if kind in (list, tuple) else value


def to_array(value: Any, where: str) -> Any:
    """A column's value from what a function gave: an array, a Tensor, a PIL image, a number, a str, bytes, or a list of these.

    A dict stays what it is, whatever it holds: the functions of later steps find it so, and `iterators` make arrays of its numbers.
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
        raise PipelineError(f"{where}: expected an array, got {type(value).__name__} that makes none ({error}).") from None
    if array.dtype.kind == "O":
        raise PipelineError(f"{where}: expected an array, a number or text, got {type(value).__name__}.")
    return array
