"""The steps that join rows: `batch` and `padded_batch`."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core import config, randomness
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_processes, check_type, checked_columns
from torchspore.mindspore.dataset.engine.batch_arrays import BatchArrays
from torchspore.mindspore.dataset.engine.dataset import Dataset, UnionBaseDataset
from torchspore.mindspore.dataset.engine.failures import PipelineError, guarded, name_of
from torchspore.mindspore.dataset.engine.operations import column_positions
from torchspore.mindspore.dataset.engine.pace import apply_all
from torchspore.mindspore.dataset.engine.processes import Processes, shared_megabytes
from torchspore.mindspore.dataset.engine.rows import Row, Run, to_array, writable_copy
from torchspore.translations import translate


class BatchInfo:
    """Identifies the batch that a `per_batch_map` or a batch-size function is called for; epochs and batches count from 0."""

    def __init__(self, epoch: int, batch: int) -> None:
        self._epoch, self._batch = epoch, batch

    def get_batch_num(self) -> int:
        """Returns the number of this batch within its epoch."""
        return self._batch

    def get_epoch_num(self) -> int:
        """Returns the number of this epoch."""
        return self._epoch


_Part = tuple[list[Any], BatchInfo, int]


class BatchDataset(UnionBaseDataset):
    """Rows joined along a new first axis."""

    def __init__(
        self, input_dataset: Dataset, batch_size: Any, drop_remainder: bool = False, num_parallel_workers: int | None = None,
        per_batch_map: Callable[..., Any] | None = None, input_columns: Any = None, output_columns: Any = None,
        python_multiprocessing: bool = False, max_rowsize: Any = None,
    ) -> None:
        if not callable(batch_size):
            if not isinstance(batch_size, int):
                raise TypeError(message(f"batch(batch_size={short(batch_size)})", "an int or a function of a BatchInfo"))
            check_int("batch", "batch_size", int(batch_size), 1)
        check_bool("batch", "drop_remainder", drop_remainder)
        check_processes("batch", python_multiprocessing, max_rowsize, num_parallel_workers)
        self._in_processes = python_multiprocessing and (num_parallel_workers or 1) > 1 and per_batch_map is not None
        self._max_rowsize = max_rowsize
        if per_batch_map is not None and not callable(per_batch_map):
            raise TypeError(message(f"batch(per_batch_map={short(per_batch_map)})", f"a function, got {type(per_batch_map).__name__}"))
        super().__init__(input_dataset, num_parallel_workers)
        if input_dataset.is_sync():
            report_batch_size(input_dataset, batch_size)
        self.batch_size, self.drop_remainder, self.per_batch_map = batch_size, drop_remainder, per_batch_map
        self.input_columns = checked_columns("batch", "input_columns", input_columns) if input_columns else []
        self.output_columns = checked_columns("batch", "output_columns", output_columns) if output_columns else []

    def _rows_are_fresh(self) -> bool:
        return self.per_batch_map is None

    def _columns(self) -> list[str]:
        columns = self.children[0]._columns()
        taken = self.input_columns or columns
        return columns if self.per_batch_map is None else arrange_columns(columns, taken, self.output_columns or taken)

    def _size(self) -> int | None:
        size = self.children[0]._size()
        if size is None or callable(self.batch_size):
            return None
        return size // self.batch_size if self.drop_remainder else -(-size // self.batch_size)

    def get_batch_size(self) -> int:
        return -1 if callable(self.batch_size) else int(self.batch_size)

    def _epoch(self, run: Run) -> Iterator[Row]:
        blocks = self._full_blocks(run)
        if blocks is not None:
            yield from blocks
            return
        batch_arrays = self._batch_arrays(run)
        parts = self._parts(run, batch_arrays)
        if self._in_processes and config.can_start_processes() and not config.get_debug_mode():
            yield from run.keep(self, lambda: self._start_processes(run)).map(parts)
            return
        for values, info, _ in parts:
            joined_columns = batch_arrays.taken(info.get_batch_num(), values) if batch_arrays is not None else ()
            yield self._join(values, self.children[0]._columns(), info, joined_columns)

    @property
    def _only_joins(self) -> bool:
        """Return whether all batches have the same size and nothing else happens to their rows."""
        return not callable(self.batch_size) and type(self) is BatchDataset and self.per_batch_map is None

    def _full_blocks(self, run: Run) -> Iterator[Row] | None:
        """Return the batches if rows come in blocks and only have to be joined; otherwise None."""
        if not self._only_joins:
            return None
        blocks = self.children[0]._blocks(run, self.batch_size)
        return None if blocks is None else self._joined(blocks)

    def _joined(self, blocks: Iterator[list[Any]]) -> Iterator[Row]:
        names = self.children[0]._columns()
        for columns in blocks:
            if not self.drop_remainder or len(columns[0]) == self.batch_size:
                yield tuple(column if type(column) is np.ndarray else stack(column, name) for column, name in zip(columns, names))

    def _start_processes(self, run: Run) -> Processes:
        columns = self.children[0]._columns()

        def rows_of(task: list[_Part]) -> str:
            return f"batch {task[0][1].get_batch_num()} of epoch {task[0][1].get_epoch_num()}"

        where = f"batch(per_batch_map={name_of(self.per_batch_map)})"
        work, megabytes = _Work(self._joining(columns), run.seed), shared_megabytes(self._max_rowsize)
        return run.closing(Processes(self.num_parallel_workers or 1, work, where, rows_of, megabytes))

    def _batch_arrays(self, run: Run) -> BatchArrays | None:
        """Return the arrays into which rows may be written directly; None if another operation processes the rows first."""
        if not self._only_joins:
            return None
        return BatchArrays(self.batch_size, run.keep(self, dict, "shapes of rows"))

    def _parts(self, run: Run, batch_arrays: BatchArrays | None) -> Iterator[_Part]:
        """Yield, for each batch, the rows' values by column and the number of the pass through the rows."""
        below = self.children[0]
        rows = below._epoch(run) if batch_arrays is None else below._epoch_onto(run, batch_arrays, set(below._columns()))
        number, turn = 0, run.turn(self)
        while True:
            info = BatchInfo(run.epoch, number)
            size = guarded("batch(batch_size)", self.batch_size, info) if callable(self.batch_size) else self.batch_size
            taken = list(islice(rows, int(size)))
            if not taken or (self.drop_remainder and len(taken) < size):
                return
            yield list(zip(*taken)), info, turn
            number += 1

    def _join(self, values: list[Any], columns: list[str], info: BatchInfo, joined_columns: Sequence[Any] = ()) -> Row:
        """Return one batch; `joined_columns` has the arrays of the columns whose rows have already been written into one."""
        if self.per_batch_map is None:
            return tuple(
                stack(column, name) if joined is None else joined
                for column, name, joined in zip_longest(values, columns, joined_columns)
            )
        return self._joining(columns)(values, info)

    def _joining(self, columns: list[str]) -> _Joining:
        return _Joining(self.per_batch_map, columns, self.input_columns or columns, self.output_columns or self.input_columns or columns)


