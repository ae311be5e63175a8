"""The layout of a MindRecord file, version 3.0, as MindSpore 2.10 writes it.

A file: 8 bytes of length (little-endian) and a JSON header, in `header_size` bytes; then pages of `page_size` bytes. A page has consecutive
rows of one kind, each after its length in 8 bytes: RAW_DATA has MessagePack maps of the numbers and texts, BLOB_DATA has bytes and arrays;
with more than one field, each follows its length in 8 bytes, big-endian. `NAME.db` next to the file is an SQLite index with the page and
the position of each row.
"""
from __future__ import annotations

import enum
import json
import re
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np

from torchspore.base import json_text
from torchspore.base.text import short
from torchspore.errors import FileFormatError
from torchspore.mindspore.mindrecord.exceptions import MRMInvalidSchemaError
from torchspore.mindspore.mindrecord.integers import pack, unpack

VERSION = "3.0"
HEADER_SIZE, PAGE_SIZE = 1 << 24, 1 << 25
SHORTEST_HEADER, LONGEST_HEADER = 1 << 14, 1 << 27
SHORTEST_PAGE, LONGEST_PAGE = 1 << 15, 1 << 28
LENGTH = 8
"""Size of a length in bytes."""
NUMBERS = {"int32": np.int32, "int64": np.int64, "float32": np.float32, "float64": np.float64}
TYPES = (*NUMBERS, "string", "bytes")
Schema = dict[str, dict[str, Any]]


class MSRStatus(enum.Enum):
    """The return value of 1.x's writers."""

    SUCCESS = 0
    FAILED = 1


SUCCESS, FAILED = MSRStatus.SUCCESS, MSRStatus.FAILED


@dataclass
class Header:
    """The header of a file."""

    schema: Schema
    description: str = ""
    index_fields: list[str] = field(default_factory=list)
    shards: list[str] = field(default_factory=list)
    shard: int = 0
    pages: list[dict[str, Any]] = field(default_factory=list)
    header_size: int = HEADER_SIZE
    page_size: int = PAGE_SIZE
    saved: int = 0
    """Number of bytes that packing integers saved."""

    @property
    def blobs(self) -> list[str]:
        """Return the fields of bytes and arrays, in their order in a row."""
        return [name for name, kind in self.schema.items() if is_blob(kind)]

    def page_offset(self, page: int) -> int:
        """Return the position of a page in the file."""
        return self.header_size + page * self.page_size


def is_blob(kind: dict[str, Any]) -> bool:
    """Return whether a field is in the blob pages: bytes, or an array."""
    return kind["type"] == "bytes" or "shape" in kind


def check_schema(content: Any) -> Schema:
    """Return the schema with its fields sorted by name. Raises MRMInvalidSchemaError, which names the field."""
    if not isinstance(content, dict) or not content:
        raise MRMInvalidSchemaError(f"schema {short(content)}: expected a dict such as {{'label': {{'type': 'int32'}}}}.")
    for name, kind in content.items():
        _check_field(name, kind)
    return {name: dict(content[name]) for name in sorted(content)}


def _check_field(name: Any, kind: Any) -> None:
    if not isinstance(name, str) or not re.fullmatch("[0-9a-zA-Z_]+", name):
        raise MRMInvalidSchemaError(f"field {name!r:.60}: expected a name of letters, digits and underscores.")
    if not isinstance(kind, dict) or kind.get("type") not in TYPES:
        raise MRMInvalidSchemaError(f"field {name!r}: {kind!r:.60}: expected 'type' to be one of {', '.join(TYPES)}.")
    unknown = sorted(set(kind) - {"type", "shape"})
    if unknown:
        raise MRMInvalidSchemaError(f"field {name!r}: {unknown}: expected 'type' and 'shape' only.")
    if "shape" not in kind:
        return
    shape = kind["shape"]
    if kind["type"] not in NUMBERS:
        raise MRMInvalidSchemaError(f"field {name!r}: a shape with type {kind['type']!r}: only numbers have one.")
    lengths = isinstance(shape, list) and all(type(n) is int and (n == -1 or n > 0) for n in shape)
    if not lengths or shape.count(-1) > 1:
        raise MRMInvalidSchemaError(f"field {name!r}: shape {shape!r:.60}: expected a list of lengths, one of them -1 at most.")


