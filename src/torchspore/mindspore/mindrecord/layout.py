"""What a MindRecord file looks like, version 3.0, as MindSpore 2.10 writes it.

A file: 8 bytes of length (little-endian) and a JSON header, in `header_size` bytes; then pages of `page_size` bytes. A page holds rows of
one kind behind each other, each with its length in 8 bytes: RAW_DATA has MessagePack maps of the numbers and texts, BLOB_DATA has bytes and
arrays, where there is more than one field each behind its length in 8 bytes, big-endian. Beside the file, `NAME.db` is an SQLite index
with the page and the place of each row.
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
"""Bytes of a length."""
NUMBERS = {"int32": np.int32, "int64": np.int64, "float32": np.float32, "float64": np.float64}
TYPES = (*NUMBERS, "string", "bytes")
Schema = dict[str, dict[str, Any]]


class MSRStatus(enum.Enum):
    """What writers of 1.x answered."""

    SUCCESS = 0
    FAILED = 1


SUCCESS, FAILED = MSRStatus.SUCCESS, MSRStatus.FAILED


@dataclass
class Header:
    """What the header of a file says."""

    schema: Schema
    description: str = ""
    index_fields: list[str] = field(default_factory=list)
    shards: list[str] = field(default_factory=list)
    shard: int = 0
    pages: list[dict[str, Any]] = field(default_factory=list)
    header_size: int = HEADER_SIZE
    page_size: int = PAGE_SIZE
    saved: int = 0
    """Bytes that packing integers saved."""

    @property
    def blobs(self) -> list[str]:
        """The fields of bytes and arrays, in the order in which they lie in a row."""
        return [name for name, kind in self.schema.items() if is_blob(kind)]

    def place(self, page: int) -> int:
        """Where a page begins in the file."""
        return self.header_size + page * self.page_size


def is_blob(kind: dict[str, Any]) -> bool:
    """Whether a field lies in the blob pages: bytes, or an array."""
    return kind["type"] == "bytes" or "shape" in kind


def check_schema(content: Any) -> Schema:
    """The schema with its fields in order of their names. Raises MRMInvalidSchemaError, which names the field."""
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
        raise MRMInvalidSchemaError(f"field {name!r}: a shape beside type {kind['type']!r}: only numbers have one.")
    lengths = isinstance(shape, list) and all(type(n) is int and (n == -1 or n > 0) for n in shape)
    if not lengths or shape.count(-1) > 1:
        raise MRMInvalidSchemaError(f"field {name!r}: shape {shape!r:.60}: expected a list of lengths, one of them -1 at most.")


def header_to_bytes(header: Header) -> bytes:
    """The header with its length; members in the order in which MindSpore has them."""
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
    """The header that a JSON text says. Raises FileFormatError."""
    try:
        found = json_text.parse(text)
        (schema,) = found["schema"]
        header = Header(
            check_schema(schema["schema"]), str(schema["desc"]), [str(one["index_field"]) for one in found["index_fields"] or ()],
            [str(name) for name in found["shard_addresses"]], int(found["shard_id"]), list(found["page"]),
            int(found["header_size"]), int(found["page_size"]), int(found.get("compression_size", 0)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"a header that is none of MindRecord's: {type(error).__name__}: {error!s:.100}") from None
    if not SHORTEST_HEADER <= header.header_size <= LONGEST_HEADER or not SHORTEST_PAGE <= header.page_size <= LONGEST_PAGE:
        raise FileFormatError(f"a header of {header.header_size} and pages of {header.page_size} bytes")
    if list(schema.get("blob_fields", ())) != header.blobs:
        raise FileFormatError(f"blob fields {schema.get('blob_fields')} of a schema with {header.blobs}")
    return header


def encode(schema: Schema, blobs: list[str], row: dict[str, Any]) -> tuple[bytes, bytes, int]:
    """(the raw part, the blob part, bytes that packing saved) of a row that fits the schema."""
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
    """A number as Python's, where it is NumPy's."""
    return value.item() if isinstance(value, np.generic) else value


def _content(kind: dict[str, Any], value: Any) -> bytes:
    if kind["type"] == "bytes":
        return bytes(value)
    return pack(value) if kind["type"] in ("int32", "int64") else np.ascontiguousarray(value).tobytes()


def decode_raw(content: bytes) -> dict[str, Any]:
    """The numbers and texts of a row. Raises ValueError for what is no map."""
    found = msgpack.unpackb(content, strict_map_key=False)
    if not isinstance(found, dict):
        raise ValueError(f"a row of {type(found).__name__}")
    return found


def decode_blobs(schema: Schema, blobs: list[str], content: bytes, wanted: list[str]) -> dict[str, Any]:
    """The bytes and arrays of a row, those that are wanted. Raises ValueError where the lengths do not fit."""
    if len(blobs) == 1:
        return {name: _value(schema[name], content) for name in blobs if name in wanted}
    found, place = {}, 0
    for name in blobs:
        length = int.from_bytes(content[place : place + LENGTH], "big")
        place += LENGTH
        if place + length > len(content):
            raise ValueError(f"{name} of {length} bytes in a row of {len(content)}")
        if name in wanted:
            found[name] = _value(schema[name], content[place : place + length])
        place += length
    return found


def _value(kind: dict[str, Any], content: bytes) -> Any:
    if kind["type"] == "bytes":
        return content
    number = NUMBERS[kind["type"]]
    flat = unpack(content).astype(number) if issubclass(number, np.integer) else np.frombuffer(content, number)
    return flat.reshape(kind["shape"])