class _Joining:
    """Joins the rows of a batch by a `per_batch_map`; it does not refer to the pipeline, so that a spawned process can receive it."""

    def __init__(self, function: Any, columns: list[str], taken: list[str], outputs: list[str]) -> None:
        self._function, self._columns, self._outputs = function, columns, outputs
        self._where = f"batch(per_batch_map={name_of(function)})"
        self._positions = column_positions("batch", taken, columns)
        self._placed = arrange_columns(columns, taken, outputs)

    def __call__(self, values: list[Any], info: BatchInfo) -> Row:
        arguments = [[writable_copy(value) for value in values[position]] for position in self._positions]
        result = guarded(self._where, self._function, *arguments, info)
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != len(self._outputs):
            expected = f"{len(self._outputs)} results, one for each of {self._outputs}, got {len(results)}"
            raise PipelineError(message(self._where, expected, hint="return a tuple of the columns"))
        outputs = {name: _as_batch(value, name, self._where) for name, value in zip(self._outputs, results)}
        inputs = dict(zip(self._columns, values))
        return tuple(outputs[name] if name in outputs else stack(inputs[name], name) for name in self._placed)


class _Work:
    """The function of a worker process for a task of batches."""

    def __init__(self, joining: _Joining, seed: int) -> None:
        self._joining, self._seed = joining, seed

    def __call__(self, task: list[_Part]) -> list[Any]:
        return apply_all(self._join_part, task)

    def _join_part(self, part: _Part) -> Row:
        values, info, turn = part
        randomness.seed_python((self._seed, turn, info.get_batch_num()))
        return self._joining(values, info)


