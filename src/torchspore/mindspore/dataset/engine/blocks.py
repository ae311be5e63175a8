"""Processing of several rows of a `map` at once.

A transform of a small image costs more in Python calls than in arithmetic. If a transform implements `_apply_stack` and the rows have one
shape and dtype, it processes a stack of rows. Text goes through `_apply_rows`, which takes a list of values. A step with `_after` includes
the work of the previous step. Any other step takes single rows. The results are the same. Only rows of built-in sources are collected: a
generator may wait for the program to process the last row.

Between a source of light rows (`Dataset._blocks`) and a batch, rows stay together: one gather makes a block, steps for stacks process it
at once, a Python function gets its rows, and the result is the batch.
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
"""Bytes of a row above which arithmetic costs more than calls: several such rows exceed a processor's cache."""


def rows(columns: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the single rows of a block."""
    return zip(*[values(column) for column in columns])


def values(column: Any) -> list[Any]:
    """Return a block's values of one column."""
    if type(column) is list:
        return column
    return list(column) if column.ndim > 1 else [column[at, ...] for at in range(len(column))]


def can_stack(operations: list[Any]) -> bool:
    """Return whether these steps gain from collecting rows."""
    return any(hasattr(operation, "_apply_stack") or hasattr(operation, "_apply_rows") for operation in operations)


def take_lists(operations: list[Any]) -> bool:
    """Return whether one of the steps takes a list of values, as text transforms do."""
    return any(hasattr(operation, "_apply_rows") for operation in operations)


def is_large(value: Any) -> bool:
    """Return whether a row has to be processed separately."""
    return type(value) is np.ndarray and value.nbytes > _LARGE


def joined(operations: list[Any]) -> list[Any]:
    """Return the steps, after merging each previous step into a step that can include it."""
    merged: list[Any] = []
    for operation in operations:
        after = getattr(operation, "_after", None)
        combined = after(merged[-1]) if after is not None and merged else None
        if combined is not None:
            merged[-1] = combined
        else:
            merged.append(operation)
    return merged


def collect(rows: Iterator[Any], max_rows: int = ROWS) -> Iterator[tuple[list[Any], BaseException | None]]:
    """Yield blocks of rows, smaller ones if reading takes long; the last one comes with the source's exception."""
    while True:
        block: list[Any] = []
        start = time.perf_counter()
        error = None
        ended = False
        while len(block) < max_rows and not ended:
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
    """Return a block's column after all operations, a stack or a list of values; `key_of(index)` returns the random stream of a row."""
    streams: list[Any] = [None] * len(column)
    for operation in operations:
        apply: Callable[[np.ndarray], np.ndarray] | None = getattr(operation, "_apply_stack", None)
        if apply is not None:
            column = _stacked(column)
            is_of_truths = type(column) is np.ndarray and column.dtype.kind == "b" and getattr(operation, "_of_truths", None)
            if type(column) is np.ndarray and not is_of_truths:
                column = apply(column)
                continue
        apply_rows: Callable[[list[Any]], Any] | None = getattr(operation, "_apply_rows", None)
        if apply_rows is not None:
            column = apply_rows(list(column))
            continue
        results = []
        for index, value in enumerate(values(column)):
            outer = randomness.enter_row(key_of(index), streams[index])
            try:
                results.append(operation(value))
            finally:
                streams[index] = randomness.leave_row(outer)
        column = results
    return column


def can_process_blocks(operations: list[Any]) -> bool:
    """Return whether each step takes stacks or lists of rows."""
    return all(hasattr(operation, "_apply_stack") or hasattr(operation, "_apply_rows") for operation in joined(operations))


def _stacked(values: Any) -> Any:
    if type(values) is np.ndarray:
        return values
    first = values[0]
    if is_large(first):
        return values
    if all(type(value) is np.ndarray and value.shape == first.shape and value.dtype == first.dtype for value in values):
        return np.stack(values)
    return values
