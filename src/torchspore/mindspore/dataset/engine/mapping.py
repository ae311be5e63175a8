"""`map`: functions and transforms on some columns of each row, in threads."""
from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchspore.base import beside, cores
from torchspore.base.text import message, short
from torchspore.engine.core import tree
from torchspore.mindspore.dataset.callback.ds_callback import Caller, DSCallback
from torchspore.mindspore.dataset.core import config, destination, randomness
from torchspore.mindspore.dataset.core.validator_helpers import check_offload, check_processes, check_type, checked_columns
from torchspore.mindspore.dataset.debug.debug_hook import hooked
from torchspore.mindspore.dataset.engine import blocks
from torchspore.mindspore.dataset.engine.batching import place_outputs
from torchspore.mindspore.dataset.engine.broken_rows import Kept, marking, mended
from torchspore.mindspore.dataset.engine.dataset import Dataset, UnionBaseDataset
from torchspore.mindspore.dataset.engine.failures import PipelineError, failed, guarded, name_of
from torchspore.mindspore.dataset.engine.landing import Landing
from torchspore.mindspore.dataset.engine.operations import column_positions
from torchspore.mindspore.dataset.engine.pace import Pace, apply_all, paced_map, tried
from torchspore.mindspore.dataset.engine.processes import Processes, shared_megabytes
from torchspore.mindspore.dataset.engine.rows import Row, Run, own, to_array
from torchspore.mindspore.dataset.engine.workers import Workers


class MapDataset(UnionBaseDataset):
    """Rows after functions were applied to some of their columns.

    Without `num_parallel_workers`, transforms of `dataset.vision` and `dataset.transforms` share the configured number of threads when a
    row takes long enough to be worth it, and Python functions run in one thread, so that what they count or draw stays in order.
    With `python_multiprocessing` and more than one worker, Python functions run in processes, which get the rows through shared memory of
    `max_rowsize` MB (32 and more where it says less); what they change of the program's stays there. `offload` changes nothing, and
    `explain` says so.
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
        self._python_multiprocessing, self._max_rowsize = python_multiprocessing, max_rowsize
        check_offload(offload)
        self.callbacks: list[DSCallback] = [] if callbacks is None else tree.listed(callbacks)
        for callback in self.callbacks:
            check_type("map", "callbacks", callback, DSCallback, "a DSCallback or a list of them")
        super().__init__(input_dataset, num_parallel_workers, cache)
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
        placed = place_outputs(*self._names())
        column_positions("map(column_order)", self._order, placed)
        return self._order or placed

    def _epoch(self, run: Run) -> Iterator[Row]:
        return self._planned(self.children[0]._epoch(run), _Plan(self, run), run)

    def _epoch_onto(self, run: Run, _landing: Landing, _names: set[str]) -> Iterator[Row]:
        if config.get_error_samples_mode() is not config.ErrorSamplesMode.RETURN:      # rows that are left out would leave holes
            return self._epoch(run)
        plan = _Plan(self, run)
        plan.lands(_landing, _names)
        _, taken, outputs = self._names()
        return self._planned(self.children[0]._epoch_onto(run, _landing, _names.difference(taken, outputs)), plan, run)

    def _planned(self, given: Iterator[Row], plan: _Plan, run: Run) -> Iterator[Row]:
        rows = builtins.enumerate(given)
        mapped = self._mapped_and_told(rows, plan, run) if self.callbacks else self._mapped(rows, plan, run)
        if plan.mode is config.ErrorSamplesMode.RETURN:
            return mapped
        return mended(mapped, plan.mode, plan.where, run.keep(self, Kept, "good rows"))

    def _mapped_and_told(self, rows: Iterator[tuple[int, Row]], plan: _Plan, run: Run) -> Iterator[Row]:
        """One row after the other, here, so that the callbacks are called in order."""
        caller = run.keep(self, lambda: Caller(self.callbacks), "callbacks")
        caller.epoch_begin()
        for item in rows:
            caller.step_begin()
            row = plan.apply(item)
            caller.step_end()
            yield row
        caller.epoch_end()

    def _blocks(self, run: Run, size: int) -> Iterator[list[Any]] | None:
        if self.callbacks or self._in_processes or config.get_debug_mode():
            return None
        if config.get_error_samples_mode() is not config.ErrorSamplesMode.RETURN:
            return None
        builtin = _are_builtin(self.operations)
        whole = builtin and self._is_of_one_column()
        stacks = whole and all(hasattr(one, "_apply_stack") for one in self.operations)
        if not stacks and not (self._works_alone(run) and ((whole and blocks.are_for_many(self.operations)) or not builtin)):
            return None
        below = self.children[0]._blocks(run, size)
        return None if below is None else self._mapped_blocks(below, run, builtin)

    def _works_alone(self, run: Run) -> bool:
        """Whether its functions are known to run in this thread: nobody asked for more, or an epoch showed that they are too light."""
        seen = next((one for one in run.kept(self) if isinstance(one, Pace)), None)
        return (self.num_parallel_workers or 1) < 2 or (seen is not None and seen.is_light)

    def _is_of_one_column(self) -> bool:
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
        if self.children[0]._waits():            # for the program, which waits for the row: none is taken before it is asked for
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
        yield from paced_map(plan.apply, rows, workers, pace, lambda rest: self._in_this_thread(rest, plan, builtin, pace))

    def _in_this_thread(self, rows: Iterator[tuple[int, Row]], plan: _Plan, builtin: bool, pace: Pace) -> Iterator[Row]:
        one_column = builtin and len(plan.positions) == len(plan.outputs) == 1
        if config.get_debug_mode() or not (one_column and blocks.can_stack(self.operations) and _reads_by_index(self)):
            yield from builtins.map(plan.apply, rows)
            return
        yield from tried(plan.apply, rows, pace)
        if pace.is_heavy and not blocks.take_lists(self.operations):  # large rows stay in cache from step to step
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
        """Whether the functions run in processes of their own, as `python_multiprocessing` asks; transforms release Python's lock."""
        wanted = self._python_multiprocessing and (self.num_parallel_workers or 1) > 1
        return wanted and not _are_builtin(self.operations) and not config.get_debug_mode()

    def _start_processes(self, run: Run, plan: _Plan) -> Processes:
        def rows_of(task: tuple[int, list[Any]]) -> str:
            first, last = task[1][0][0], task[1][-1][0]
            return f"row {first}" if first == last else f"rows {first} to {last}"

        count, megabytes = self.num_parallel_workers or 1, shared_megabytes(self._max_rowsize)
        return run.closing(Processes(count, plan.work, plan.where, rows_of, megabytes))

    def _start_workers(self, run: Run) -> Workers | None:
        count = self.num_parallel_workers or config.get_num_parallel_workers()
        if _are_builtin(self.operations):        # they compute, and wait for nothing: more threads than cores only get in each other's way
            count = min(count, max(2, cores.usable()))
        if count < 2 or config.get_debug_mode():
            return None
        return run.closing(Workers(count, "torchspore-map", is_helped=True))


