"""`map`: functions and transforms on some columns of each row, in threads."""
from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchspore.base import cores, user_threads
from torchspore.base.text import message, short
from torchspore.engine.tensors import tree
from torchspore.mindspore.dataset.callback.ds_callback import Caller, DSCallback
from torchspore.mindspore.dataset.core import config, destination, randomness
from torchspore.mindspore.dataset.core.validator_helpers import check_offload, check_processes, check_type, checked_columns
from torchspore.mindspore.dataset.debug.debug_hook import hooked
from torchspore.mindspore.dataset.engine import blocks, cached_map
from torchspore.mindspore.dataset.engine.batch_arrays import BatchArrays
from torchspore.mindspore.dataset.engine.batches import arrange_columns
from torchspore.mindspore.dataset.engine.broken_rows import ReplacementRows, marking, skip_or_replace
from torchspore.mindspore.dataset.engine.cache_client import DatasetCache
from torchspore.mindspore.dataset.engine.dataset import Dataset, UnionBaseDataset
from torchspore.mindspore.dataset.engine.failures import PipelineError, failed, guarded, name_of
from torchspore.mindspore.dataset.engine.operations import column_positions
from torchspore.mindspore.dataset.engine.pace import Pace, apply_all, paced_map, tried
from torchspore.mindspore.dataset.engine.processes import Processes, shared_megabytes
from torchspore.mindspore.dataset.engine.rows import Row, Run, to_array, writable_copy
from torchspore.mindspore.dataset.engine.workers import Workers


