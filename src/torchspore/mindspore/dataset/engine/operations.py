"""The steps of a pipeline that move rows unchanged: filter, shuffle, repeat, take, skip, zip, concat, rename, project."""
from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from torchspore.base.suggest import closest
from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.core.random_order import Twister64
from torchspore.mindspore.dataset.core.validator_helpers import (
    INT32_MAX,
    check_int,
    check_type,
    checked_columns,
    interval_error,
    with_sentence,
)
from torchspore.mindspore.dataset.engine.dataset import Dataset, UnionBaseDataset
from torchspore.mindspore.dataset.engine.failures import PipelineError, guarded, name_of
from torchspore.mindspore.dataset.engine.rows import Row, Run, writable_copy
from torchspore.mindspore.dataset.engine.shuffle_buffer import through_buffer


def column_positions(call: str, names: list[str], columns: list[str]) -> list[int]:
    """Return the positions of the columns `names`. Raises RuntimeError for an unknown column."""
    for name in names:
        if name not in columns:
            near = closest(name, columns)
            hint = f"write {near!r}" if near else None
            raise RuntimeError(message(f"{call}: column {name!r}", f"one of the dataset's columns {columns}", hint=hint))
    return [columns.index(name) for name in names]


class FilterDataset(UnionBaseDataset):
    """The rows for which a function returns true."""

    def __init__(
        self, input_dataset: Dataset, predicate: Callable[..., Any], input_columns: Any = None, num_parallel_workers: int | None = None
    ) -> None:
        if not callable(predicate):
            raise TypeError(message(f"filter(predicate={short(predicate)})", f"a function, got {type(predicate).__name__}"))
        self.input_columns = checked_columns("filter", "input_columns", input_columns) if input_columns else []
        super().__init__(input_dataset, num_parallel_workers)
        self.predicate = predicate

    def _size(self) -> int | None:
        return None

    def _epoch(self, run: Run) -> Iterator[Row]:
        columns = self._columns()
        where = f"filter(predicate={name_of(self.predicate)})"
        positions = column_positions("filter", self.input_columns or columns, columns)
        for row in self.children[0]._epoch(run):
            if guarded(where, self.predicate, *[writable_copy(row[position]) for position in positions]):
                yield row


class ShuffleDataset(UnionBaseDataset):
    """Rows in random order from a buffer; a seed gives MindSpore's order.

    With a `shared_seed` the order is the same in every epoch, and in every pipeline with it; the program's seed takes precedence.
    """

    def __init__(self, input_dataset: Dataset, buffer_size: int, shared_seed: int | None = None) -> None:
        check_int("shuffle", "buffer_size", buffer_size, 2, INT32_MAX, hint="leave shuffle out for rows in their order")
        if input_dataset.is_sync():
            text = message("sync_wait(...).shuffle(...)", "shuffle before sync_wait")
            raise RuntimeError(with_sentence(text, "No shuffle after sync operators."))
        super().__init__(input_dataset)
        self.buffer_size, self._shared_seed = buffer_size, shared_seed
        self._counted: int | None = None

    def is_shuffled(self) -> bool:
        return True

    def _epoch(self, run: Run) -> Iterator[Row]:
        if self._shared_seed is None:
            draw = run.keep(self, lambda: Twister64(run.seed))
        else:
            draw = Twister64(run.seed if config.chosen_seed() is not None else self._shared_seed)
        yield from through_buffer(self.children[0]._epoch(run), self.buffer_size, draw, run, self._total, self._learn)

    def _total(self) -> int | None:
        size = self.children[0]._size()
        return self._counted if size is None else size

    def _learn(self, count: int) -> None:
        """Caches the rows of a source without a length: `split` counts them before a part of them is read."""
        self._counted = count