def report_batch_size(dataset: Dataset, batch_size: Any) -> None:
    """Report the batch size to each `sync_wait` upstream. Raises RuntimeError if the size differs from batch to batch."""
    from torchspore.mindspore.dataset.engine.sync_wait import waiting_below

    if callable(batch_size):
        raise RuntimeError(message("sync_wait(...).batch(function)", "a batch size that is an int"))
    for node in waiting_below(dataset):
        node.joined(batch_size)


def arrange_columns(columns: list[str], taken: list[str], outputs: list[str]) -> list[str]:
    """Return the columns after `taken` became `outputs`: at the same positions if the numbers agree, otherwise before the others."""
    if len(taken) == len(outputs):
        renamed = dict(zip(taken, outputs))
        placed = [renamed.get(name, name) for name in columns]
        last = {name: position for position, name in enumerate(placed) if columns[position] in renamed}
        return [name for position, name in enumerate(placed) if last.get(name, position) == position]
    return outputs + [name for name in columns if name not in taken and name not in outputs]


def _as_batch(value: Any, name: str, where: str) -> Any:
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(item, dict) for item in value):
            return {key: [item[key] for item in value] for key in _keys(value, name)}
        return stack([to_array(item, where) for item in value], name)
    return to_array(value, where)


def stack(values: Any, name: str) -> Any:
    """Joins one column's values along a new first axis. Raises RuntimeError if shapes or dtypes differ."""
    first = values[0]
    if isinstance(first, dict):
        return {key: _joined([value[key] for value in values], f"{name}[{key!r}]") for key in _keys(values, name)}
    text = first.dtype.kind in "SU"
    for number, value in enumerate(values):
        if value.shape != first.shape:
            hint = translate("make them equal in a map, or write {call}").format(call=f"padded_batch(..., pad_info={{{name!r}: None}})")
            subject = translate("batch: column {name!r} has shape {first} in the batch's first row and {shape} in row {number}").format(
                name=name, first=list(first.shape), shape=list(value.shape), number=number)
            raise PipelineError(message(subject, translate("rows of one shape"), hint=hint))
        if value.dtype != first.dtype and not (text and value.dtype.kind == first.dtype.kind):
            subject = translate("batch: column {name!r} is {first} in the batch's first row and {dtype} in row {number}").format(
                name=name, first=first.dtype, dtype=value.dtype, number=number)
            hint = translate("convert them in a map: TypeCast(...) on {name!r}").format(name=name)
            raise PipelineError(message(subject, translate("rows of one dtype"), hint=hint))
    if first.ndim:                             # np.stack first creates a view of each row, which costs more than copying small rows
        return np.concatenate(values).reshape(len(values), *first.shape)
    return np.stack(values)


def _keys(values: Any, name: str) -> list[Any]:
    """Return the common keys of dicts that become one. Raises RuntimeError if the keys differ."""
    first = list(values[0])
    for number, value in enumerate(values):
        if not isinstance(value, dict) or value.keys() != values[0].keys():
            difference = f"{short(list(value))} in row {number}" if isinstance(value, dict) else f"row {number} has {short(value)}"
            subject = f"batch: column {name!r} has a dict of {short(first)} in the batch's first row and {difference}"
            raise PipelineError(message(subject, "dicts of one set of keys"))
    return first


