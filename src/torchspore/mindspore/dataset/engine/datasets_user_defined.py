"""Sources that a program brings itself: Python objects, generators and arrays."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.engine import tree
from torchspore.mindspore.dataset.core import config, randomness
from torchspore.mindspore.dataset.core.validator_helpers import (
    INT64_MAX,
    check_columns,
    check_int,
    check_processes,
    check_shards,
    check_type,
    check_workers,
)
from torchspore.mindspore.dataset.engine.cache_client import DatasetCache
from torchspore.mindspore.dataset.engine.dataset import SourceDataset
from torchspore.mindspore.dataset.engine.failures import PipelineError, failed, name_of
from torchspore.mindspore.dataset.engine.pace import Pace, apply_all, paced_map, tried
from torchspore.mindspore.dataset.engine.processes import Processes, shared_megabytes
from torchspore.mindspore.dataset.engine.rows import Row, Run, to_array
from torchspore.mindspore.dataset.engine.samplers import (
    BuiltinSampler,
    DistributedSampler,
    IterSampler,
    RandomSampler,
    SequentialSampler,
    Shuffle,
    SubsetSampler,
)
from torchspore.mindspore.dataset.engine.workers import Workers

_WORTH_A_PROCESS = 300e-6
"""Seconds a row."""


def choose_sampler(
    call: str, num_samples: int | None, sampler: Any, shuffle: Any, num_shards: int | None, shard_id: int | None
) -> BuiltinSampler:
    """The sampler that a source's arguments ask for. Raises RuntimeError where they contradict each other."""
    if num_samples is not None:
        check_int(call, "num_samples", num_samples, 0, INT64_MAX)
    check_shards(call, num_shards, shard_id)
    if shuffle is not None and not isinstance(shuffle, (bool, Shuffle)):
        raise TypeError(message(f"{call}(shuffle={short(shuffle)})", "True, False or None"))
    if sampler is not None:
        if shuffle is not None:
            raise RuntimeError(message(f"{call}(sampler=..., shuffle={shuffle!r})", "one of the two", hint="leave shuffle out"))
        if num_shards is not None:
            raise RuntimeError(message(f"{call}(sampler=..., num_shards={num_shards})", "one of the two", hint="leave num_shards out"))
        return as_sampler(call, sampler, num_samples)
    wanted = True if shuffle is None else bool(shuffle)
    if num_shards is not None:
        return DistributedSampler(num_shards, shard_id or 0, shuffle=wanted, num_samples=num_samples)
    if not wanted:
        return SequentialSampler(num_samples=num_samples)
    # With num_samples MindSpore puts each row back: some come twice.
    return RandomSampler(replacement=num_samples is not None, num_samples=num_samples)


def as_sampler(call: str, sampler: Any, num_samples: int | None) -> BuiltinSampler:
    """A sampler from a sampler, a list of indexes or any iterable of them."""
    if isinstance(sampler, BuiltinSampler):
        if num_samples is not None:
            outer = SequentialSampler(num_samples=num_samples)
            outer.add_child(sampler)
            return outer
        return sampler
    if isinstance(sampler, (list, tuple, np.ndarray)):
        return SubsetSampler(sampler, num_samples)
    if hasattr(sampler, "__iter__"):
        return IterSampler(sampler, num_samples)
    raise TypeError(message(f"{call}(sampler={short(sampler)})", f"a sampler or an iterable of indexes, got {type(sampler).__name__}"))