class RepeatDataset(UnionBaseDataset):
    """All rows, repeated in one epoch."""

    def __init__(self, input_dataset: Dataset, count: int | None = None) -> None:
        if count is not None:
            check_type("repeat", "count", count, int, "an int or None")
            if count != -1 and not 1 <= count <= INT32_MAX:
                raise ValueError(message(f"repeat({count})", f"-1 for without end, or an int from 1 to {INT32_MAX}"))
        super().__init__(input_dataset)
        self.count = -1 if count is None else count

    def _size(self) -> int | None:
        size = self.children[0]._size()
        return size if size is None or self.count == -1 else size * self.count

    def get_dataset_size(self) -> int:
        return self.children[0].get_dataset_size() * (1 if self.count == -1 else self.count)

    def get_repeat_count(self) -> int:
        return self.count

    def _epoch(self, run: Run) -> Iterator[Row]:
        number = 0
        while self.count == -1 or number < self.count:
            empty = True
            for row in self.children[0]._epoch(run):
                empty = False
                yield row
            if empty:
                return
            number += 1


class TakeDataset(UnionBaseDataset):
    """The first rows."""

    def __init__(self, input_dataset: Dataset, count: int) -> None:
        check_type("take", "count", count, int, "an int")
        if not 0 < count <= INT32_MAX:
            text = message(f"take({count})", f"-1 for all rows, or an int from 1 to {INT32_MAX}")
            raise interval_error(text, "count", f"[-1, 0) and (0, {INT32_MAX}]")
        super().__init__(input_dataset)
        self.count = count

    def _size(self) -> int | None:
        size = self.children[0]._size()
        return None if size is None else min(size, self.count)

    def _epoch(self, run: Run) -> Iterator[Row]:
        rows = self.children[0]._epoch(run)
        try:
            yield from islice(rows, self.count)
        finally:
            rows.close()  # type: ignore[attr-defined]


class SkipDataset(UnionBaseDataset):
    """All rows except the first ones."""

    def __init__(self, input_dataset: Dataset, count: int) -> None:
        check_int("skip", "count", count, 0)
        super().__init__(input_dataset)
        self.count = count

    def _size(self) -> int | None:
        size = self.children[0]._size()
        return None if size is None else max(size - self.count, 0)

    def _epoch(self, run: Run) -> Iterator[Row]:
        yield from islice(self.children[0]._epoch(run), self.count, None)


class ZipDataset(UnionBaseDataset):
    """Combined columns of several datasets."""

    def __init__(self, datasets: tuple[Dataset, ...]) -> None:
        if len(datasets) < 2:
            raise ValueError(message(f"zip of {len(datasets)} datasets", "at least two"))
        for dataset in datasets:
            if not isinstance(dataset, Dataset):
                raise TypeError(message(f"zip(({short(dataset)}, ...))", f"Datasets, got {type(dataset).__name__}"))
        super().__init__(datasets)

    def _columns(self) -> list[str]:
        columns: list[str] = []
        for child in self.children:
            for name in child._columns():
                if name in columns:
                    hint = f"rename it: dataset.rename({name!r}, '{name}_2')"
                    raise RuntimeError(message(f"zip: column {name!r} in two of the datasets", "columns of different names", hint=hint))
                columns.append(name)
        return columns

    def _size(self) -> int | None:
        sizes = [child._size() for child in self.children]
        return None if None in sizes else min(size for size in sizes if size is not None)

    def _epoch(self, run: Run) -> Iterator[Row]:
        self._columns()
        epochs = [child._epoch(run) for child in self.children]
        try:
            for rows in builtins.zip(*epochs):
                yield tuple(value for row in rows for value in row)
        finally:
            for epoch in epochs:
                epoch.close()  # type: ignore[attr-defined]


