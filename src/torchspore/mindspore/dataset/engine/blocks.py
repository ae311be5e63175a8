"""Several rows of a `map` at once.

A transform of a small image costs more in Python calls than in arithmetic. Where a transform says how it works on a stack of rows
(`_apply_stack`) and the rows have one shape and dtype, they go through it together; text goes through `_apply_rows`, which takes a list of
values, and a step that knows how to do the one before it in the same go (`_after`) does. Any other step takes rows one by one. The results
are the same. Only rows of sources of our own are collected: a generator may wait for what the program does with the last row.

From a source of light rows (`Dataset._blocks`) to a batch they need never be apart: one gather makes a block, steps for stacks work on it
whole, a Python function gets its rows, and what comes out is the batch.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from torchspore.mindspore.dataset.core import randomness

ROWS = 32
_SECONDS = 5e-3
_LARGE = 16_384
"""Bytes of a row from which arithmetic counts, not calls: several such rows are more than a processor's cache holds."""


def rows(columns: list[Any]) -> Iterator[tuple[Any, ...]]:
    """The single rows of a block."""
    return zip(*[values(column) for column in columns])


def values(column: Any) -> list[Any]:
    """A block's values of one column."""
    if type(column) is list:
        return column
    return list(column) if column.ndim > 1 else [column[at, ...] for at in range(len(column))]


def can_stack(operations: list[Any]) -> bool:
    """Whether it is worth collecting rows for these steps."""
    return any(hasattr(operation, "_apply_stack") or hasattr(operation, "_apply_rows") for operation in operations)


def take_lists(operations: list[Any]) -> bool:
    """Whether one of the steps takes a list of values, as those of text do."""
    return any(hasattr(operation, "_apply_rows") for operation in operations)


def is_large(value: Any) -> bool:
    """Whether a row is worked on by itself."""
    return type(value) is np.ndarray and value.nbytes > _LARGE


def joined(operations: list[Any]) -> list[Any]:
    """The steps, those that can do the one before them in the same go in its place."""
    found: list[Any] = []
    for operation in operations:
        after = getattr(operation, "_after", None)
        both = after(found[-1]) if after is not None and found else None
        if both is not None:
            found[-1] = both
        else:
            found.append(operation)
    return found


def collect(rows: Iterator[Any], most: int = ROWS) -> Iterator[tuple[list[Any], BaseException | None]]:
    """Blocks of rows, smaller where reading takes long; with the last one, what the source raised."""
    while True:
        block: list[Any] = []
        start = time.perf_counter()
        error = None
        ended = False
        while len(block) < most and not ended:
            try:
                block.append(next(rows))
            except StopIteration:
                ended = True
            except Exception as raised:
                error, ended = raised, True
            if time.perf_counter() - start > _SECONDS:
                break
        if block or error is not None:
            yield block, error
        if ended:
            return


def run(operations: list[Any], column: Any, key_of: Callable[[int], tuple[int, ...]]) -> Any:
    """A block's column after all operations, a stack or a list of values; `key_of(place)` tells the random stream of a row."""
    streams: list[Any] = [None] * len(column)
    for operation in operations:
        apply: Callable[[np.ndarray], np.ndarray] | None = getattr(operation, "_apply_stack", None)
        if apply is not None:
            column = _stacked(column)
            is_of_truths = type(column) is np.ndarray and column.dtype.kind == "b" and getattr(operation, "_of_truths", None)
            if type(column) is np.ndarray and not is_of_truths:
                column = apply(column)
                continue
        many: Callable[[list[Any]], Any] | None = getattr(operation, "_apply_rows", None)
        if many is not None:
            column = many(list(column))
            continue
        found = []
        for place, value in enumerate(values(column)):
            outer = randomness.enter_row(key_of(place), streams[place])
            try:
                found.append(operation(value))
            finally:
                streams[place] = randomness.leave_row(outer)
        column = found
    return column


def are_for_many(operations: list[Any]) -> bool:
    """Whether each step takes stacks or lists of rows."""
    return all(hasattr(one, "_apply_stack") or hasattr(one, "_apply_rows") for one in joined(operations))


def _stacked(values: Any) -> Any:
    if type(values) is np.ndarray:
        return values
    first = values[0]
    if is_large(first):
        return values
    if all(type(value) is np.ndarray and value.shape == first.shape and value.dtype == first.dtype for value in values):
        return np.stack(values)
    return values