class MappableDataset(SourceDataset):
    """A source whose rows are read by index, in the order of a sampler. Subclasses give `_count` and `_read`."""

    _indexable = True

    def __init__(
        self, call: str, num_parallel_workers: int | None, sampler: Any, num_samples: int | None, shuffle: Any, num_shards: int | None,
        shard_id: int | None, cache: Any = None,
    ) -> None:
        super().__init__(None, num_parallel_workers)
        if cache is not None and not isinstance(cache, DatasetCache):
            raise TypeError(message(f"{call}(cache={short(cache)})", f"a DatasetCache, got {type(cache).__name__}"))
        self.cache = cache
        self._cache_key = object()
        self.num_samples, self.shuffle_flag, self.num_shards, self.shard_id = num_samples, shuffle, num_shards, shard_id
        self._use(choose_sampler(call, num_samples, sampler, shuffle, num_shards, shard_id))

    def _use(self, sampler: BuiltinSampler) -> None:
        self.sampler: BuiltinSampler = sampler.reading(self._class_labels)

    def _class_labels(self) -> list[Any]:
        """The label of each row, for a sampler that chooses by class. Raises ValueError where rows have none."""
        raise ValueError(message(f"{type(self).__name__}(sampler=PKSampler(...))", "a source whose rows have one label each"))

    def use_sampler(self, new_sampler: Any) -> None:
        """Reads the rows that `new_sampler` chooses instead."""
        if new_sampler is None:
            raise TypeError(message("use_sampler(None)", "a sampler"))
        self._use(as_sampler("use_sampler", new_sampler, None))

    def add_sampler(self, new_sampler: BuiltinSampler) -> None:
        """Lets `new_sampler` choose from the rows that the present sampler gives."""
        check_type("add_sampler", "new_sampler", new_sampler, BuiltinSampler, "a sampler")
        new_sampler.add_child(self.sampler)
        self._use(new_sampler)

    def is_shuffled(self) -> bool:
        return self.sampler.is_shuffled()

    def is_sharded(self) -> bool:
        return self.sampler.is_sharded()

    def _count(self) -> int:
        raise NotImplementedError

    def _read(self, index: int) -> Row:
        raise NotImplementedError

    def _size(self) -> int | None:
        return self.sampler.length(self._count())

    def _epoch(self, run: Run) -> Iterator[Row]:
        state = run.keep(self, self.sampler.open)
        indices = self.sampler.indices(self._count(), state)
        read = self._read if self.cache is None else self._read_once
        if (self.num_parallel_workers or 1) < 2:
            for index in indices:
                yield read(index)
            return
        yield from self._shared(read, indices, run)

    def _shared(self, read: Callable[[int], Row], indices: Iterator[int], run: Run) -> Iterator[Row]:
        """The rows of the indices, in their order, by several workers: threads, as far as they pay."""
        workers = run.keep(self, lambda: _workers(run, self.num_parallel_workers or 1), "workers")
        yield from paced_map(read, indices, workers, run.keep(self, lambda: Pace(workers.count), "pace"))

    def _read_once(self, index: int) -> Row:
        return self.cache.row((self._cache_key, index), lambda: self._read(index))  # type: ignore[union-attr]


def _workers(run: Run, count: int) -> Workers:
    workers = Workers(count, "torchspore-source")
    run.on_close(workers.close)
    return workers