def _joined(values: list[Any], name: str) -> Any:
    """Return the values of one key in all rows of a batch as one array. Raises RuntimeError if that is impossible."""
    if isinstance(values[0], dict):
        return stack(values, name)
    plain = [value.asnumpy() if hasattr(value, "asnumpy") else value for value in values]
    if all(isinstance(value, np.ndarray) for value in plain) and len({value.shape for value in plain}) > 1:
        return stack(plain, name)                         # the message names the rows whose shapes differ
    try:
        array = np.array(plain)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind == "O":
        hint = "take it out of the dict in a map, or batch(per_batch_map=...), which keeps lists"
        raise PipelineError(message(f"batch: column {name!r} with {short(values[0])}", "values that make one array", hint=hint))
    return array


class PaddedBatchDataset(BatchDataset):
    """Rows joined after padding columns to one shape."""

    def __init__(
        self, input_dataset: Dataset, batch_size: int, drop_remainder: bool = False, num_parallel_workers: int | None = None,
        pad_info: dict[str, Any] | None = None,
    ) -> None:
        if pad_info is not None:
            check_type("padded_batch", "pad_info", pad_info, dict, "a dict from column to (shape, value)")
            for name, pad in pad_info.items():
                check_type("padded_batch", "pad_info", name, str, "column names as keys")
                if pad is not None and not (isinstance(pad, tuple) and len(pad) == 2):
                    raise TypeError(message(f"padded_batch(pad_info={{{name!r}: {short(pad)}}})", "(shape, value) or None"))
        super().__init__(input_dataset, batch_size, drop_remainder, num_parallel_workers)
        self.pad_info = pad_info or {}
        self._fills_all = pad_info is not None and not pad_info

    def _join(self, values: list[Any], columns: list[str], info: BatchInfo, joined_columns: Sequence[Any] = ()) -> Row:
        column_positions("padded_batch", list(self.pad_info), columns)
        return tuple(
            stack(padded(column, name, self.pad_info.get(name)) if self._fills_all or name in self.pad_info else column, name)
            for column, name in zip(values, columns)
        )


def padded(values: Any, name: str, pad: tuple[Any, Any] | None) -> list[np.ndarray]:
    """Pad one column's values to one shape: the shape of `pad`, (shape, value), or the largest size in each axis."""
    shape, fill = pad or (None, None)
    rank, dtype = values[0].ndim, np.result_type(*values) if values[0].dtype.kind in "SU" else None
    for number, value in enumerate(values):
        if value.ndim != rank:
            subject = f"padded_batch: column {name!r} has shape {list(values[0].shape)} in the batch's first row and {list(value.shape)}"
            raise PipelineError(message(f"{subject} in row {number}", "rows with as many axes"))
    largest = [max(value.shape[axis] for value in values) for axis in range(rank)]
    if shape is not None and len(shape) != rank:
        raise PipelineError(message(f"padded_batch: shape {list(shape)} for column {name!r}", f"{rank} sizes, one for each axis"))
    target_shape = largest if shape is None else [size if requested is None else requested for requested, size in zip(shape, largest)]
    filled = []
    for value in values:
        filling = _filling(fill, value.dtype, name)
        result = np.full(target_shape, filling, filling.dtype if dtype is None else np.result_type(dtype, filling))
        part = tuple(slice(0, min(size, current_size)) for size, current_size in zip(target_shape, value.shape))
        result[part] = value[part]
        filled.append(result)
    return filled


def _filling(fill: Any, dtype: np.dtype, name: str) -> np.ndarray:
    """Return the fill value for a column of `dtype`: text is not cut, a number is cast as MindSpore casts it."""
    is_text = dtype.kind in "SU"
    if fill is None:
        return np.zeros((), f"{dtype.kind}1" if is_text else dtype)
    array = np.asarray(fill)
    if is_text != (array.dtype.kind in "SU") or array.ndim:
        subject = f"padded_batch: {short(fill)} to fill up column {name!r} of {dtype}"
        raise PipelineError(message(subject, "text" if is_text else "a number"))
    return array.astype(dtype.kind) if is_text else array.astype(dtype)
