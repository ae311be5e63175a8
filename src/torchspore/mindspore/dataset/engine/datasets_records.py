"""Rows of MindRecord files."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.random_order import Minimal, Twister32
from torchspore.mindspore.dataset.engine.dataset import UnionBaseDataset
from torchspore.mindspore.dataset.engine.files import FilesOrder, RecordsDataset, shuffle_kind
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.mindspore.dataset.engine.samplers import Shuffle
from torchspore.mindspore.mindrecord.layout import NUMBERS
from torchspore.mindspore.mindrecord.reader import checked_columns, open_shards


class MindDataset(RecordsDataset, UnionBaseDataset):
    """The rows of MindRecord files, as columns in the order of their names or of `columns_list`.

    `dataset_files` is one file, whose complete set is read, or a list of files. A number is an array without axes, a text one of str,
    bytes are an array (1,) of bytes, arrays have the schema's shape. Rows are shuffled unless `shuffle` is False; `Shuffle.FILES` keeps
    the rows of each file together and in order, `Shuffle.INFILE` the files in order. With `num_shards` every `num_shards`-th row is read,
    and rows from the start make the shares equal. `num_padded` copies of `padded_sample` (a dict with each column of `columns_list`)
    follow. Raises FileNotFoundError, FileFormatError (a ValueError), which name the file, and for contradictions RuntimeError.
    """

    def __init__(
        self, dataset_files: Any, columns_list: list[str] | None = None, num_parallel_workers: int | None = None, shuffle: Any = None,
        num_shards: int | None = None, shard_id: int | None = None, sampler: Any = None, padded_sample: dict[str, Any] | None = None,
        num_padded: int | None = None, num_samples: int | None = None, cache: Any = None,
    ) -> None:
        super().__init__("MindDataset", num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self._shards = open_shards("MindDataset", dataset_files)
        self.schema = self._shards.header.schema
        self._names = checked_columns("MindDataset", columns_list, self.schema)
        self._added = _padding(padded_sample, num_padded, columns_list)
        self._added_row = self._row(padded_sample) if padded_sample is not None else ()
        if sampler is None:
            self.sampler = _Order(shuffle_kind(shuffle), self._shards.lengths(), num_shards, shard_id, num_samples)

    def _columns(self) -> list[str]:
        return list(self._names)

    def _count(self) -> int:
        return len(self._shards) + self._added

    def _class_labels(self, column: str) -> list[Any]:
        checked_columns("PKSampler(class_column)", [column], self.schema)
        return [self._shards.row(number, [column])[column] for number in range(len(self._shards))]

    def _read(self, index: int) -> Row:
        return self._row(self._shards.row(index, self._names)) if index < len(self._shards) else self._added_row

    def _row(self, values: dict[str, Any]) -> Row:
        return tuple(_column(self.schema[name], values[name]) for name in self._names)


def _padding(sample: Any, count: Any, columns: Any) -> int:
    """Return the number of added rows. Raises RuntimeError if one of the arguments requires another, ValueError if columns differ."""
    if (sample is None) != (count is None):
        present, lacking = ("num_padded", "padded_sample") if sample is None else ("padded_sample", "num_padded")
        raise RuntimeError(message(f"MindDataset({present}=...)", f"{lacking} beside it"))
    if sample is None:
        return 0
    if not isinstance(sample, dict) or type(count) is not int or count < 0:
        raise TypeError(message(f"MindDataset(padded_sample={short(sample)}, num_padded={short(count)})", "a dict and an int from 0"))
    if columns is None:
        raise RuntimeError(message("MindDataset(padded_sample=...)", "columns_list beside it"))
    if set(sample) != set(columns):
        raise ValueError(message(f"MindDataset: padded_sample with {sorted(sample)}", f"the columns of columns_list: {sorted(columns)}"))
    return count


def _column(kind: dict[str, Any], value: Any) -> Any:
    """Return a field's value as an array."""
    if kind["type"] == "bytes":
        content = bytes(value)
        return np.frombuffer(content or b"\0", f"S{len(content) or 1}")
    if kind["type"] == "string":
        return np.array(value)
    return value if "shape" in kind and isinstance(value, np.ndarray) else np.array(value, NUMBERS[kind["type"]])


class _Order(FilesOrder):
    """The order of the rows of several files; a seeded global order equals MindSpore 2.10's."""

    def __init__(
        self, shuffle: Shuffle | None, lengths: list[int], num_shards: int | None, shard_id: int | None, num_samples: int | None,
    ) -> None:
        super().__init__(shuffle, lengths, num_shards is not None, num_samples)
        self._rows = sum(lengths)
        self._shares, self._share = num_shards or 1, shard_id or 0

    def _positions_(self, count: int, state: dict[str, Any]) -> list[int]:
        order = self._shuffled(state["seed"] + state["epoch"] + 1, state)
        order += range(self._rows, count)
        if self._is_sharded:
            share = -(-count // self._shares)
            order = [order[(self._share + n * self._shares) % count] for n in range(share)] if count else []
        return order[: self._limited_(len(order))]

    def _shuffled(self, seed: int, state: dict[str, Any]) -> list[int]:
        if self.shuffle in (Shuffle.FILES, Shuffle.INFILE):
            return self._by_files(seed)
        if self.shuffle is None:
            return list(range(self._rows))
        # Without shares each epoch shuffles the previous order, as MindSpore does.
        order: list[int] = list(range(self._rows)) if self._is_sharded else state.setdefault("order", list(range(self._rows)))
        Minimal(seed).shuffle(order)
        return list(order)

    def _by_files(self, seed: int) -> list[int]:
        files = [list(rows) for rows in self._files]
        engine = Twister32(seed)
        if self.shuffle is Shuffle.FILES:
            engine.shuffle(files)
        else:
            for rows in files:
                engine.shuffle(rows)
        return [row for rows in files for row in rows]

    def _length_(self, count: int) -> int:
        return self._limited_(-(-count // self._shares))