class ConcatDataset(UnionBaseDataset):
    """The rows of several datasets with the same columns, one after the other."""

    def __init__(self, datasets: list[Dataset]) -> None:
        for dataset in datasets:
            if not isinstance(dataset, Dataset):
                raise TypeError(message(f"concat([{short(dataset)}])", f"Datasets, got {type(dataset).__name__}"))
        super().__init__(datasets)
        self.datasets = list(datasets)
        self._sampler: Any = None

    def use_sampler(self, sampler: Any) -> None:
        """Takes a share of all rows by a DistributedSampler, whose shuffle must be off."""
        from torchspore.mindspore.dataset.engine.samplers import DistributedSampler

        check_type("use_sampler", "sampler", sampler, DistributedSampler, "a DistributedSampler")
        if sampler.shuffle:
            raise ValueError(message("use_sampler(DistributedSampler(shuffle=True))", "shuffle=False, the rows are read in order"))
        self._sampler = sampler

    def _columns(self) -> list[str]:
        columns = self.children[0]._columns()
        for child in self.children[1:]:
            if child._columns() != columns:
                raise RuntimeError(message(f"concat: columns {child._columns()}", f"the first dataset's columns {columns}, in that order"))
        return columns

    def _size(self) -> int | None:
        sizes = [child._size() for child in self.children]
        if None in sizes:
            return None
        total = sum(size for size in sizes if size is not None)
        return total if self._sampler is None else self._sampler._length_(total)

    def _epoch(self, run: Run) -> Iterator[Row]:
        self._columns()
        rows = self._alike(run)
        if self._sampler is None:
            yield from rows
            return
        for number, row in enumerate(rows):
            if number % self._sampler.num_shards == self._sampler.shard_id:
                yield row


    def _alike(self, run: Run) -> Iterator[Row]:
        """Yield the rows. Raises RuntimeError if a dataset's first row differs from the very first one in dtype or number of axes."""
        kinds: list[Any] = []
        for child in self.children:
            for number, row in builtins.enumerate(child._epoch(run)):
                if not number:
                    kinds = kinds or [_kind(value) for value in row]
                    self._check_kinds(kinds, row)
                yield row

    def _check_kinds(self, kinds: list[Any], row: Row) -> None:
        for name, (dtype, axes), value in builtins.zip(self._columns(), kinds, row):
            if _kind(value) != (dtype, axes):
                difference = f"concat: column {name!r} is {_kind(value)[0]} of {_kind(value)[1]} axes"
                hint = f"make them equal in a map, such as map(transforms.TypeCast(...), {[name]})"
                raise PipelineError(message(difference, f"{dtype} of {axes} axes, as in the first dataset", hint=hint))


def _kind(value: Any) -> tuple[str, int]:
    """Return the common properties of a column's values, apart from their length."""
    if isinstance(value, dict):
        return "a dict", 0
    return {"U": "text", "S": "bytes"}.get(value.dtype.kind, value.dtype.name), value.ndim


class RenameDataset(UnionBaseDataset):
    """Renamed columns."""

    _has_row_for_row = True

    def __init__(self, input_dataset: Dataset, input_columns: Any, output_columns: Any) -> None:
        self.input_column_names = checked_columns("rename", "input_columns", input_columns)
        self.output_column_names = checked_columns("rename", "output_columns", output_columns)
        if len(self.input_column_names) != len(self.output_column_names):
            raise ValueError(message(f"rename({input_columns!r}, {output_columns!r})", "as many new names as old ones"))
        super().__init__(input_dataset)

    def _columns(self) -> list[str]:
        columns = self.children[0]._columns()
        positions = column_positions("rename", self.input_column_names, columns)
        renamed = list(columns)
        for position, name in builtins.zip(positions, self.output_column_names):
            renamed[position] = name
        doubled = [name for name in renamed if renamed.count(name) > 1]
        if doubled:
            raise RuntimeError(message(f"rename to {doubled[0]!r}", f"a name that is not yet one of {columns}"))
        return renamed

    def _epoch(self, run: Run) -> Iterator[Row]:
        self._columns()
        yield from self.children[0]._epoch(run)


class ProjectDataset(UnionBaseDataset):
    """Some of the columns, in the requested order."""

    _has_row_for_row = True

    def __init__(self, input_dataset: Dataset, columns: Any) -> None:
        self.columns = checked_columns("project", "columns", columns)
        super().__init__(input_dataset)

    def _columns(self) -> list[str]:
        column_positions("project", self.columns, self.children[0]._columns())
        return self.columns

    def _epoch(self, run: Run) -> Iterator[Row]:
        positions = column_positions("project", self.columns, self.children[0]._columns())
        for row in self.children[0]._epoch(run):
            yield tuple(row[position] for position in positions)
