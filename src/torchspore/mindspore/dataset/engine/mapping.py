"""`map`: functions and transforms on some columns of each row, in threads."""
from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Iterator
from typing import Any

from torchspore.base.text import message, short
from torchspore.engine import tree
from torchspore.mindspore.dataset.core import config, randomness
from torchspore.mindspore.dataset.core.validator_helpers import check_columns, check_offload, check_processes
from torchspore.mindspore.dataset.debug.debug_hook import hooked
from torchspore.mindspore.dataset.engine import blocks
from torchspore.mindspore.dataset.engine.batching import place_outputs
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.failures import PipelineError, guarded, name_of
from torchspore.mindspore.dataset.engine.operations import column_positions
from torchspore.mindspore.dataset.engine.rows import Row, Run, own, to_array
from torchspore.mindspore.dataset.engine.workers import Workers, ordered_map

_TRIED_ROWS = 8
_WORTH_A_THREAD = 300e-6  # seconds a row; handing a row to a thread and back costs about 50 us
_CHUNK_SECONDS = 2e-3


class MapDataset(Dataset):
    """Rows after functions were applied to some of their columns.

    Without `num_parallel_workers`, transforms of `dataset.vision` and `dataset.transforms` share the configured number of threads when a
    row takes long enough to be worth it, and Python functions run in one thread, so that what they count or draw stays in order.
    `python_multiprocessing`, `max_rowsize`, `offload` change nothing, and `explain` says so: workers are threads, on the host.
    """

    def __init__(
        self, input_dataset: Dataset, operations: Any = None, input_columns: Any = None, output_columns: Any = None,
        num_parallel_workers: int | None = None, python_multiprocessing: bool = False, cache: Any = None, callbacks: Any = None,
        max_rowsize: Any = None, offload: bool | None = None, column_order: Any = None,
    ) -> None:
        self.operations: list[Any] = tree.listed(operations)
        for operation in self.operations:
            if not callable(operation):
                hint = "write the function without parentheses"
                raise ValueError(
                    message(f"map(operations={short(operation)})", f"a function or transform, got {type(operation).__name__}", hint=hint)
                )
        check_processes("map", python_multiprocessing, max_rowsize, num_parallel_workers)
        check_offload(offload)
        if callbacks is not None:
            raise ValueError(message("map(callbacks=...)", "callbacks=None: data callbacks are not in torchspore yet"))
        super().__init__(input_dataset, num_parallel_workers, cache)
        self.input_columns = check_columns("map", "input_columns", input_columns) if input_columns else []
        self.output_columns = check_columns("map", "output_columns", output_columns) if output_columns else []
        # 1.x named the order of the result's columns here; 2.x has `project` for it.
        self._order = check_columns("map", "column_order", column_order) if column_order else []

    def _rows_are_fresh(self) -> bool:
        return False

    def _names(self) -> tuple[list[str], list[str], list[str]]:
        columns = self.children[0]._columns()
        taken = self.input_columns or columns[:1]
        column_positions("map", taken, columns)
        return columns, taken, self.output_columns or taken

    def _columns(self) -> list[str]:
        placed = place_outputs(*self._names())
        column_positions("map(column_order)", self._order, placed)
        return self._order or placed

    def _epoch(self, run: Run) -> Iterator[Row]:
        rows = builtins.enumerate(self.children[0]._epoch(run))
        plan = _Plan(self, run)
        workers = run.keep(self, lambda: self._start_workers(run))
        builtin = _are_builtin(self.operations)
        if workers is None or (not builtin and self.num_parallel_workers is None):
            yield from self._in_this_thread(rows, plan, builtin)
            return
        spent = 0.0
        for number, item in builtins.zip(range(_TRIED_ROWS), rows):
            start = time.perf_counter()
            row = plan.apply(item)
            spent += time.perf_counter() - start if number else 0.0
            yield row
        each = spent / (_TRIED_ROWS - 1)
        if builtin and self.num_parallel_workers is None and each < _WORTH_A_THREAD:
            yield from self._in_this_thread(rows, plan, builtin)
            return
        size = max(1, min(16, int(_CHUNK_SECONDS / max(each, 1e-6))))
        chunks = _chunks(rows, size)
        for chunk in ordered_map(lambda items: _apply_all(plan.apply, items), chunks, workers, 2 * workers.count + 2):
            for row in chunk:
                if isinstance(row, Exception):
                    raise row
                yield row

    def _in_this_thread(self, rows: Iterator[tuple[int, Row]], plan: _Plan, builtin: bool) -> Iterator[Row]:
        one_column = builtin and len(plan.positions) == len(plan.outputs) == 1
        if config.get_debug_mode() or not (one_column and blocks.can_stack(self.operations) and _reads_by_index(self)):
            for item in rows:
                yield plan.apply(item)
            return
        for block, error in blocks.collect(rows):
            yield from plan.apply_block(block)
            if error is not None:
                raise error

    def _start_workers(self, run: Run) -> Workers | None:
        count = self.num_parallel_workers or config.get_num_parallel_workers()
        if count < 2 or config.get_debug_mode():
            return None
        workers = Workers(count, "torchspore-map")
        run.on_close(workers.close)
        return workers