class _Plan:
    """How one epoch's rows are mapped: where the inputs stand, and from where each result column comes."""

    def __init__(self, node: MapDataset, run: Run) -> None:
        columns, taken, self.outputs = node._names()
        self.positions = [columns.index(name) for name in taken]
        left = {name: position for position, name in enumerate(columns) if name not in taken}
        # For each result column: (True, number of the output) or (False, position in the input row).
        self._sources = [(True, self.outputs.index(name)) if name in self.outputs else (False, left[name]) for name in node._columns()]
        self._joined = blocks.joined(node.operations)
        operations = hooked(node.operations, hooks) if (hooks := config.debug_hooks()) else node.operations
        self._steps = [(operation, f"map(operations={name_of(operation)}, input_columns={taken})") for operation in operations]
        self._is_builtin = _are_builtin(node.operations)
        self._owns = not self._is_builtin and (node._in_processes or not node.children[0]._rows_are_fresh())
        """Whether functions, which may write into what they are given, need arrays of their own."""
        self.where = self._steps[-1][1] if self._steps else "map"
        self._key = (run.seed, run.turn(node), _place(node))
        self.mode = config.get_error_samples_mode()
        if self.mode is not config.ErrorSamplesMode.RETURN:
            self.apply = marking(self.apply)     # type: ignore[method-assign]
        self._landing: Landing | None = None
        self._landed: list[int] = []
        self._offers = False
        """Whether its transforms may make their result where it lands: users' functions may keep what they were given."""

    def lands(self, landing: Landing, names: set[str]) -> None:
        """Has the results that have one of these names put where their batch is made."""
        self._landing = landing
        self._landed = [place for place, name in builtins.enumerate(self.outputs) if name in names]
        self._offers = len(self._landed) == len(self.outputs) == len(self.positions) == 1 and self._is_builtin

    def apply(self, item: tuple[int, Row]) -> Row:
        """One row after all operations."""
        number, row = item
        outer = randomness.enter_row((*self._key, number))
        try:
            values: tuple[Any, ...] = tuple([row[position] for position in self.positions])
            if self._owns:
                values = tuple([own(value) for value in values])
            if self._offers:
                destination.offer(self._landing.slot((self._key[2], self._landed[0]), number))
            for operation, name in self._steps:
                found = guarded(name, operation, *values)
                values = found if type(found) is tuple else (found,)
        finally:
            randomness.leave_row(outer)
            if self._offers:
                destination.offer(None)
        return self._row(row, values, number)

    def apply_columns(self, columns: list[Any], first: int, builtin: bool) -> list[Any]:
        """A block of rows, the first of which has the number `first`, after all operations."""
        if builtin:
            try:
                found = blocks.run(self._joined, columns[self.positions[0]], lambda place: (*self._key, first + place))
                return [found if new else columns[index] for new, index in self._sources]
            except Exception:              # row by row, so that the error is the right row's
                pass
        if len(self._steps) == 1 and len(columns) == 1 and self._sources == [(True, 0)]:
            return [self._apply_one(blocks.values(columns[0]), first)]
        mapped = builtins.map(self.apply, builtins.enumerate(blocks.rows(columns), first))
        return [list(column) for column in builtins.zip(*mapped)]

    def _apply_one(self, values: list[Any], first: int) -> list[Any]:
        """What `apply` comes to where there is one function and one column, with all of it written out: such functions are often light."""
        (function, name), = self._steps
        found: list[Any] = []
        outer, entered = randomness.enter_row(()), beside.enter()
        try:
            for number, value in builtins.enumerate(values, first):
                randomness.next_row((*self._key, number))
                one = function(own(value) if self._owns else value)
                found.append(one if type(one) is np.ndarray and one.dtype.char != "O" else self._only(one))
        except Exception as error:
            raise failed(name, error) from error
        finally:
            beside.leave(entered)
            randomness.leave_row(outer)
        return found

    def _only(self, value: Any) -> Any:
        return self._row((None,), value if type(value) is tuple else (value,))[0]

    @property
    def turn(self) -> int:
        """Which pass through the rows this plan is for; each draws other random numbers."""
        return self._key[1]

    def work(self, task: tuple[int, list[tuple[int, Row]]]) -> list[Any]:
        """In a worker process: the rows of a task, (turn, numbered rows), after all operations."""
        self._key = (self._key[0], task[0], self._key[2])
        return apply_all(self._apply_seeded, task[1])

    def _apply_seeded(self, item: tuple[int, Row]) -> Row:
        randomness.seed_python((*self._key, item[0]))
        return self.apply(item)

    def apply_block(self, block: list[tuple[int, Row]]) -> Iterator[Row]:
        """Several rows after all operations, together; one by one where that raises, so that the error is the right row's."""
        position = self.positions[0]
        try:
            column = [row[position] for _, row in block]
            values = blocks.values(blocks.run(self._joined, column, lambda place: (*self._key, block[place][0])))
        except Exception:
            for item in block:
                yield self.apply(item)
            return
        for (_, row), value in builtins.zip(block, values):
            yield self._row(row, value if type(value) is tuple else (value,))

    def is_large(self, row: Row) -> bool:
        """Whether the one column that is made of a row is too large for several to be worked on at once."""
        return blocks.is_large(row[self._sources.index((True, 0))])

    def _row(self, row: Row, values: tuple[Any, ...], number: int | None = None) -> Row:
        if len(values) != len(self.outputs):
            expected = f"{len(self.outputs)} results, one for each of {self.outputs}, got {len(values)}"
            raise PipelineError(message(self.where, expected, hint="name the results in output_columns"))
        made = [to_array(value, self.where) for value in values]
        if number is not None:
            for place in self._landed:
                made[place] = self._landing.place((self._key[2], place), number, made[place])
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
