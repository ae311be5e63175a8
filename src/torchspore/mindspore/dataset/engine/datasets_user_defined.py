"""Sources that a program supplies: Python objects, generators and arrays."""
from __future__ import annotations

import copy
import inspect
import operator
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from torchspore.base import user_threads
from torchspore.base.text import message, short, with_type
from torchspore.engine.tensors import tree
from torchspore.mindspore.dataset.core import config, randomness
from torchspore.mindspore.dataset.core.validator_helpers import check_processes, check_type, check_workers, checked_columns
from torchspore.mindspore.dataset.engine.batches import stack
from torchspore.mindspore.dataset.engine.dataset import UnionBaseDataset
from torchspore.mindspore.dataset.engine.failures import PipelineError, failed, guarded, name_of
from torchspore.mindspore.dataset.engine.mappable import MappableDataset as MappableDataset
from torchspore.mindspore.dataset.engine.pace import Pace, apply_all, tried
from torchspore.mindspore.dataset.engine.processes import Processes, shared_megabytes
from torchspore.mindspore.dataset.engine.rows import Row, Run, to_array
from torchspore.mindspore.dataset.engine.schema import as_schema

_WORTH_A_PROCESS = 300e-6
"""Seconds per row."""

_LIGHT = 16_384
"""Maximum bytes of a row for copying many rows at once: copying costs less than handling each row."""


