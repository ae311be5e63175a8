"""The SQLite file of a MindRecord file: the position of each row, and the values of the index fields."""
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
Positions = np.ndarray[Any, Any]
"""Array (rows, 8) int64: the columns above."""


def path_of(file: Path) -> Path:
    """Return the path of a file's index."""
    return file.with_name(file.name + ".db")


def write(
    path: Path, name: str, schema: Schema, fields: list[str], positions: list[tuple[int, ...]], values: list[tuple[Any, ...]],
) -> None:
    """Create the index of the file `name` at `path`, which must not exist. Raises OSError."""
    extra = "".join(f", INC_{n} INT, {field}_0 {_KINDS[schema[field]['type']]}" for n, field in enumerate(fields))
    key = ", ".join(["ROW_ID", *(f"INC_{n}" for n in range(len(fields)))])
    rows = ((*position, *(part for value in row for part in (0, value))) for position, row in zip(positions, values, strict=True))
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


def read(file: Path) -> Positions:
    """Return the positions of the rows of a MindRecord file, in order.

    Raises FileNotFoundError if the index is missing, FileFormatError if it has another format.
    """
    with _opened(file) as base:
        rows = base.execute(f"SELECT {', '.join(_COLUMNS)} FROM INDEXES ORDER BY ROW_ID").fetchall()
        if any(type(value) is not int or not 0 <= value < 1 << 62 for row in rows for value in row):
            raise DataDamaged(message(f"{path_of(file)}: a position that is not a number", "the index of a MindRecord file"))
    return np.array(rows, np.int64).reshape(-1, len(_COLUMNS))


def read_values(file: Path, field: str) -> list[Any]:
    """Return the values of an index field, in the order of the rows."""
    with _opened(file) as base:
        return [value for (value,) in base.execute(f"SELECT {field}_0 FROM INDEXES ORDER BY ROW_ID")]


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    """Open the index for reading; only a plain table is read, because a view could have any number of rows."""
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