class MapDataset(UnionBaseDataset):
    """Rows after functions were applied to some of their columns.

    Without `num_parallel_workers`, transforms of `dataset.vision` and `dataset.transforms` share the configured number of threads when a
    row takes long enough, and Python functions run in one thread, so that their counters and random draws stay in order. With
    `python_multiprocessing` and more than one worker, Python functions run in processes, which get the rows through shared memory of
    `max_rowsize` MB (at least 32); their changes to the program's objects stay there. `offload` changes nothing, and `explain` reports it.
    With a DatasetCache as `cache` each row is computed once: later epochs take it from the cache (`cached_map`).
    """

    _has_row_for_row = True

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
        self._python_multiprocessing, self._max_rowsize = python_multiprocessing, max_rowsize
        check_offload(offload)
        self.callbacks: list[DSCallback] = [] if callbacks is None else tree.listed(callbacks)
        for callback in self.callbacks:
            check_type("map", "callbacks", callback, DSCallback, "a DSCallback or a list of them")
        super().__init__(input_dataset, num_parallel_workers)
        if cache is not None:
            check_type("map", "cache", cache, DatasetCache, "a DatasetCache")
        self.cache = cache
        self._cache_key = object()
        self.input_columns = checked_columns("map", "input_columns", input_columns) if input_columns else []
        self.output_columns = checked_columns("map", "output_columns", output_columns) if output_columns else []
        # 1.x named the order of the result's columns here; 2.x has `project` for it.
        self._order = checked_columns("map", "column_order", column_order) if column_order else []

    def _rows_are_fresh(self) -> bool:
        return False

    def _names(self) -> tuple[list[str], list[str], list[str]]:
        columns = self.children[0]._columns()
        taken = self.input_columns or columns[:1]
        column_positions("map", taken, columns)
        return columns, taken, self.output_columns or taken

    def _columns(self) -> list[str]:
        placed = arrange_columns(*self._names())
        column_positions("map(column_order)", self._order, placed)
        return self._order or placed

    def _epoch(self, run: Run) -> Iterator[Row]:
        if self.cache is not None:
            return cached_map.read_epoch(self, self.cache, self._cache_key, run, self._computed)
        return self._computed(run)

    def _computed(self, run: Run) -> Iterator[Row]:
        return self._planned(self.children[0]._epoch(run), _Plan(self, run), run)

    def _epoch_onto(self, run: Run, _batch_arrays: BatchArrays, _names: set[str]) -> Iterator[Row]:
        if self.cache is not None:
            return self._epoch(run)
        if config.get_error_samples_mode() is not config.ErrorSamplesMode.RETURN:      # skipped rows would leave holes
            return self._epoch(run)
        plan = _Plan(self, run)
        plan.use_batch_arrays(_batch_arrays, _names)
        _, taken, outputs = self._names()
        return self._planned(self.children[0]._epoch_onto(run, _batch_arrays, _names.difference(taken, outputs)), plan, run)

    def _planned(self, input_rows: Iterator[Row], plan: _Plan, run: Run) -> Iterator[Row]:
        rows = builtins.enumerate(input_rows)
        mapped = self._mapped_with_callbacks(rows, plan, run) if self.callbacks else self._mapped(rows, plan, run)
        if plan.mode is config.ErrorSamplesMode.RETURN:
            return mapped
        return skip_or_replace(mapped, plan.mode, plan.where, run.keep(self, ReplacementRows, "good rows"))

    def _mapped_with_callbacks(self, rows: Iterator[tuple[int, Row]], plan: _Plan, run: Run) -> Iterator[Row]:
        """Process the rows in this thread, so that the callbacks are called in order."""
        caller = run.keep(self, lambda: Caller(self.callbacks), "callbacks")
        caller.epoch_begin()
        for item in rows:
            caller.step_begin()
            row = plan.apply(item)
            caller.step_end()
            yield row
        caller.epoch_end()

    def _blocks(self, run: Run, size: int) -> Iterator[list[Any]] | None:
        if self.callbacks or self.cache is not None or self._in_processes or config.get_debug_mode():
            return None
        if config.get_error_samples_mode() is not config.ErrorSamplesMode.RETURN:
            return None
        builtin = _are_builtin(self.operations)
        can_stack = builtin and self._has_single_column()
        stacks = can_stack and all(hasattr(operation, "_apply_stack") for operation in self.operations)
        if not stacks and not (self._works_alone(run) and ((can_stack and blocks.can_process_blocks(self.operations)) or not builtin)):
            return None
        below = self.children[0]._blocks(run, size)
        return None if below is None else self._mapped_blocks(below, run, builtin)

    def _works_alone(self, run: Run) -> bool:
        """Return whether the functions run in this thread: no more were requested, or an epoch showed that they are too light."""
        seen = next((state for state in run.states_of(self) if isinstance(state, Pace)), None)
        return (self.num_parallel_workers or 1) < 2 or (seen is not None and seen.is_light)

    def _has_single_column(self) -> bool:
        _, taken, outputs = self._names()
        return len(taken) == len(outputs) == 1

    def _mapped_blocks(self, below: Iterator[list[Any]], run: Run, builtin: bool) -> Iterator[list[Any]]:
        plan, number = _Plan(self, run), 0
        for columns in below:
            count = len(columns[0])
            yield plan.apply_columns(columns, number, builtin)
            number += count

    def _waits(self) -> bool:
        return bool(self.callbacks) or super()._waits()

    def _mapped(self, rows: Iterator[tuple[int, Row]], plan: _Plan, run: Run) -> Iterator[Row]:
        if self.children[0]._waits():            # for the program, which waits for the row: no row is read before it is requested
            yield from builtins.map(plan.apply, rows)
            return
        if self._in_processes:
            processes = run.keep(self, lambda: self._start_processes(run, plan), "processes")
            yield from processes.map(rows, lambda chunk: (plan.turn, chunk))
            return
        workers = run.keep(self, lambda: self._start_workers(run))
        builtin = _are_builtin(self.operations)
        pace = run.keep(self, lambda: Pace(workers.count if workers is not None else 1), "pace")
        if workers is None or (not builtin and self.num_parallel_workers is None):
            yield from self._in_this_thread(rows, plan, builtin, pace)
            return
        yield from paced_map(plan.apply, rows, workers, pace, lambda remaining: self._in_this_thread(remaining, plan, builtin, pace))

    def _in_this_thread(self, rows: Iterator[tuple[int, Row]], plan: _Plan, builtin: bool, pace: Pace) -> Iterator[Row]:
        has_single_column = builtin and len(plan.positions) == len(plan.outputs) == 1
        if config.get_debug_mode() or not (has_single_column and blocks.can_stack(self.operations) and _reads_by_index(self)):
            yield from builtins.map(plan.apply, rows)
            return
        yield from tried(plan.apply, rows, pace)
        if pace.is_heavy and not blocks.take_lists(self.operations):  # large rows then stay in cache from step to step
            for item in rows:
                row = plan.apply(item)
                yield row
                if not plan.is_large(row):
                    break
        for block, error in blocks.collect(rows):
            yield from plan.apply_block(block)
            if error is not None:
                raise error

    @property
    def _in_processes(self) -> bool:
        """Return whether functions run in processes, as `python_multiprocessing` requests; transforms release Python's lock."""
        is_requested = self._python_multiprocessing and (self.num_parallel_workers or 1) > 1
        return is_requested and config.can_start_processes() and not _are_builtin(self.operations) and not config.get_debug_mode()

    def _start_processes(self, run: Run, plan: _Plan) -> Processes:
        def rows_of(task: tuple[int, list[Any]]) -> str:
            first, last = task[1][0][0], task[1][-1][0]
            return f"row {first}" if first == last else f"rows {first} to {last}"

        count, megabytes = self.num_parallel_workers or 1, shared_megabytes(self._max_rowsize)
        return run.closing(Processes(count, plan.work, plan.where, rows_of, megabytes))

    def _start_workers(self, run: Run) -> Workers | None:
        count = self.num_parallel_workers or config.get_num_parallel_workers()
        if _are_builtin(self.operations):        # they compute and never wait: more threads than cores only slow each other down
            count = min(count, max(2, cores.usable()))
        if count < 2 or config.get_debug_mode():
            return None
        return run.closing(Workers(count, "torchspore-map", is_helped=True))


