"""Helpers that read the files of MindRecord and of CSV."""
from __future__ import annotations

import csv
import json
import os
import sqlite3
import struct
from collections.abc import Sequence
from contextlib import closing
from glob import glob
from typing import Any

import numpy as np
from torch.utils.data import Dataset


class CsvRows(Dataset[Any]):
    """The rows of CSV files: int32, float32 or text, after the type of each default. `has_names`: the first line has names."""

    def __init__(self, files: Any, defaults: Sequence[Any], delimiter: str = ",", has_names: bool = False) -> None:
        patterns = [files] if isinstance(files, (str, os.PathLike)) else files
        self.kinds = [np.int32 if isinstance(value, int) else np.float32 if isinstance(value, float) else np.str_ for value in defaults]
        self.rows: list[list[str]] = []
        for path in sorted(path for pattern in patterns for path in glob(str(pattern))):
            with open(path, newline="", encoding="utf-8") as file:
                lines = [line for line in csv.reader(file, delimiter=delimiter) if line]
            self.rows += lines[1:] if has_names else lines

    def __getitem__(self, index: int) -> Any:
        return tuple(np.array(kind(value)) for kind, value in zip(self.kinds, self.rows[index]))

    def __len__(self) -> int:
        return len(self.rows)


class MindRecord(Dataset[Any]):
    """The rows of MindRecord files, which are beside their indexes (FILE.db); one file means all of its set."""

    def __init__(self, files: Any, columns: Sequence[str] | None = None) -> None:
        first = os.path.expanduser(files if isinstance(files, (str, os.PathLike)) else files[0])
        self.header = self.header_of(first)
        self.schema = self.header["schema"][0]["schema"]
        self.blobs = self.header["schema"][0]["blob_fields"]
        names = [os.path.basename(name) for name in self.header["shard_addresses"]]
        is_set = isinstance(files, (str, os.PathLike)) and os.path.basename(first) in names
        self.paths = [os.path.join(os.path.dirname(first), name) for name in names] if is_set else [first, *list(files)[1:]]
        self.columns = list(columns or self.schema)
        fields = "PAGE_ID_RAW, PAGE_OFFSET_RAW, PAGE_OFFSET_RAW_END, PAGE_ID_BLOB, PAGE_OFFSET_BLOB, PAGE_OFFSET_BLOB_END"
        self.rows: list[tuple[Any, ...]] = []
        for path in self.paths:
            with closing(sqlite3.connect(f"{path}.db")) as index:
                self.rows += [(path, *row) for row in index.execute(f"SELECT {fields} FROM INDEXES ORDER BY ROW_ID")]

    @staticmethod
    def header_of(path: str) -> Any:
        """Return the header of a file."""
        with open(path, "rb") as file:
            return json.loads(file.read(int.from_bytes(file.read(8), "little")))

    def read(self, path: str, page: int, begin: int, end: int) -> bytes:
        """Return a part of a row, without its length."""
        with open(path, "rb") as file:
            file.seek(self.header["header_size"] + page * self.header["page_size"] + begin + 8)
            return file.read(end - begin - 8)

    def __getitem__(self, index: int) -> Any:
        path, *position = self.rows[index]
        numbers, _ = unpacked_message(self.read(path, *position[:3]), 0)
        blobs = self.blobs_of(self.read(path, *position[3:])) if self.blobs else {}
        return tuple(self.array_of(name, blobs[name] if name in blobs else numbers[name]) for name in self.columns)

    def blobs_of(self, content: bytes) -> dict[str, bytes]:
        """Return the bytes of each field; several have their lengths before them."""
        if len(self.blobs) == 1:
            return {self.blobs[0]: content}
        parts, at = {}, 0
        for name in self.blobs:
            length = int.from_bytes(content[at : at + 8], "big")
            parts[name] = content[at + 8 : at + 8 + length]
            at += 8 + length
        return parts

    def array_of(self, name: str, value: Any) -> Any:
        """Return a value as an array."""
        kind = self.schema[name]["type"]
        if kind == "bytes":
            return np.frombuffer(value, f"S{len(value)}")
        if kind == "string":
            return np.array(value)
        if not isinstance(value, bytes):
            return np.array(value, kind)
        flat = unpacked_integers(value).astype(kind) if kind.startswith("int") else np.frombuffer(value, kind).copy()
        return flat.reshape(self.schema[name]["shape"])

    def __len__(self) -> int:
        return len(self.rows)


def unpacked_message(content: bytes, at: int) -> tuple[Any, int]:
    """The value of MessagePack at a position, and the position behind it: a map, a text or a number."""
    formats = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
    sizes = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDE: 2, 0xDF: 4}
    kind, at = content[at], at + 1
    if kind < 0x80 or kind >= 0xE0:
        return (kind if kind < 0x80 else kind - 256), at
    if kind in formats:
        return struct.unpack_from(formats[kind], content, at)[0], at + struct.calcsize(formats[kind])
    if kind in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[kind], at
    is_map = kind < 0x90 or kind in (0xDE, 0xDF)
    size = kind & (0x0F if is_map else 0x1F)
    if kind in sizes:
        size = int.from_bytes(content[at : at + sizes[kind]], "big")
        at += sizes[kind]
    if not is_map:
        return content[at : at + size].decode(), at + size
    values = {}
    for _ in range(size):
        key, at = unpacked_message(content, at)
        values[key], at = unpacked_message(content, at)
    return values, at


def unpacked_integers(content: bytes) -> Any:
    """MindRecord's integers of 1, 2, 4 or 8 bytes: their number, two bits for the size of each, the integers."""
    count = int.from_bytes(content[:4], "big")
    groups, at = content[4 : 4 - (-count // 4)], 4 - (-count // 4)
    values = np.zeros(count, np.int64)
    for number in range(count):
        size = 1 << (groups[number // 4] >> (6 - number % 4 * 2) & 3)
        values[number] = int.from_bytes(content[at : at + size], "little", signed=True)
        at += size
    return values
