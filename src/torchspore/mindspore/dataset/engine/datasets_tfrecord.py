"""Rows of TFRecord files."""
from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.dataset.core.random_order import Twister32
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, checked_columns
from torchspore.mindspore.dataset.engine.dataset import UnionBaseDataset
from torchspore.mindspore.dataset.engine.failures import PipelineError
from torchspore.mindspore.dataset.engine.files import FilesOrder, RecordsDataset, wanted_shuffle
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.mindspore.dataset.engine.samplers import Shuffle
from torchspore.mindspore.dataset.engine.schema import NUMBERS, Schema
from torchspore.mindspore.dataset.engine.tfrecord import COMPRESSIONS, Records


class TFRecordDataset(RecordsDataset, UnionBaseDataset):
    """The `tf.train.Example`s of TFRecord files.

    `dataset_files` is a path, a pattern such as '*.tfrecord' or a list of them. Without a `schema` the first row says which columns there
    are: int64, float32, and uint8 (N,) for bytes (of several, each is filled up with spaces to the longest). A `schema` (a Schema or the
    path of one) gives type and shape; its numRows is the most rows that are read. Rows come shuffled (`Shuffle.GLOBAL`) unless `shuffle` is
    False; `Shuffle.FILES` shuffles the files. With `num_shards` each reads every `num_shards`-th file, with `shard_equal_rows` an equal
    part of all rows. `compression_type` is '', 'GZIP' or 'ZLIB'. Raises ValueError for missing files and wrong arguments,
    FileFormatError (a ValueError) for files that are none; when read RuntimeError for rows that do not fit the schema.
    """

    def __init__(
        self, dataset_files: Any, schema: Any = None, columns_list: list[str] | None = None, num_samples: int | None = None,
        num_parallel_workers: int | None = None, shuffle: Any = Shuffle.GLOBAL, num_shards: int | None = None, shard_id: int | None = None,
        shard_equal_rows: bool = False, cache: Any = None, compression_type: str | None = None,
    ) -> None:
        super().__init__("TFRecordDataset", num_parallel_workers, None, num_samples, shuffle, num_shards, shard_id, cache)
        check_bool("TFRecordDataset", "shard_equal_rows", shard_equal_rows)
        compression = compression_type or ""
        if compression not in COMPRESSIONS:
            raise ValueError(message(f"TFRecordDataset(compression_type={short(compression_type)})", list_choices(COMPRESSIONS)))
        self._records = [Records(path, compression) for path in _files(dataset_files)]
        self._ends = np.cumsum([len(records) for records in self._records])
        if num_shards is not None and num_shards > len(self._records) and not shard_equal_rows:
            what = f"TFRecordDataset(num_shards={num_shards}) of {len(self._records)} files"
            raise ValueError(message(what, "a file for each", hint="shard_equal_rows=True shares out rows"))
        self.schema = Schema(schema) if isinstance(schema, (str, Path)) else schema
        if self.schema is not None and not isinstance(self.schema, Schema):
            raise TypeError(message(f"TFRecordDataset(schema={short(schema)})", f"a Schema or a path, got {type(schema).__name__}"))
        self._names = self._chosen(columns_list)
        most = [n for n in (num_samples, self.schema.num_rows if self.schema is not None else None) if n]
        shares = (num_shards, shard_id or 0, shard_equal_rows) if num_shards is not None else None
        self.sampler = _Order(wanted_shuffle(shuffle), list(map(len, self._records)), shares, min(most, default=None))

    def _chosen(self, columns_list: Any) -> list[str]:
        """The columns that are read."""
        if self.schema is not None and self.schema.columns:
            known = list(self.schema.columns)
        else:
            self.schema = None
            known = sorted(self._example(0)) if self._count() else []
        if columns_list is None:
            return known
        names = checked_columns("TFRecordDataset", "columns_list", columns_list)
        for name in names:
            if name not in known:
                raise ValueError(message(f"TFRecordDataset: column {name!r}", list_choices(known)))
        return names

    def _columns(self) -> list[str]:
        return list(self._names)

    def _count(self) -> int:
        return int(self._ends[-1])

    def _example(self, index: int) -> dict[str, Any]:
        number = self._file(index)
        return self._records[number].example(index - (int(self._ends[number - 1]) if number else 0))

    def _file(self, index: int) -> int:
        """The number of the file that a row stands in."""
        return int(np.searchsorted(self._ends, index, side="right"))

    def _read(self, index: int) -> Row:
        example = self._example(index)
        return tuple(self._column(name, example, index) for name in self._names)

    def _column(self, name: str, example: dict[str, Any], index: int) -> Any:
        if name not in example:
            where = f"row {index} of {self._where(index)}"
            raise PipelineError(f"TFRecordDataset: {where} has no {name!r}: expected one of {', '.join(sorted(example))}.")
        if self.schema is None:
            return _plain(example[name])
        try:
            return _fitting(self.schema.columns[name], example[name])
        except ValueError as error:
            raise PipelineError(f"TFRecordDataset: {name!r} of row {index} of {self._where(index)}: {error}") from None

    def _where(self, index: int) -> Path:
        return self._records[self._file(index)].path