class _Plan:
    """How one epoch's rows are mapped: where the inputs stand, and from where each result column comes."""

    def __init__(self, node: MapDataset, run: Run) -> None:
        columns, taken, self.outputs = node._names()
        self.positions = [columns.index(name) for name in taken]
        left = {name: position for position, name in enumerate(columns) if name not in taken}
        # For each result column: (True, number of the output) or (False, position in the input row).
        self._sources = [(True, self.outputs.index(name)) if name in self.outputs else (False, left[name]) for name in node._columns()]
        self._operations = node.operations
        operations = hooked(node.operations, hooks) if (hooks := config.debug_hooks()) else node.operations
        self._steps = [(operation, f"map(operations={name_of(operation)}, input_columns={taken})") for operation in operations]
        self._writes = not _are_builtin(node.operations)
        self._where = self._steps[-1][1] if self._steps else "map"
        self._key = (run.seed, run.epoch, _place(node))
        if config.get_error_samples_mode() is not config.ErrorSamplesMode.RETURN:
            mode = config.get_error_samples_mode()
            raise ValueError(
                message(f"config.set_error_samples_mode({mode!s})", "ErrorSamplesMode.RETURN: the others are not in torchspore yet")
            )

    def apply(self, item: tuple[int, Row]) -> Row:
        """One row after all operations."""
        number, row = item
        randomness.enter_row((*self._key, number))
        try:
            values: tuple[Any, ...] = tuple([row[position] for position in self.positions])
            if self._writes:
                values = tuple([own(value) for value in values])
            for operation, name in self._steps:
                found = guarded(name, operation, *values)
                values = found if type(found) is tuple else (found,)
        finally:
            randomness.leave_row()
        return self._row(row, values)

    def apply_block(self, block: list[tuple[int, Row]]) -> Iterator[Row]:
        """Several rows after all operations, together; one by one where that raises, so that the error is the right row's."""
        position = self.positions[0]
        try:
            values = blocks.run(self._operations, [row[position] for _, row in block], [(*self._key, number) for number, _ in block])
        except Exception:
            randomness.leave_row()
            for item in block:
                yield self.apply(item)
            return
        for (_, row), value in builtins.zip(block, values):
            yield self._row(row, value if type(value) is tuple else (value,))

    def _row(self, row: Row, values: tuple[Any, ...]) -> Row:
        if len(values) != len(self.outputs):
            expected = f"{len(self.outputs)} results, one for each of {self.outputs}, got {len(values)}"
            raise PipelineError(message(self._where, expected, hint="name the results in output_columns"))
        made = [to_array(value, self._where) for value in values]
        return tuple([made[index] if new else row[index] for new, index in self._sources])


def _are_builtin(operations: list[Any]) -> bool:
    """Whether all are transforms of the front end, which write into nothing that they are given."""
    return all(getattr(operation, "runs_in_any_order", False) for operation in operations)


def _reads_by_index(node: Dataset) -> bool:
    """Whether every source below is read by index."""
    return all(_reads_by_index(child) for child in node.children) if node.children else getattr(node, "_indexable", False)


def _place(node: Dataset) -> int:
    """How deep the pipeline below a node is: tells the random streams of two maps apart."""
    return 1 + max((_place(child) for child in node.children), default=0)


def _chunks(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    from itertools import islice

    while chunk := list(islice(items, size)):
        yield chunk


def _apply_all(apply: Callable[[Any], Row], items: list[Any]) -> list[Any]:
    rows: list[Any] = []
    for item in items:
        try:
            rows.append(apply(item))
        except Exception as error:  # the rows before it are given first
            rows.append(error)
            break
    return rows
