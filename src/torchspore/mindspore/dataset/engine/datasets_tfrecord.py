"""Rows of TFRecord files."""
from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.dataset.core.random_order import Twister32
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, checked_columns, with_sentence
from torchspore.mindspore.dataset.engine.dataset import UnionBaseDataset
from torchspore.mindspore.dataset.engine.failures import PipelineError
from torchspore.mindspore.dataset.engine.files import FilesOrder, RecordsDataset, shuffle_kind
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.mindspore.dataset.engine.samplers import Shuffle
from torchspore.mindspore.dataset.engine.schema import NUMBERS, Schema
from torchspore.mindspore.mindrecord.tfrecord import COMPRESSIONS, Records


class TFRecordDataset(RecordsDataset, UnionBaseDataset):
    """The `tf.train.Example`s of TFRecord files.

    `dataset_files` is a path, a pattern such as '*.tfrecord' or a list of them. Without a `schema` the first row determines the
    columns: int64, float32, and uint8 (N,) for bytes (several are padded with spaces to the longest). A `schema` (a Schema or the path of
    one) defines type and shape; its numRows limits the rows. Rows are shuffled (`Shuffle.GLOBAL`) unless `shuffle` is False;
    `Shuffle.FILES` shuffles the files. With `num_shards` each reads every `num_shards`-th file, with `shard_equal_rows` an equal
    part of all rows. `compression_type` is '', 'GZIP' or 'ZLIB'. Raises ValueError for missing files and wrong arguments,
    FileFormatError (a ValueError) for other files; when read RuntimeError for rows that do not fit the schema.
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
            subject = f"TFRecordDataset(num_shards={num_shards}) of {len(self._records)} files"
            raise ValueError(message(subject, "a file for each", hint="shard_equal_rows=True shares out rows"))
        self.schema = Schema(schema) if isinstance(schema, (str, Path)) else schema
        if self.schema is not None and not isinstance(self.schema, Schema):
            raise TypeError(message(f"TFRecordDataset(schema={short(schema)})", f"a Schema or a path, got {type(schema).__name__}"))
        self._names = self._chosen(columns_list)
        limits = [n for n in (num_samples, self.schema.num_rows if self.schema is not None else None) if n]
        shares = (num_shards, shard_id or 0, shard_equal_rows) if num_shards is not None else None
        self.sampler = _Order(shuffle_kind(shuffle), list(map(len, self._records)), shares, min(limits, default=None))

    def _chosen(self, columns_list: Any) -> list[str]:
        """Return the columns that are read."""
        if self.schema is not None and self.schema.columns:
            available = list(self.schema.columns)
        else:
            self.schema = None
            available = sorted(self._example(0)) if self._count() else []
        if columns_list is None:
            return available
        names = checked_columns("TFRecordDataset", "columns_list", columns_list)
        for name in names:
            if name not in available:
                raise ValueError(message(f"TFRecordDataset: column {name!r}", list_choices(available)))
        return names

    def _columns(self) -> list[str]:
        return list(self._names)

    def _count(self) -> int:
        return int(self._ends[-1])

    def _example(self, index: int) -> dict[str, Any]:
        number = self._file(index)
        return self._records[number].example(index - (int(self._ends[number - 1]) if number else 0))

    def _file(self, index: int) -> int:
        """Return the number of the file that contains a row."""
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


def _files(patterns_or_path: Any) -> list[Path]:
    """Return the files that paths and patterns match. Raises ValueError if one matches nothing."""
    patterns = [patterns_or_path] if isinstance(patterns_or_path, (str, Path)) else patterns_or_path
    if isinstance(patterns, (list, tuple)) and not patterns:
        raise ValueError(message("TFRecordDataset([])", "at least one file"))
    if not isinstance(patterns, (list, tuple)) or not all(isinstance(pattern, (str, Path)) for pattern in patterns):
        raise TypeError(message(f"TFRecordDataset({short(patterns_or_path)})", "a path, a pattern or a list of them"))
    files = []
    for pattern in patterns:
        path = Path(pattern).expanduser()
        matches = [path] if path.is_file() else [Path(name) for name in sorted(glob.glob(str(path))) if Path(name).is_file()]
        if not matches:
            text = message(f"TFRecordDataset: {str(pattern)!r} matches no file", "files that exist")
            raise ValueError(with_sentence(text, f"The following patterns did not match any files: ['{pattern}']"))
        files += matches
    return files


def _plain(value: Any) -> Any:
    """Convert a feature without a schema."""
    if not isinstance(value, list):
        return value
    longest = max(map(len, value), default=0)
    return np.frombuffer(b"".join(item.ljust(longest) for item in value), np.uint8)


def _fitting(column: dict[str, Any], value: Any) -> Any:
    """Convert a feature to the type and shape of its column. Raises ValueError if it does not fit."""
    shape = column.get("shape")
    if column["type"] == "string":
        if not isinstance(value, list):
            raise ValueError("numbers where the schema has text")
        array = np.array([item.decode("utf-8", "surrogateescape") for item in value])
    elif isinstance(value, list):
        if column["type"] != "uint8":
            raise ValueError(f"bytes where the schema has {column['type']}; they are uint8 or string")
        array = np.frombuffer(b"".join(value), np.uint8)
    else:
        array = value.astype(NUMBERS[column["type"]])
    if shape is None:
        return array
    fixed_size = int(np.prod([n for n in shape if n != -1]))
    if array.size % max(fixed_size, 1) or (-1 not in shape and array.size != fixed_size):
        raise ValueError(f"{array.size} values do not fit the schema's shape {shape}")
    return array.reshape(shape)


class _Order(FilesOrder):
    """The order of the rows of several files, and the share of one process."""

    def __init__(self, shuffle: Shuffle | None, lengths: list[int], shares: tuple[int, int, bool] | None, max_rows: int | None) -> None:
        super().__init__(shuffle, lengths, shares is not None, max_rows)
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
        number, index_of_share, is_by_rows = self._shares
        if not is_by_rows:
            return [row for file in files[index_of_share::number] for row in file]
        rows = [row for file in files for row in file]
        share = -(-count // number)
        return [rows[(index_of_share * share + n) % count] for n in range(share)] if count else []

    def _length_(self, count: int) -> int:
        return self._limited_(len(self._share(self._files, count)))
