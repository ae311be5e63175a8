"""Rows of random bytes, for trying out a pipeline."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.core.validator_helpers import check_int, check_type, checked_columns
from torchspore.mindspore.dataset.engine.declarations import PictureDataset
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.mindspore.dataset.engine.schema import NUMBERS, Schema

_BYTE = (2**32 - 1) // 256
"""The number of steps into which libstdc++ divides the twister's 32-bit numbers for each byte."""
_MOST_ROWS, _MOST_COLUMNS, _MOST_AXES, _LONGEST_AXIS = 1000, 4, 4, 8


class RandomDataset(
    PictureDataset,
    arguments="total_rows=None, schema=None, columns_list=None, num_samples=None, num_parallel_workers=None, cache=None, shuffle=None, "
    "num_shards=None, shard_id=None",
):
    """`total_rows` rows of the columns of a `schema` (a Schema or the path of one): each value repeats one random byte.

    The bytes for a seed are MindSpore's, the same in each epoch. Without a schema the types and shapes are random too, of the columns in
    `columns_list`, 'c0', 'c1', ... by default; without `total_rows` the number of rows. Rows come in their order unless `shuffle` is True.
    """

    total_rows: int | None
    schema: Any
    columns_list: Any

    def _check(self) -> None:
        if self.total_rows is not None:
            check_int("RandomDataset", "total_rows", self.total_rows, 1)
        if isinstance(self.schema, (str, Path)):
            self.schema = Schema(self.schema)
        if self.schema is not None:
            check_type("RandomDataset", "schema", self.schema, Schema, "a Schema or the path of one")
        names = None if self.columns_list is None else checked_columns("RandomDataset", "columns_list", self.columns_list)
        self._seed = config.fresh_seed()
        draw = np.random.RandomState(self._seed % 2**32)
        if self.schema is None or not self.schema.columns:
            self.schema = _drawn(draw, names or [f"c{n}" for n in range(draw.randint(1, _MOST_COLUMNS + 1))])
        self._number = self.total_rows or self.schema.num_rows or int(draw.randint(1, _MOST_ROWS + 1))
        self._shown = self._chosen(names)

    def _chosen(self, names: list[str] | None) -> list[str]:
        columns = self.schema.columns
        for name, column in columns.items():
            if column["type"] not in NUMBERS or -1 in column.get("shape", [-1]):
                raise ValueError(message(f"RandomDataset: column {name!r} {short(column)}", "numbers of a shape that is known"))
        unknown = [name for name in names or () if name not in columns]
        if unknown:
            raise ValueError(message(f"RandomDataset(columns_list): {unknown[0]!r}", f"one of {', '.join(columns)}"))
        return names or list(columns)

    def _start(self, call: str, shared: dict[str, Any]) -> None:
        super()._start(call, {**shared, "shuffle": False if shared["shuffle"] is None else shared["shuffle"]})

    def _columns(self) -> list[str]:
        return list(self._shown)

    def _location(self) -> Any:
        return "rows"

    def _list(self) -> Sequence[Any]:
        width = len(self.schema.columns)
        words, accepted = np.random.RandomState(self._seed % 2**32)._bit_generator, np.empty(0, np.uint64)
        while len(accepted) < self._number * width:
            drawn = words.random_raw(self._number * width - len(accepted))
            accepted = np.concatenate([accepted, drawn[drawn < 256 * _BYTE]])
        return (accepted // _BYTE).astype(np.uint8).reshape(-1, width)  # type: ignore[return-value]

    def _row(self, entry: Any) -> Row:
        values = dict(zip(self.schema.columns, entry, strict=True))
        return tuple(_filled(self.schema.columns[name], values[name]) for name in self._shown)


def _filled(column: dict[str, Any], byte: np.uint8) -> np.ndarray:
    """Return an array in which every byte has this value."""
    kind, shape = NUMBERS[column["type"]], column["shape"]
    return np.full(int(np.prod(shape)) * kind.itemsize, byte, np.uint8).view(kind).reshape(shape)


def _drawn(draw: np.random.RandomState, names: list[str]) -> Schema:
    schema = Schema()
    for name in names:
        shape = draw.randint(1, _LONGEST_AXIS + 1, draw.randint(1, _MOST_AXES + 1)).tolist()
        schema.add_column(name, list(NUMBERS)[draw.randint(len(NUMBERS))], shape)
    return schema