class GeneratorDataset(MappableDataset, UnionBaseDataset):
    """Rows of a Python object: one with `__getitem__` and `__len__`, an iterable, or a function that returns an iterator.

    An indexable source is shuffled unless `shuffle=False` or a sampler is passed; an iterable never is. A row is a tuple (or list) with one
    value for each of `column_names`, or the value itself. With `num_parallel_workers` above 1, that many workers read an indexable source
    whose rows are slow enough: processes, or threads without `python_multiprocessing`.
    `batch_sampler` yields the indices of each batch; `collate_fn(*columns)`, which receives a list of each column's values, joins them. A
    `schema` names the columns with their types and shapes. Raises TypeError for any other source, ValueError for invalid arguments.
    """

    _reads_groups = True

    def __init__(
        self, source: Any, column_names: Any = None, column_types: Any = None, schema: Any = None, num_samples: int | None = None,
        num_parallel_workers: int | None = 1, shuffle: bool | None = None, sampler: Any = None, num_shards: int | None = None,
        shard_id: int | None = None, python_multiprocessing: bool = True, max_rowsize: Any = None, batch_sampler: Any = None,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        call = type(self).__name__
        if not (callable(source) or hasattr(source, "__iter__") or hasattr(source, "__getitem__") or hasattr(source, "__next__")):
            expected = with_type("an object with __getitem__, an iterable, or a function that returns one", source)
            raise TypeError(message(f"{call}(source={short(source)})", expected))
        self.schema = None if schema is None else as_schema(call, schema)
        if column_names is None and self.schema is None:
            raise ValueError(message(f"{call}(column_names=None)", "column_names", hint=f"write {call}(source, ['data', 'label'])"))
        self.column_names = checked_columns(call, "column_names", list(self.schema.columns) if column_names is None else column_names)
        check_workers(call, num_parallel_workers)
        check_processes(call, python_multiprocessing, max_rowsize, num_parallel_workers)
        self._in_processes, self._max_rowsize = python_multiprocessing, max_rowsize
        self._indexable = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not self._indexable:
            if sampler is not None:
                raise ValueError(message(f"{call}(sampler=...)", "a source with __getitem__ and __len__, for a sampler to choose from"))
            if num_shards is not None:
                raise ValueError(message(f"{call}(num_shards={num_shards})", "a source with __getitem__ and __len__, to take a share of"))
        single = {"num_samples": num_samples, "shuffle": shuffle, "num_shards": num_shards, "shard_id": shard_id, "sampler": sampler}
        self.batch_sampler, self.collate_fn = _check_batches(call, batch_sampler, collate_fn, single, self._indexable), collate_fn
        # A sampler takes precedence over shuffle here, unlike in the other sources.
        super().__init__(call, num_parallel_workers, sampler, num_samples, None if sampler is not None else shuffle, num_shards, shard_id)
        self._location = f"{call}(source={name_of(source)})"
        self.source, self.column_types = source, _column_types(call, column_types)
        self._first_rows = _Recorded(source) if inspect.isgenerator(source) else None

    def _columns(self) -> list[str]:
        return self.column_names

    def is_shuffled(self) -> bool:
        return self._indexable and super().is_shuffled()

    def _count(self) -> int:
        try:
            return len(self.source)
        except (TypeError, ValueError, OverflowError) as error:
            raise failed(f"{self._location}.__len__", error) from error

    def _size(self) -> int | None:
        self._check_length()
        if self.batch_sampler is not None:
            return len(self.batch_sampler) if hasattr(self.batch_sampler, "__len__") else sum(1 for _ in self.batch_sampler)
        return super()._size() if self._indexable else None

    def get_batch_size(self) -> int:
        return 1 if self.batch_sampler is None else -1

    def _read(self, index: int) -> Row:
        return self._row(self._value(index))

    def _value(self, index: int) -> Any:
        entered = user_threads.enter()
        try:
            return self.source[index]
        except Exception as error:
            raise failed(f"{self._location}[{index}]", error) from error
        finally:
            user_threads.leave(entered)

    def _read_batch(self, indices: list[int]) -> Row:
        """Join the rows of these indices by `collate_fn`, which receives a list of each column's values, or along a new first axis."""
        rows = [self._value(index) for index in indices]
        if self.collate_fn is None:
            parts = zip(*[self._row(row) for row in rows])
            return tuple(stack(values, name) for values, name in zip(parts, self.column_names))
        columns = zip(*[[to_array(item, self._location) for item in tree.listed(row)] for row in rows])
        where = f"{type(self).__name__}(collate_fn={name_of(self.collate_fn)})"
        return self._row(guarded(where, self.collate_fn, *map(list, columns)))

    def _batches(self) -> Iterator[list[int]]:
        """Yield the indices of each batch."""
        for indices in self.batch_sampler:
            try:
                yield [operator.index(index) for index in indices]
            except TypeError:
                raise PipelineError(message(f"{self._location}: batch_sampler gave {short(indices)}", "a list of indices")) from None

    def _shared(self, read: Callable[[int], Row], indices: Iterator[int], run: Run) -> Iterator[Row]:
        if not self._in_processes or not config.can_start_processes() or config.get_debug_mode():
            yield from super()._shared(read, indices, run)
            return
        pace = run.keep(self, lambda: Pace(self.num_parallel_workers or 1, _WORTH_A_PROCESS), "pace")
        turn = run.turn(self)
        yield from tried(read, indices, pace)
        if pace.is_heavy:
            yield from run.keep(self, lambda: self._start_processes(run, read), "processes").map(indices, lambda chunk: (turn, chunk))
        else:
            yield from map(read, indices)

    def _start_processes(self, run: Run, read: Callable[[Any], Row]) -> Processes:
        def rows_of(task: tuple[int, list[Any]]) -> str:
            return f"row {task[1][0]}" if len(task[1]) == 1 else f"rows {short(task[1])}"

        count, megabytes = self.num_parallel_workers or 1, shared_megabytes(self._max_rowsize)
        return run.closing(Processes(count, _Work(self._reader(read), run.seed), self._location, rows_of, megabytes))

    def _reader(self, read: Callable[[Any], Row]) -> Callable[[Any], Row]:
        """Return `read` of a copy of this source without its samplers, because a spawned process does not need them."""
        reader = copy.copy(self)
        reader.sampler = reader.batch_sampler = reader._first_rows = None  # type: ignore[assignment]
        bound_read: Callable[[Any], Row] = getattr(reader, read.__name__)
        return bound_read

    def has_numbered_rows(self) -> bool:
        return self._indexable and self.batch_sampler is None

    def _epoch(self, run: Run) -> Iterator[Row]:
        if self.batch_sampler is not None:
            share = self._shared if (self.num_parallel_workers or 1) > 1 else lambda read, batches, _: map(read, batches)
            yield from share(self._read_batch, self._batches(), run)
            return
        if self._indexable:
            yield from super()._epoch(run)
            return
        rows = self._iterate()
        try:
            yield from islice(rows, self.num_samples or None)
        finally:
            rows.close()  # type: ignore[attr-defined]

    def _iterate(self) -> Iterator[Row]:
        try:
            for value in user_threads.each(self._values()):
                yield self._row(value)
        except (PipelineError, GeneratorExit):
            raise
        except Exception as error:
            raise failed(self._location, error) from error

    def _check_length(self) -> None:
        """Raise PipelineError if the source has `__getitem__` but no `__len__`: reading it would never end."""
        if not self._indexable and hasattr(self.source, "__getitem__"):
            raise PipelineError(message(
                f"{self._location}: __getitem__ without __len__", "a source with both methods, or an iterable with __iter__ alone",
                hint=f"define __len__(self) on {type(self.source).__name__}",
            ))

    def _values(self) -> Iterator[Any]:
        self._check_length()
        source = self.source
        if self._first_rows is not None:
            yield from self._first_rows
        elif hasattr(source, "__iter__"):
            yield from source
        elif hasattr(source, "__next__"):
            while True:
                try:
                    yield next(source)
                except StopIteration:
                    return
        else:
            yield from source()

    def _row(self, value: Any) -> Row:
        values, names = tree.listed(value), self.column_names
        if len(values) != len(names):
            expected = f"{len(names)} values a row, one for each of {names}, got {len(values)}"
            raise PipelineError(message(self._location, expected))
        row = tuple(to_array(item, self._location) for item in values)
        if self.column_types is not None:
            for name, array, expected_type in zip(names, row, self.column_types):
                if array.dtype != expected_type:
                    expected = f"{expected_type}, as column_types says"
                    raise PipelineError(message(f"{self._location}: column {name!r} is {array.dtype}", expected))
        if self.schema is not None and self.batch_sampler is None:
            for name, array in zip(names, row):
                self._check_schema(name, array)
        return row

    def _check_schema(self, name: str, array: np.ndarray) -> None:
        """Raises PipelineError if a value does not have its column's type in the schema. Shapes may vary, as in MindSpore."""
        expected_type = self.schema.columns.get(name, {}).get("type") if self.schema is not None else None
        is_text = expected_type in ("string", "bytes")
        if expected_type is not None and (array.dtype.kind not in "SU" if is_text else array.dtype != np.dtype(expected_type)):
            raise PipelineError(message(f"{self._location}: column {name!r} is {array.dtype}", f"{expected_type}, as the schema says"))


class _Recorded:
    """The cached rows of a generator, which runs once; each epoch of each iterator returns the same rows, as in MindSpore."""

    def __init__(self, source: Iterator[Any]) -> None:
        self._source, self._rows, self._lock = source, list[Any](), threading.RLock()

    def __iter__(self) -> Iterator[Any]:
        number = 0
        while True:
            with self._lock:                     # another iterator may have read as far in another thread
                if number == len(self._rows):
                    try:
                        self._rows.append(next(self._source))
                    except StopIteration:
                        return
            yield self._rows[number]
            number += 1


class _Work:
    """The function of a worker process for a task of indices."""

    def __init__(self, read: Callable[[Any], Row], seed: int) -> None:
        self._read, self._seed = read, seed

    def __call__(self, task: tuple[int, list[Any]]) -> list[Any]:
        return apply_all(lambda index: self._seeded(task[0], index), task[1])

    def _seeded(self, turn: int, index: Any) -> Row:
        randomness.seed_python((self._seed, turn, *tree.listed(index)))
        return self._read(index)


def _check_batches(call: str, batch_sampler: Any, collate_fn: Any, single: dict[str, Any], is_indexable: bool) -> Any:
    """Check the `batch_sampler`. Raises TypeError, and ValueError for additional arguments that select single rows."""
    if collate_fn is not None and not callable(collate_fn):
        raise TypeError(message(f"{call}(collate_fn={short(collate_fn)})", "a function of the columns' lists"))
    if batch_sampler is None:
        if collate_fn is not None:
            hint = "pass a batch_sampler, or write .batch(..., per_batch_map=...)"
            raise ValueError(message(f"{call}(collate_fn=...)", "a batch_sampler beside it", hint=hint))
        return None
    if not hasattr(batch_sampler, "__getitem__") and not hasattr(batch_sampler, "__iter__"):
        raise TypeError(message(f"{call}(batch_sampler={short(batch_sampler)})", "an iterable of lists of indices"))
    others = [name for name, value in single.items() if value is not None]
    if others:
        subject = f"{call}(batch_sampler=..., {others[0]}={short(single[others[0]])})"
        raise ValueError(message(subject, "one of the two", hint=f"leave {others[0]} out"))
    if not is_indexable:
        raise ValueError(message(f"{call}(batch_sampler=...)", "a source with __getitem__ and __len__"))
    return batch_sampler


def _column_types(call: str, column_types: Any) -> list[np.dtype] | None:
    if column_types is None:
        return None
    check_type(call, "column_types", column_types, (list, tuple), "a list of dtypes")
    from torchspore.mindspore.common.dtype import dtype_to_nptype

    return [np.dtype(dtype_to_nptype(kind)) if type(kind).__module__.startswith("torchspore") else np.dtype(kind) for kind in column_types]


class NumpySlicesDataset(GeneratorDataset):
    """The slices of arrays or lists along their first axis.

    `data` is one array or list (one column), a tuple of them, or a dict from column name to one. Column names are `column_0`, ... by
    default. Raises ValueError if the columns differ in length, are empty, or do not match the number of names.
    """

    _reads_groups = False

    def __init__(
        self, data: Any, column_names: Any = None, num_samples: int | None = None, num_parallel_workers: int | None = 1,
        shuffle: bool | None = None, sampler: Any = None, num_shards: int | None = None, shard_id: int | None = None,
    ) -> None:
        check_type("NumpySlicesDataset", "data", data, (list, tuple, dict, np.ndarray), "an array, a list, a tuple of them or a dict")
        if len(data) == 0:
            raise ValueError(message("NumpySlicesDataset(data)", "data that is not empty"))
        if isinstance(data, tuple):
            for number, column in enumerate(data):
                check_type("NumpySlicesDataset", f"data[{number}]", column, (list, np.ndarray), "an array or a list")
        columns = list(data.values()) if isinstance(data, dict) else list(data) if isinstance(data, tuple) else [data]
        if column_names is None:
            column_names = list(data) if isinstance(data, dict) else [f"column_{number}" for number in range(len(columns))]
        names = checked_columns("NumpySlicesDataset", "column_names", column_names)
        if len(names) != len(columns):
            raise ValueError(message(f"NumpySlicesDataset(column_names={names})", f"{len(columns)} names, one for each column of the data"))
        lengths = {len(column) for column in columns}
        if len(lengths) != 1:
            raise ValueError(message(f"NumpySlicesDataset: columns of lengths {sorted(lengths)}", "columns of one length"))
        super().__init__(
            _Slices(columns), names, num_samples=num_samples, num_parallel_workers=num_parallel_workers, shuffle=shuffle, sampler=sampler,
            num_shards=num_shards, shard_id=shard_id,
        )

    def _read(self, index: int) -> Row:
        return self.source.row(index) if self.source.is_plain else super()._read(index)

    def _gathers(self) -> bool:
        return self.cache is None and self.source.is_light and self.sampler._reads_ahead_()

    def _gather(self, indices: list[int]) -> list[np.ndarray]:
        return self.source.columns(indices)


class _Slices:
    def __init__(self, columns: list[Any]) -> None:
        self._arrays = [np.asarray(column) for column in columns]
        self.is_plain = all(array.dtype.kind in "biufc" for array in self._arrays)      # texts differ in length
        self.is_light = self.is_plain and sum(array[0].nbytes for array in self._arrays) <= _LIGHT

    def __len__(self) -> int:
        return len(self._arrays[0])

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(array[index] for array in self._arrays)

    def row(self, index: int) -> Row:
        """Return views of one row, which need no more checks."""
        return tuple([array[index, ...] for array in self._arrays])

    def columns(self, indices: list[int]) -> list[np.ndarray]:
        """Return copies of several rows, by one gather for each column."""
        return [array[indices] for array in self._arrays]


class PaddedDataset(GeneratorDataset):
    """Rows that pad a dataset to a divisible number: `dataset + PaddedDataset(rows)`, then `use_sampler` of a share.

    `padded_samples` is a list of dicts from column name to value, all with the same keys. Raises TypeError and ValueError for anything
    else.
    """

    _reads_groups = False

    def __init__(self, padded_samples: list[dict[str, Any]]) -> None:
        check_type("PaddedDataset", "padded_samples", padded_samples, list, "a list of dicts from column name to array")
        if not padded_samples:
            raise ValueError(message("PaddedDataset([])", "at least one row"))
        for row in padded_samples:
            check_type("PaddedDataset", "padded_samples", row, dict, "dicts from column name to array")
            if list(row) != list(padded_samples[0]):
                raise ValueError(message(f"PaddedDataset: columns {list(row)}", f"those of the first row, {list(padded_samples[0])}"))
        super().__init__([tuple(row.values()) for row in padded_samples], list(padded_samples[0]), shuffle=False)
        self.padded_samples = padded_samples