def _files(given: Any) -> list[Path]:
    """The files that paths and patterns name. Raises ValueError where one names none."""
    patterns = [given] if isinstance(given, (str, Path)) else given
    if isinstance(patterns, (list, tuple)) and not patterns:
        raise ValueError(message("TFRecordDataset([])", "at least one file"))
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(one, (str, Path)) for one in patterns):
        raise TypeError(message(f"TFRecordDataset({short(given)})", "a path, a pattern or a list of them"))
    found = []
    for pattern in patterns:
        path = Path(pattern).expanduser()
        matches = [path] if path.is_file() else [Path(name) for name in sorted(glob.glob(str(path))) if Path(name).is_file()]
        if not matches:
            raise ValueError(message(f"TFRecordDataset: {str(pattern)!r} matches no file", "files that exist"))
        found += matches
    return found


def _plain(value: Any) -> Any:
    """A feature without a schema."""
    if not isinstance(value, list):
        return value
    longest = max(map(len, value), default=0)
    return np.frombuffer(b"".join(one.ljust(longest) for one in value), np.uint8)


def _fitting(column: dict[str, Any], value: Any) -> Any:
    """A feature in the type and shape of its column. Raises ValueError where it does not fit."""
    shape = column.get("shape")
    if column["type"] == "string":
        if not isinstance(value, list):
            raise ValueError("numbers where the schema has text")
        array = np.array([one.decode("utf-8", "surrogateescape") for one in value])
    elif isinstance(value, list):
        if column["type"] != "uint8":
            raise ValueError(f"bytes where the schema has {column['type']}; they are uint8 or string")
        array = np.frombuffer(b"".join(value), np.uint8)
    else:
        array = value.astype(NUMBERS[column["type"]])
    if shape is None:
        return array
    known = int(np.prod([n for n in shape if n != -1]))
    if array.size % max(known, 1) or (-1 not in shape and array.size != known):
        raise ValueError(f"{array.size} values do not fit the schema's shape {shape}")
    return array.reshape(shape)


class _Order(FilesOrder):
    """The order of the rows of several files, and the share of one process."""

    def __init__(self, shuffle: Shuffle | None, lengths: list[int], shares: tuple[int, int, bool] | None, most: int | None) -> None:
        super().__init__(shuffle, lengths, shares is not None, most)
        self._shares = shares

    def _positions_(self, count: int, state: dict[str, Any]) -> list[int]:
        engine = Twister32(state["seed"] + state["epoch"])
        files = list(self._files)
        if self.shuffle is Shuffle.FILES:
            engine.shuffle(files)
        rows = self._share(files, count)
        if self.shuffle is Shuffle.GLOBAL:
            engine.shuffle(rows)
        return rows[: self._limited_(len(rows))]

    def _share(self, files: list[list[int]], count: int) -> list[int]:
        if self._shares is None:
            return [row for file in files for row in file]
        number, own, is_by_rows = self._shares
        if not is_by_rows:
            return [row for file in files[own::number] for row in file]
        rows = [row for file in files for row in file]
        share = -(-count // number)
        return [rows[(own * share + n) % count] for n in range(share)] if count else []

    def _length_(self, count: int) -> int:
        return self._limited_(len(self._share(self._files, count)))