def header_to_bytes(header: Header) -> bytes:
    """Return the header with its length; members are in MindSpore's order."""
    text = json.dumps({
        "header_size": header.header_size,
        "index_fields": [{"index_field": name, "schema_id": 0} for name in header.index_fields] or None,
        "page": header.pages,
        "page_size": header.page_size,
        "compression_size": header.saved,
        "schema": [{"blob_fields": header.blobs, "desc": header.description, "schema": header.schema}],
        "shard_addresses": header.shards,
        "shard_id": header.shard,
        "statistics": None,
        "version": VERSION,
    }, separators=(",", ":")).encode()
    return len(text).to_bytes(LENGTH, "little") + text


def header_from_bytes(text: bytes) -> Header:
    """Parse a header from JSON. Raises FileFormatError."""
    try:
        content = json_text.parse(text)
        (schema,) = content["schema"]
        header = Header(
            check_schema(schema["schema"]), str(schema["desc"]), [str(field["index_field"]) for field in content["index_fields"] or ()],
            [str(name) for name in content["shard_addresses"]], int(content["shard_id"]), list(content["page"]),
            int(content["header_size"]), int(content["page_size"]), int(content.get("compression_size", 0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"a header that is not MindRecord's: {type(error).__name__}: {error!s:.100}") from None
    if not SHORTEST_HEADER <= header.header_size <= LONGEST_HEADER or not SHORTEST_PAGE <= header.page_size <= LONGEST_PAGE:
        raise FileFormatError(f"a header of {header.header_size} and pages of {header.page_size} bytes")
    if list(schema.get("blob_fields", ())) != header.blobs:
        raise FileFormatError(f"blob fields {schema.get('blob_fields')} of a schema with {header.blobs}")
    return header


def encode(schema: Schema, blobs: list[str], row: dict[str, Any]) -> tuple[bytes, bytes, int]:
    """Return (the raw part, the blob part, bytes that packing saved) of a row that fits the schema."""
    numbers = {name: plain(row[name]) for name in schema if name not in blobs}
    parts, saved = [], 0
    for name in blobs:
        content = _content(schema[name], row[name])
        saved += row[name].nbytes - len(content) if schema[name]["type"] in ("int32", "int64") else 0
        parts.append(content)
    if len(parts) != 1:
        parts = [len(part).to_bytes(LENGTH, "big") + part for part in parts]
    return msgpack.packb(numbers or {"id": 0}), b"".join(parts) if blobs else bytes(4), saved


def plain(value: Any) -> Any:
    """Convert a NumPy number to Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _content(kind: dict[str, Any], value: Any) -> bytes:
    if kind["type"] == "bytes":
        return bytes(value)
    return pack(value) if kind["type"] in ("int32", "int64") else np.ascontiguousarray(value).tobytes()


def decode_raw(content: bytes) -> dict[str, Any]:
    """Return the numbers and texts of a row. Raises ValueError unless it is a map."""
    values = msgpack.unpackb(content, strict_map_key=False)
    if not isinstance(values, dict):
        raise ValueError(f"a row of {type(values).__name__}")
    return values


def decode_blobs(schema: Schema, blobs: list[str], content: bytes, names: list[str]) -> dict[str, Any]:
    """Return the selected bytes and arrays of a row. Raises ValueError if the lengths do not match."""
    if len(blobs) == 1:
        return {name: _value(schema[name], content) for name in blobs if name in names}
    values, position = {}, 0
    for name in blobs:
        length = int.from_bytes(content[position : position + LENGTH], "big")
        position += LENGTH
        if position + length > len(content):
            raise ValueError(f"{name} of {length} bytes in a row of {len(content)}")
        if name in names:
            values[name] = _value(schema[name], content[position : position + length])
        position += length
    return values


def _value(kind: dict[str, Any], content: bytes) -> Any:
    if kind["type"] == "bytes":
        return content
    number = NUMBERS[kind["type"]]
    flat = unpack(content).astype(number) if issubclass(number, np.integer) else np.frombuffer(content, number)
    return flat.reshape(kind["shape"])
