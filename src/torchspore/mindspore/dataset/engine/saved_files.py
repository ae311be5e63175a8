"""`Dataset.save`: the rows of a pipeline as MindRecord or TFRecord files."""
from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from torchspore.base.arguments import check_int_type
from torchspore.base.files import atomic_file
from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.dataset.core.validator_helpers import check_type
from torchspore.mindspore.dataset.engine.failures import PipelineError
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.mindspore.mindrecord import tfrecord

_MAX_FILES = 1000
_ROWS = 512
_TYPES = {
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16", "int32"), "int32"),
    **dict.fromkeys(("uint32", "int64", "uint64"), "int64"), "float16": "float32", "float32": "float32", "float64": "float64",
}
"""The MindRecord type that stores a dtype, as in MindSpore."""


def save(dataset: Any, file_name: Any, num_files: Any, file_type: Any) -> None:
    """Write all rows of one epoch alternately to `num_files` files. See `Dataset.save`."""
    check_type("save", "file_name", file_name, str, "a path")
    check_int_type("save", "num_files", num_files)
    if not 1 <= num_files <= _MAX_FILES:
        raise ValueError(message(f"save(num_files={num_files})", f"a number from 1 to {_MAX_FILES}"))
    writers = {"mindrecord": _to_mindrecord, "tfrecord": _to_tfrecord}
    if file_type not in writers:
        raise ValueError(message(f"save(file_type={short(file_type)})", list_choices(writers)))
    rows = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
    try:
        writers[file_type](file_name, num_files, dataset.get_col_names(), rows)
    finally:
        rows.stop()


def _chunks(rows: Iterator[Row], files: int) -> Iterator[list[Row]]:
    size = _ROWS * files
    chunk = list(islice(rows, size))
    while chunk:
        yield chunk
        chunk = list(islice(rows, size)) if len(chunk) == size else []


def _to_mindrecord(name: str, files: int, columns: list[str], rows: Iterator[Row]) -> None:
    from torchspore.mindspore.mindrecord import FileWriter

    writer, schema = FileWriter(name, files), None
    try:
        for chunk in _chunks(rows, files):
            if schema is None:
                schema = {column: _field(column, value) for column, value in zip(columns, chunk[0])}
                writer.add_schema(schema, "saved by mindspore.dataset")
            interleaved = [row for number in range(files) for row in chunk[number::files]]
            writer.write_raw_data([{column: _value(value) for column, value in zip(columns, row)} for row in interleaved])
        if schema is None:
            raise PipelineError(message(f"save({name!r}) of no rows", "a pipeline with rows"))
        writer.commit()
    except BaseException:
        writer._discard()
        raise


def _field(column: str, value: np.ndarray) -> dict[str, Any]:
    """Return a column's schema: the type, and the shape with an unknown first length (-1)."""
    if value.dtype.kind in "SU":
        if value.ndim:
            raise PipelineError(message(f"save: column {column!r} of text and shape {list(value.shape)}", "one text a row"))
        return {"type": "string" if value.dtype.kind == "U" else "bytes"}
    if value.dtype.name not in _TYPES:
        raise PipelineError(message(f"save: column {column!r} of {value.dtype}", list_choices(_TYPES)))
    kind: dict[str, Any] = {"type": _TYPES[value.dtype.name]}
    return {**kind, "shape": [-1, *value.shape[1:]]} if value.ndim else kind


def _value(value: np.ndarray) -> Any:
    """Convert a value for FileWriter."""
    if value.dtype.kind in "SU":
        return value.item()
    converted = value.astype(_TYPES[value.dtype.name])
    return converted if value.ndim else converted.item()


def _to_tfrecord(name: str, files: int, columns: list[str], rows: Iterator[Row]) -> None:
    from torchspore.mindspore.mindrecord.shards import paths_of

    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(atomic_file(path)) for path in paths_of(name, files)]
        for file, row in zip(itertools.cycle(opened), rows):
            file.write(tfrecord.record(dict(zip(columns, row))))