class GeneratorDataset(MappableDataset):
    """Rows that a Python object gives: one with `__getitem__` and `__len__`, an iterable, or a function that returns an iterator.

    An indexable source is shuffled unless `shuffle=False` or a sampler is given; an iterable never is. A row is a tuple (or list) with one
    value for each of `column_names`, or the value itself. With `num_parallel_workers` above 1, that many workers read an indexable source
    whose rows take long enough: processes, or threads without `python_multiprocessing`.
    Raises TypeError for a source that is none of these, ValueError for arguments that do not fit.
    """

    def __init__(
        self, source: Any, column_names: Any = None, column_types: Any = None, schema: Any = None, num_samples: int | None = None,
        num_parallel_workers: int | None = 1, shuffle: bool | None = None, sampler: Any = None, num_shards: int | None = None,
        shard_id: int | None = None, python_multiprocessing: bool = True, max_rowsize: Any = None, batch_sampler: Any = None,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        call = type(self).__name__
        if not (callable(source) or hasattr(source, "__iter__") or hasattr(source, "__getitem__") or hasattr(source, "__next__")):
            expected = f"an object with __getitem__, an iterable, or a function that returns one, got {type(source).__name__}"
            raise TypeError(message(f"{call}(source={short(source)})", expected))
        if column_names is None:
            expected = "column_names" if schema is None else "column_names: schema files are not in torchspore yet"
            raise ValueError(message(f"{call}(column_names=None)", expected, hint=f"write {call}(source, ['data', 'label'])"))
        self.column_names = check_columns(call, "column_names", column_names)
        check_workers(call, num_parallel_workers)
        check_processes(call, python_multiprocessing, max_rowsize, num_parallel_workers)
        self._in_processes, self._max_rowsize = python_multiprocessing, max_rowsize
        if batch_sampler is not None or collate_fn is not None:
            raise ValueError(
                message(f"{call}(batch_sampler=..., collate_fn=...)", "None: they are not in torchspore yet", hint="use .batch(...)")
            )
        self._indexable = hasattr(source, "__getitem__") and hasattr(source, "__len__")
        if not self._indexable:
            if sampler is not None:
                raise ValueError(message(f"{call}(sampler=...)", "a source with __getitem__ and __len__, for a sampler to choose from"))
            if num_shards is not None:
                raise ValueError(message(f"{call}(num_shards={num_shards})", "a source with __getitem__ and __len__, to take a share of"))
        # A sampler wins over shuffle here, alone among the sources.
        super().__init__(call, num_parallel_workers, sampler, num_samples, None if sampler is not None else shuffle, num_shards, shard_id)
        self.source, self.column_types, self.schema = source, _column_types(call, column_types), schema
        self._recorded: list[Any] | None = None

    def _columns(self) -> list[str]:
        return self.column_names

    def is_shuffled(self) -> bool:
        return self._indexable and super().is_shuffled()

    def _where(self) -> str:
        return f"{type(self).__name__}(source={name_of(self.source)})"

    def _count(self) -> int:
        return len(self.source)

    def _size(self) -> int | None:
        if self._indexable:
            return super()._size()
        return None

    def _read(self, index: int) -> Row:
        try:
            value = self.source[index]
        except Exception as error:
            raise failed(f"{self._where()}[{index}]", error) from error
        return self._row(value)

    def _shared(self, read: Callable[[int], Row], indices: Iterator[int], run: Run) -> Iterator[Row]:
        if not self._in_processes or config.get_debug_mode():
            yield from super()._shared(read, indices, run)
            return
        pace = run.keep(self, lambda: Pace(self.num_parallel_workers or 1, _WORTH_A_PROCESS), "pace")
        turn = run.turn(self)
        yield from tried(read, indices, pace)
        if pace.shares:
            yield from run.keep(self, lambda: self._start_processes(run), "processes").map(indices, lambda chunk: (turn, chunk))
        else:
            yield from map(read, indices)

    def _start_processes(self, run: Run) -> Processes:
        def rows_of(task: tuple[int, list[int]]) -> str:
            return f"row {task[1][0]}" if len(task[1]) == 1 else f"rows {short(task[1])}"

        def work(task: tuple[int, list[int]]) -> list[Any]:
            return apply_all(lambda index: self._read_seeded((run.seed, task[0], index)), task[1])

        count, megabytes = self.num_parallel_workers or 1, shared_megabytes(self._max_rowsize)
        processes = Processes(count, work, self._where(), rows_of, megabytes)
        run.on_close(processes.close)
        return processes

    def _read_seeded(self, key: tuple[int, int, int]) -> Row:
        randomness.seed_python(key)
        return self._read(key[2])

    def _epoch(self, run: Run) -> Iterator[Row]:
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
            for value in self._values():
                yield self._row(value)
        except (PipelineError, GeneratorExit):
            raise
        except Exception as error:
            raise failed(self._where(), error) from error

    def _values(self) -> Iterator[Any]:
        source = self.source
        if inspect.isgenerator(source):
            # A generator runs once; its rows are kept, so that the next epoch gives them again as in MindSpore.
            if self._recorded is None:
                self._recorded = []
            yield from self._recorded
            for value in source:
                self._recorded.append(value)
                yield value
        elif hasattr(source, "__iter__"):
            yield from source
        elif hasattr(source, "__next__"):
            while True:
                try:
                    yield next(source)
                except StopIteration:
                    return
        elif callable(source):
            yield from source()
        else:  # __getitem__ without __len__
            yield from iter(source)

    def _row(self, value: Any) -> Row:
        values = tree.listed(value)
        if len(values) != len(self.column_names):
            expected = f"{len(self.column_names)} values a row, one for each of {self.column_names}, got {len(values)}"
            raise PipelineError(message(self._where(), expected))
        row = tuple(to_array(one, self._where()) for one in values)
        if self.column_types is not None:
            for name, array, wanted in zip(self.column_names, row, self.column_types):
                if array.dtype != wanted:
                    raise PipelineError(message(f"{self._where()}: column {name!r} is {array.dtype}", f"{wanted}, as column_types says"))
        return row


def _column_types(call: str, column_types: Any) -> list[np.dtype] | None:
    if column_types is None:
        return None
    check_type(call, "column_types", column_types, (list, tuple), "a list of dtypes")
    from torchspore.mindspore.common.dtype import dtype_to_nptype

    return [np.dtype(dtype_to_nptype(one)) if type(one).__module__.startswith("torchspore") else np.dtype(one) for one in column_types]


class NumpySlicesDataset(GeneratorDataset):
    """The slices of arrays or lists along their first axis.

    `data` is one array or list (one column), a tuple of them, or a dict from column name to one. Column names are `column_0`, ... where
    none are given. Raises ValueError where the columns differ in length, are empty, or are not as many as the names.
    """

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
        names = check_columns("NumpySlicesDataset", "column_names", column_names)
        if len(names) != len(columns):
            raise ValueError(message(f"NumpySlicesDataset(column_names={names})", f"{len(columns)} names, one for each column of the data"))
        lengths = {len(column) for column in columns}
        if len(lengths) != 1:
            raise ValueError(message(f"NumpySlicesDataset: columns of lengths {sorted(lengths)}", "columns of one length"))
        super().__init__(
            _Slices(columns), names, num_samples=num_samples, num_parallel_workers=num_parallel_workers, shuffle=shuffle, sampler=sampler,
            num_shards=num_shards, shard_id=shard_id,
        )


class _Slices:
    def __init__(self, columns: list[Any]) -> None:
        self._arrays = [np.asarray(column) for column in columns]

    def __len__(self) -> int:
        return len(self._arrays[0])

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(array[index] for array in self._arrays)


class PaddedDataset(GeneratorDataset):
    """Rows that fill a dataset up to a number that divides evenly: `dataset + PaddedDataset(rows)`, then `use_sampler` of a share.

    `padded_samples` is a list of dicts from column name to array, all with the same keys. Raises TypeError and ValueError for anything
    else.
    """

    def __init__(self, padded_samples: list[dict[str, np.ndarray]]) -> None:
        check_type("PaddedDataset", "padded_samples", padded_samples, list, "a list of dicts from column name to array")
        if not padded_samples:
            raise ValueError(message("PaddedDataset([])", "at least one row"))
        for row in padded_samples:
            check_type("PaddedDataset", "padded_samples", row, dict, "dicts from column name to array")
            for name, value in row.items():
                check_type("PaddedDataset", name, value, (np.ndarray, bytes), "an array or bytes")
            if list(row) != list(padded_samples[0]):
                raise ValueError(message(f"PaddedDataset: columns {list(row)}", f"those of the first row, {list(padded_samples[0])}"))
        super().__init__([tuple(row.values()) for row in padded_samples], list(padded_samples[0]), shuffle=False)
        self.padded_samples = padded_samples