class _Plan:
    """The mapping of one epoch's rows: the positions of the inputs, and the origin of each result column."""

    def __init__(self, node: MapDataset, run: Run) -> None:
        columns, taken, self.outputs = node._names()
        self.positions = [columns.index(name) for name in taken]
        unchanged = {name: position for position, name in enumerate(columns) if name not in taken}
        # For each result column: (True, number of the output) or (False, position in the input row).
        self._sources = [(True, self.outputs.index(name)) if name in self.outputs else (False, unchanged[name]) for name in node._columns()]
        self._joined = blocks.joined(node.operations)
        operations = hooked(node.operations, hooks) if (hooks := config.debug_hooks()) else node.operations
        self._steps = [(operation, f"map(operations={name_of(operation)}, input_columns={taken})") for operation in operations]
        self._is_builtin = _are_builtin(node.operations)
        self._owns = not self._is_builtin and (node._in_processes or not node.children[0]._rows_are_fresh())
        """Return whether functions, which may modify their arguments, need copied arrays."""
        self.where = self._steps[-1][1] if self._steps else "map"
        self._key = (run.seed if run.may_draw(node) else randomness.NO_DRAWS, run.turn(node), _depth(node))
        self.mode = config.get_error_samples_mode()
        if self.mode is not config.ErrorSamplesMode.RETURN:
            self.apply = marking(self.apply)     # type: ignore[method-assign]
        self._batch_arrays: BatchArrays | None = None
        self._direct_outputs: list[int] = []
        self._offers = False
        """Return whether transforms may write their results into the batch's arrays: users' functions may retain their arguments."""

    def use_batch_arrays(self, batch_arrays: BatchArrays, names: set[str]) -> None:
        """Write the results with one of these names into their batch's arrays."""
        self._batch_arrays = batch_arrays
        self._direct_outputs = [index for index, name in builtins.enumerate(self.outputs) if name in names]
        self._offers = len(self._direct_outputs) == len(self.outputs) == len(self.positions) == 1 and self._is_builtin

    def apply(self, item: tuple[int, Row]) -> Row:
        """Return one row after all operations."""
        number, row = item
        outer = randomness.enter_row((*self._key, number))
        try:
            values: tuple[Any, ...] = tuple([row[position] for position in self.positions])
            if self._owns:
                values = tuple([writable_copy(value) for value in values])
            if self._offers:
                destination.offer(self._batch_arrays.slot((self._key[2], self._direct_outputs[0]), number))
            for operation, name in self._steps:
                result = guarded(name, operation, *values)
                values = result if type(result) is tuple else (result,)
        finally:
            randomness.leave_row(outer)
            if self._offers:
                destination.offer(None)
        return self._row(row, values, number)

    def apply_columns(self, columns: list[Any], first: int, builtin: bool) -> list[Any]:
        """Return a block of rows after all operations; the first row has the number `first`."""
        if builtin:
            try:
                result = blocks.run(self._joined, columns[self.positions[0]], lambda index: (*self._key, first + index))
                return [result if new else columns[index] for new, index in self._sources]
            except Exception:              # row by row, so that the error names the right row
                pass
        if len(self._steps) == 1 and len(columns) == 1 and self._sources == [(True, 0)]:
            return [self._apply_single(blocks.values(columns[0]), first)]
        mapped = builtins.map(self.apply, builtins.enumerate(blocks.rows(columns), first))
        return [list(column) for column in builtins.zip(*mapped)]

    def _apply_single(self, values: list[Any], first: int) -> list[Any]:
        """The specialized `apply` for one function and one column, inlined because such functions are often light."""
        (function, name), = self._steps
        results: list[Any] = []
        outer, entered = randomness.enter_row(()), user_threads.enter()
        try:
            for number, value in builtins.enumerate(values, first):
                randomness.next_row((*self._key, number))
                result = function(writable_copy(value) if self._owns else value)
                results.append(result if type(result) is np.ndarray and result.dtype.char != "O" else self._only(result))
        except Exception as error:
            raise failed(name, error) from error
        finally:
            user_threads.leave(entered)
            randomness.leave_row(outer)
        return results

    def _only(self, value: Any) -> Any:
        return self._row((None,), value if type(value) is tuple else (value,))[0]

    @property
    def turn(self) -> int:
        """Set the number of the pass through the rows; each pass draws different random numbers."""
        return self._key[1]

    def work(self, task: tuple[int, list[tuple[int, Row]]]) -> list[Any]:
        """Return, in a worker process, the rows of a task, (turn, numbered rows), after all operations."""
        self._key = (self._key[0], task[0], self._key[2])
        return apply_all(self._apply_seeded, task[1])

    def _apply_seeded(self, item: tuple[int, Row]) -> Row:
        randomness.seed_python((*self._key, item[0]))
        return self.apply(item)

    def apply_block(self, block: list[tuple[int, Row]]) -> Iterator[Row]:
        """Process several rows together; if that raises, one by one, so that the error names the right row."""
        position = self.positions[0]
        try:
            column = [row[position] for _, row in block]
            values = blocks.values(blocks.run(self._joined, column, lambda index: (*self._key, block[index][0])))
        except Exception:
            for item in block:
                yield self.apply(item)
            return
        for (_, row), value in builtins.zip(block, values):
            yield self._row(row, value if type(value) is tuple else (value,))

    def is_large(self, row: Row) -> bool:
        """Return whether the single result column is too large for processing several rows at once."""
        return blocks.is_large(row[self._sources.index((True, 0))])

    def _row(self, row: Row, values: tuple[Any, ...], number: int | None = None) -> Row:
        if len(values) != len(self.outputs):
            expected = f"{len(self.outputs)} results, one for each of {self.outputs}, got {len(values)}"
            raise PipelineError(message(self.where, expected, hint="name the results in output_columns"))
        arrays = [to_array(value, self.where) for value in values]
        if number is not None:
            for index in self._direct_outputs:
                arrays[index] = self._batch_arrays.put((self._key[2], index), number, arrays[index])
        return tuple([arrays[index] if new else row[index] for new, index in self._sources])


def _are_builtin(operations: list[Any]) -> bool:
    """Return whether all are transforms of the front end, which do not modify their arguments."""
    return all(getattr(operation, "runs_in_any_order", False) for operation in operations)


def _reads_by_index(node: Dataset) -> bool:
    """Return whether every upstream source is read by index."""
    return all(_reads_by_index(child) for child in node.children) if node.children else getattr(node, "_indexable", False)


def _depth(node: Dataset) -> int:
    """Return the depth of the pipeline up to a node, which separates the random streams of two maps."""
    return 1 + max((_depth(child) for child in node.children), default=0)
