"""`Schema`: the columns of a file's rows, with their types and shapes."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base import json_text
from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.common import dtype as types
from torchspore.mindspore.dataset.core.validator_helpers import check_type

_LARGEST = 1 << 20
"""Maximum bytes of a schema file."""
NUMBERS = {
    name: np.dtype(name)
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
}
TYPES = (*NUMBERS, "string")


class Schema:
    """The columns of a dataset: read from a JSON file, from a dict or a list, or added one by one.

    A file has "columns" with a "type" and, if it is known, a "shape" (with -1 for variable lengths) for each, and may have "datasetType"
    and "numRows". Raises ValueError for a missing file and for invalid columns, TypeError for unknown types.
    """

    def __init__(self, schema_file: str | Path | None = None) -> None:
        self.columns: dict[str, dict[str, Any]] = {}
        self.dataset_type: str | None = None
        self.num_rows: int | None = None
        self.schema_file = schema_file
        if schema_file is not None:
            check_type("Schema", "schema_file", schema_file, (str, Path), "a path")
            self.from_json(_read(Path(schema_file).expanduser()))

    def add_column(self, name: str, de_type: Any, shape: list[int] | None = None) -> None:
        """Adds a column: a dtype or its name, and the shape, None if unknown. Raises TypeError, ValueError."""
        check_type("Schema.add_column", "name", name, str, "a str")
        if not name:
            raise ValueError(message("Schema.add_column('')", "a name"))
        column: dict[str, Any] = {"name": name, "type": _type_name(name, de_type)}
        if shape is not None:
            if not isinstance(shape, (list, tuple)) or not all(type(n) is int and n >= -1 for n in shape):
                raise ValueError(message(f"Schema: column {name!r} of shape {short(shape)}", "a list of lengths, -1 where they differ"))
            column["shape"] = list(shape)
        column["rank"] = len(shape) if shape is not None else 1
        self.columns[name] = column

    def parse_columns(self, columns: Any) -> None:
        """Adds columns from {name: {'type', 'shape'}} or [{'name', 'type', 'shape'}]. Raises TypeError, ValueError."""
        if isinstance(columns, dict):
            columns = [
                {"name": name, **(description if isinstance(description, dict) else {"type": description})}
                for name, description in sorted(columns.items())
            ]
        if not isinstance(columns, list):
            raise TypeError(message(f"Schema.parse_columns({short(columns)})", f"a dict or a list, got {type(columns).__name__}"))
        for column in columns:
            if not isinstance(column, dict) or "name" not in column or "type" not in column:
                raise ValueError(message(f"Schema: column {short(column)}", "a dict with 'name' and 'type'"))
            unknown = sorted(set(column) - {"name", "type", "shape", "rank"})
            if unknown:
                raise ValueError(message(f"Schema: column {column['name']!r} with {unknown}", "'type', 'shape' and 'rank' only"))
            self.add_column(column["name"], column["type"], [] if column.get("rank") == 0 else column.get("shape"))

    def from_json(self, json_obj: Any) -> None:
        """Replaces the schema by a dict with the content of a schema file. Raises TypeError, ValueError."""
        if not isinstance(json_obj, dict) or "columns" not in json_obj:
            raise ValueError(message(f"Schema.from_json({short(json_obj)})", "a dict with 'columns'"))
        rows = json_obj.get("numRows")
        if rows is not None and (type(rows) is not int or rows < 0):
            raise ValueError(message(f"Schema: numRows {short(rows)}", "an int from 0"))
        self.columns = {}
        self.parse_columns(json_obj["columns"])
        self.dataset_type, self.num_rows = json_obj.get("datasetType"), rows

    def to_json(self) -> str:
        """Returns the schema as the text of a schema file."""
        content: dict[str, Any] = {"columns": [dict(sorted(column.items())) for column in self.columns.values()]}
        if self.dataset_type is not None:
            content["datasetType"] = self.dataset_type
        if self.num_rows is not None:
            content["numRows"] = self.num_rows
        return json.dumps(content, indent=2)

    def get_num_rows(self) -> int:
        """Returns the number of rows in the schema; 0 if it has none."""
        return self.num_rows or 0

    def __str__(self) -> str:
        return self.to_json()



def as_schema(call: str, schema: Any) -> Schema:
    """Return a Schema, or the one in the file of this path. Raises TypeError for anything else."""
    check_type(call, "schema", schema, (str, Path, Schema), "a Schema or the path of a file of one")
    return schema if isinstance(schema, Schema) else Schema(schema)

def _type_name(column: str, de_type: Any) -> str:
    name = de_type if isinstance(de_type, str) else str(de_type).lower().rpartition(".")[2].rstrip("_")
    if name not in TYPES or not isinstance(de_type, (str, types.Type)):
        raise TypeError(message(f"Schema: column {column!r} of type {short(de_type)}", list_choices(TYPES)))
    return name


def _read(path: Path) -> Any:
    if not path.is_file():
        raise ValueError(message(f"Schema({str(path)!r})", "a file that exists"))
    if path.stat().st_size > _LARGEST:
        raise ValueError(message(f"Schema({str(path)!r}) of {path.stat().st_size} bytes", "a JSON file of a megabyte at most"))
    try:
        return json_text.parse(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(message(f"Schema({str(path)!r}): {error}", "a JSON file")) from None
