"""Reading of rows from MindRecord files: all of them, or pages of rows with one value."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchspore.base.suggest import closest
from torchspore.base.text import message, short
from torchspore.mindspore.mindrecord import index
from torchspore.mindspore.mindrecord.exceptions import MRMFetchDataError, MRMReadCategoryInfoError, ParamTypeError, ParamValueError
from torchspore.mindspore.mindrecord.layout import Schema
from torchspore.mindspore.mindrecord.shards import Shards, all_shards

_MOST_CONSUMERS = 64


def open_shards(call: str, file_name: Any) -> Shards:
    """Return the files of `file_name`: a path means its full set, a list only these files. Raises TypeError, FileNotFoundError."""
    if isinstance(file_name, (str, Path)):
        return Shards(all_shards(Path(file_name).expanduser()))
    if not isinstance(file_name, (list, tuple)) or not file_name or not all(isinstance(name, (str, Path)) for name in file_name):
        raise ParamTypeError(message(f"{call}({file_name!r:.60})", "a path or a list of paths"))
    return Shards([Path(name).expanduser() for name in file_name])


def checked_columns(call: str, columns: Any, schema: Schema) -> list[str]:
    """Return the requested columns, by default all. Raises ParamTypeError, ParamValueError with the nearest name."""
    if columns is None:
        return list(schema)
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ParamTypeError(message(f"{call}: columns {columns!r:.60}", "a list of names"))
    for name in columns:
        if name not in schema:
            near = closest(name, schema)
            hint = f"did you mean {near!r}?" if near else None
            raise ParamValueError(message(f"{call}: column {name!r}", f"one of {', '.join(schema)}", hint=hint))
    return columns


def check_consumers(call: str, number: Any) -> None:
    """Raises ParamValueError for an invalid number of reading threads, which does not affect the order of rows."""
    if type(number) is not int or not 1 <= number <= _MOST_CONSUMERS:
        raise ParamValueError(message(f"{call}: num_consumer {number!r:.40}", f"an int from 1 to {_MOST_CONSUMERS}"))


class FileReader:
    """Reads the rows of MindRecord files in their order, as dicts of Python's numbers, str, bytes and NumPy arrays.

    `file_name` is one file, whose full set is read, or a list of files. Raises FileNotFoundError, FileFormatError (a ValueError), which
    name the file, ParamValueError for an unknown column.
    """

    def __init__(self, file_name: Any, num_consumer: int = 4, columns: list[str] | None = None, operator: Any = None) -> None:
        if operator is not None:
            raise NotImplementedError(message("FileReader(operator=...)", "None; MindSpore knows no operator either"))
        check_consumers("FileReader", num_consumer)
        self._shards = open_shards("FileReader", file_name)
        chosen = checked_columns("FileReader", columns, self._shards.header.schema)
        self._columns = sorted(chosen, key=self._shards.header.blobs.__contains__)  # MindSpore's order: bytes and arrays last

    def get_next(self) -> Iterator[dict[str, Any]]:
        """Iterates over the rows."""
        for number in range(len(self._shards)):
            yield self._shards.row(number, self._columns)

    def schema(self) -> Schema:
        """Returns the schema of the files."""
        return {name: dict(kind) for name, kind in self._shards.header.schema.items()}

    def len(self) -> int:
        """Returns the number of rows."""
        return len(self._shards)

    def close(self) -> None:
        """Closes the files."""
        self._shards.close()


class MindPage:
    """Reads MindRecord files by pages of rows with the same value of an index field.

    Set `category_field` first; `candidate_fields` are the index fields of the files.
    """

    def __init__(self, file_name: Any, num_consumer: int = 4) -> None:
        check_consumers("MindPage", num_consumer)
        self._shards = open_shards("MindPage", file_name)
        self._field: str | None = None
        self._rows: dict[Any, list[int]] = {}

    @property
    def candidate_fields(self) -> list[str]:
        """Returns the index fields."""
        return list(self._shards.header.index_fields)

    @property
    def category_field(self) -> str | None:
        """Returns the field of the pages."""
        return self._field

    @category_field.setter
    def category_field(self, category_field: str) -> None:
        if category_field not in self.candidate_fields:
            expected = f"one of {', '.join(self.candidate_fields) or 'no fields'}"
            raise ParamValueError(message(f"category_field = {category_field!r:.60}", expected))
        self._field, self._rows = category_field, {}
        values = [value for shard in self._shards.shards for value in index.read_values(shard.file, category_field)]
        for number, value in enumerate(values):
            self._rows.setdefault(value, []).append(number)
        self._rows = dict(sorted(self._rows.items()))

    def get_category_fields(self) -> list[str]:
        """The index fields."""
        return self.candidate_fields

    def set_category_field(self, category_field: str) -> bool:
        """Selects the field of the pages. Raises ParamTypeError unless it is a str."""
        if not isinstance(category_field, str):
            raise ParamTypeError(message(f"set_category_field({short(category_field)})", f"a str, got {type(category_field).__name__}"))
        self.category_field = category_field
        return True

    def read_category_info(self) -> str:
        """Returns JSON with each value of the field, its number and its count of rows."""
        rows = self._chosen()
        listed = [{"count": len(numbers), "id": n, "name": str(value)} for n, (value, numbers) in enumerate(rows.items())]
        return json.dumps({"categories": listed, "key": f"{self._field}_0"}, separators=(",", ":"))

    def read_at_page_by_id(self, category_id: int, page: int, num_row: int) -> list[dict[str, Any]]:
        """Returns page `page` of `num_row` rows of the value with this number. Raises ParamValueError, MRMFetchDataError."""
        values = list(self._chosen())
        if type(category_id) is not int or not 0 <= category_id < len(values):
            raise MRMFetchDataError(message(f"category_id {category_id!r:.40}", f"an int below {len(values)}"))
        return self._page(values[category_id], page, num_row)

    def read_at_page_by_name(self, category_name: str, page: int, num_row: int) -> list[dict[str, Any]]:
        """Returns page `page` of `num_row` rows whose value has this name. Raises ParamValueError, MRMFetchDataError."""
        values = [value for value in self._chosen() if str(value) == category_name]
        if not values:
            raise MRMFetchDataError(message(f"category_name {category_name!r:.40}", f"one of the values of {self._field}"))
        return self._page(values[0], page, num_row)

    def _chosen(self) -> dict[Any, list[int]]:
        if self._field is None:
            raise MRMReadCategoryInfoError(message("MindPage without category_field", f"one of {', '.join(self.candidate_fields)}"))
        return self._rows

    def _page(self, value: Any, page: Any, num_row: Any) -> list[dict[str, Any]]:
        if type(page) is not int or page < 0 or type(num_row) is not int or num_row < 1:
            raise ParamValueError(message(f"page {page!r:.40} of {num_row!r:.40} rows", "a page from 0 on, and at least one row"))
        numbers = self._rows[value][page * num_row : (page + 1) * num_row]
        return [self._shards.row(number, list(self._shards.header.schema)) for number in numbers]
