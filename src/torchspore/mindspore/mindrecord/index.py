"""The SQLite file beside a MindRecord file: where each row lies, and the values of the index fields."""
from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.errors import DataDamaged
from torchspore.mindspore.mindrecord.exceptions import MRMOpenError
from torchspore.mindspore.mindrecord.layout import Schema

_COLUMNS = (
    "ROW_ID", "PAGE_ID_RAW", "PAGE_OFFSET_RAW", "PAGE_OFFSET_RAW_END", "ROW_GROUP_ID", "PAGE_ID_BLOB", "PAGE_OFFSET_BLOB",
    "PAGE_OFFSET_BLOB_END",
)
_KINDS = {"int32": "INTEGER", "int64": "INTEGER", "float32": "REAL", "float64": "REAL", "string": "TEXT"}
Places = np.ndarray[Any, Any]
"""(rows, 8) int64: the columns above."""


def path_of(file: Path) -> Path:
    """The index that belongs to a file."""
    return file.with_name(file.name + ".db")


def write(path: Path, name: str, schema: Schema, fields: list[str], places: list[tuple[int, ...]], values: list[tuple[Any, ...]]) -> None:
    """Makes the index of the file `name` at `path`, which must not be there. Raises OSError."""
    extra = "".join(f", INC_{n} INT, {field}_0 {_KINDS[schema[field]['type']]}" for n, field in enumerate(fields))
    key = ", ".join(["ROW_ID", *(f"INC_{n}" for n in range(len(fields)))])
    rows = ((*place, *(part for value in row for part in (0, value))) for place, row in zip(places, values, strict=True))
    marks = ", ".join("?" * (len(_COLUMNS) + 2 * len(fields)))
    try:
        with contextlib.closing(sqlite3.connect(path)) as base, base:
            base.execute("PRAGMA journal_mode=OFF")
            base.execute(f"CREATE TABLE INDEXES({', '.join(f'{c} INT NOT NULL' for c in _COLUMNS)}{extra}, PRIMARY KEY({key}))")
            base.executemany(f"INSERT INTO INDEXES VALUES({marks})", rows)
            base.execute("CREATE TABLE SHARD_NAME(NAME TEXT NOT NULL)")
            base.execute("INSERT INTO SHARD_NAME VALUES(?)", (name,))
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from None
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def read(file: Path) -> Places:
    """Where the rows of a MindRecord file lie, in their order.

    Raises FileNotFoundError where the index is missing, FileFormatError where it is none.
    """
    with _opened(file) as base:
        found = base.execute(f"SELECT {', '.join(_COLUMNS)} FROM INDEXES ORDER BY ROW_ID").fetchall()
        if any(type(value) is not int or not 0 <= value < 1 << 62 for row in found for value in row):
            raise DataDamaged(message(f"{path_of(file)}: a place that is no number", "the index of a MindRecord file"))
    return np.array(found, np.int64).reshape(-1, len(_COLUMNS))


def read_values(file: Path, field: str) -> list[Any]:
    """The values of an index field, in the order of the rows."""
    with _opened(file) as base:
        return [value for (value,) in base.execute(f"SELECT {field}_0 FROM INDEXES ORDER BY ROW_ID")]


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """The index for reading; only a plain table is read: a view could have any number of rows."""
    path = path_of(file)
    if not path.is_file():
        raise MRMOpenError(message(str(path), f"the index of {file.name}", hint="both files are needed; copy them together"))
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            base.execute("PRAGMA trusted_schema=OFF")
            if base.execute("SELECT type FROM sqlite_master WHERE name='INDEXES'").fetchall() != [("table",)]:
                raise DataDamaged(message(f"{path}: no table INDEXES", "the index of a MindRecord file"))
            yield base
    except sqlite3.Error as error:
        raise DataDamaged(message(f"{path}: {error}", "the index of a MindRecord file")) from None
