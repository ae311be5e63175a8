"""Writing of rows into MindRecord files."""
from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from torchspore.base.files import atomic_file
from torchspore.base.text import message
from torchspore.mindspore import log
from torchspore.mindspore.mindrecord import config, encrypted_files, index, layout
from torchspore.mindspore.mindrecord.exceptions import MRMAddSchemaError, MRMDefineIndexError, ParamTypeError, ParamValueError
from torchspore.mindspore.mindrecord.layout import (
    LENGTH,
    LONGEST_HEADER,
    LONGEST_PAGE,
    NUMBERS,
    SHORTEST_HEADER,
    SHORTEST_PAGE,
    Header,
    Schema,
    check_schema,
    encode,
    header_to_bytes,
    is_blob,
)
from torchspore.mindspore.mindrecord.shards import Shard, Shards, all_shards, paths_of

_MOST_SHARDS = 1000


class _Discarded(Exception):
    """Discard the files that are being written."""


class FileWriter:
    """Writes rows into `shard_num` MindRecord files, `file_name` or `file_name0`, `file_name1`, ..., each with its index `.db`.

    `commit` creates the complete files; before it, and after an error, existing files stay unchanged. Raises ParamTypeError and
    ParamValueError for wrong arguments, RuntimeError if a file exists already and `overwrite` is False.
    """

    def __init__(self, file_name: str, shard_num: int = 1, overwrite: bool = False) -> None:
        if not isinstance(file_name, (str, Path)):
            raise ParamTypeError(message(f"FileWriter(file_name={file_name!r:.60})", f"a path, got {type(file_name).__name__}"))
        if type(shard_num) is not int or not 1 <= shard_num <= _MOST_SHARDS:
            raise ParamValueError(message(f"FileWriter(shard_num={shard_num!r:.40})", f"an int from 1 to {_MOST_SHARDS}"))
        if not isinstance(overwrite, bool):
            raise ParamTypeError(message(f"FileWriter(overwrite={overwrite!r:.40})", f"a bool, got {type(overwrite).__name__}"))
        self._paths = paths_of(file_name, shard_num)
        self._overwrite, self._process = overwrite, os.getpid()
        self._header = Header({})
        self._fields: list[str] | None = None
        self._files = contextlib.ExitStack()
        self._shards: list[_ShardWriter] = []
        self._targets: list[BinaryIO] = []
        self._old: Shards | None = None

    @classmethod
    def open_for_append(cls, file_name: str) -> FileWriter:
        """Returns a writer that appends rows to existing files, the full set of `file_name`. Raises FileNotFoundError."""
        paths = all_shards(Path(file_name).expanduser())
        old = Shards(paths)
        writer = cls(file_name, 1, True)
        writer._paths, writer._old, writer._header, writer._fields = paths, old, old.header, old.header.index_fields
        return writer

    def add_schema(self, content: Schema, desc: str | None = None) -> int:
        """Sets the fields of rows: a name, a 'type' (int32, int64, float32, float64, string, bytes) and for arrays a 'shape'.

        Returns the schema's number, 0. Raises MRMInvalidSchemaError (a ValueError), MRMAddSchemaError if there is one already.
        """
        if self._header.schema:
            raise MRMAddSchemaError(message("add_schema", "to be called once; the writer has a schema"))
        if desc is not None and not isinstance(desc, str):
            raise ParamTypeError(message(f"add_schema(desc={desc!r:.40})", "a str"))
        self._header = Header(check_schema(content), desc or "", [], [], 0, [], self._header.header_size, self._header.page_size)
        return 0

    def add_index(self, index_fields: list[str]) -> None:
        """Selects the index fields for `MindPage`; by default all numbers and texts. Raises MRMDefineIndexError."""
        if not isinstance(index_fields, list):
            raise ParamTypeError(message(f"add_index({index_fields!r:.60})", "a list of names"))
        for name in index_fields:
            if name not in self._header.schema or is_blob(self._header.schema[name]):
                plain = [field for field, kind in self._header.schema.items() if not is_blob(kind)]
                expected = f"fields with a number or a text: {', '.join(plain) or 'none here'}"
                raise MRMDefineIndexError(message(f"add_index: {name!r:.60}", expected))
        self._fields = list(index_fields)

    def set_header_size(self, header_size: int) -> None:
        """Sets the maximum bytes of a header, from 16 KiB to 128 MiB in steps of 4 bytes; before the first row."""
        self._before_rows("set_header_size", header_size, SHORTEST_HEADER, LONGEST_HEADER)
        self._header.header_size = header_size

    def set_page_size(self, page_size: int) -> None:
        """Sets the bytes of a page, the limit of a row, from 32 KiB to 256 MiB in steps of 4 bytes; before the first row."""
        self._before_rows("set_page_size", page_size, SHORTEST_PAGE, LONGEST_PAGE)
        self._header.page_size = page_size

    def _before_rows(self, call: str, size: Any, minimum: int, maximum: int) -> None:
        if self._shards or self._old is not None:
            raise RuntimeError(message(call, "to be called before the first row is written"))
        if type(size) is not int or not minimum <= size <= maximum or size % 4:
            raise ParamValueError(message(f"{call}({size!r:.40})", f"a multiple of 4 from {minimum} to {maximum}"))

    def open_and_set_header(self) -> int:
        """Opens the files and fixes schema and sizes, as in MindSpore 0.2 to 2.0; later releases open them at the first row. Returns 0."""
        self._open()
        return 0

    def write_raw_data(self, raw_data: list[dict[str, Any]], parallel_writer: bool = False) -> None:
        """Writes rows, dicts with a value for each field; each file gets an equal part of them, in order.

        A row that does not fit the schema is skipped, with a warning that names the reason; fields that the schema lacks are dropped.
        `parallel_writer` changes nothing: one process writes. Raises ParamTypeError for anything but rows, RuntimeError if none fits,
        ParamValueError for one that exceeds a page.
        """
        if not isinstance(raw_data, list) or not all(isinstance(row, dict) for row in raw_data):
            raise ParamTypeError(message(f"write_raw_data({raw_data!r:.60})", "a list of dicts"))
        if not isinstance(parallel_writer, bool):
            raise ParamTypeError(message(f"write_raw_data(parallel_writer={parallel_writer!r:.40})", "a bool"))
        rows = [row for number, row in enumerate(raw_data) if self._fits(number, row)]
        if not rows:
            expected = "at least one that fits the schema; the warnings name the reasons"
            raise RuntimeError(message(f"write_raw_data of {len(raw_data)} rows", expected))
        self._open()
        count, remainder = divmod(len(rows), len(self._shards))
        start = 0
        with self._all_or_nothing():
            for number, shard in enumerate(self._shards):
                end = start + count + (number < remainder)
                for row in rows[start:end]:
                    shard.add(row)
                start = end

    def commit(self) -> None:
        """Completes the files and renames them to their final names. Raises OSError."""
        self._open()
        with self._all_or_nothing():
            for shard, target in zip(self._shards, self._targets, strict=True):
                shard.finish(target)
            for shard in self._shards:
                self._files.enter_context(shard.index())
            self._files.close()

    def _discard(self) -> None:
        """Discard the written files and leave existing files unchanged."""
        with contextlib.suppress(_Discarded, OSError):         # errors of a full disk do not matter here
            self._files.__exit__(_Discarded, _Discarded(), None)

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = error.filename or str(self._paths[0])
            self._discard()
            raise

    def _fits(self, number: int, row: dict[str, Any]) -> bool:
        for name, kind in self._header.schema.items():
            reason = f"no {name!r}" if name not in row else _misfit(kind, row[name])
            if reason:
                log.warning(f"write_raw_data: row {number} is left out: {reason if name not in row else f'{name!r} is {reason}'}.")
                return False
        return bool(self._header.schema)

    def _open(self) -> None:
        if self._shards:
            return
        if os.getpid() != self._process:
            raise RuntimeError(message("FileWriter in another process", "one writer for each process, with a separate file"))
        present = [str(path) for path in self._paths if path.exists()]
        if present and not self._overwrite:
            raise RuntimeError(message(f"FileWriter: {present[0]} is there", "no such file", hint="overwrite=True replaces it"))
        key = config.current()[0]
        plain = [name for name, kind in self._header.schema.items() if not is_blob(kind)]
        fields = plain if self._fields is None else self._fields
        names = [path.name for path in self._paths]
        for number, path in enumerate(self._paths):
            base = self._header
            pages = list(self._old.shards[number].header.pages) if self._old else []
            header = Header(base.schema, base.description, fields, names, number, pages, base.header_size, base.page_size, base.saved)
            target = self._files.enter_context(atomic_file(path))
            self._targets.append(target)
            # The plain content before encryption is written into a private folder.
            file = target if key is None else self._files.enter_context(tempfile.TemporaryFile(dir=path.parent))  # noqa: SIM115
            self._shards.append(_ShardWriter(path, header, file, self._old.shards[number] if self._old else None))


def _misfit(kind: dict[str, Any], value: Any) -> str:
    """Return the reason why a value does not fit a field, or ''."""
    type_name = kind["type"]
    if "shape" in kind:
        if not isinstance(value, np.ndarray) or value.dtype != NUMBERS[type_name]:
            return f"no array of {type_name}: {_shown(value)}"
        fixed_lengths = [length for length in kind["shape"] if length != -1]
        fits = value.size % int(np.prod(fixed_lengths)) == 0 if -1 in kind["shape"] else value.size == int(np.prod(fixed_lengths))
        return "" if fits else f"of shape {value.shape}, which does not fit {kind['shape']}"
    if type_name in ("string", "bytes"):
        return "" if isinstance(value, str if type_name == "string" else bytes) else f"no {type_name}: {_shown(value)}"
    if isinstance(value, bool) or not isinstance(value, (int if type_name.startswith("int") else float, NUMBERS[type_name])):
        return f"no {type_name}: {_shown(value)}"
    bits = {"int32": 31, "int64": 63}.get(type_name)
    return f"beyond {type_name}: {value}" if bits and not -(1 << bits) <= value < 1 << bits else ""


def _shown(value: Any) -> str:
    return f"array of {value.dtype}" if isinstance(value, np.ndarray) else f"{value!r:.40} of type {type(value).__name__}"


class _ShardWriter:
    """One file: its pages, and the position of each row."""

    def __init__(self, path: Path, header: Header, file: BinaryIO, old: Shard | None) -> None:
        self.path, self.header, self._file = path, header, file
        self._blobs = header.blobs
        self._open: dict[str, dict[str, Any]] = {}
        self._positions: list[tuple[int, ...]] = []
        self._values: list[tuple[Any, ...]] = []
        if old is not None:
            self._take_over(old)

    def _take_over(self, old: Shard) -> None:
        """Start with the pages and rows of an existing file."""
        with old.file.open("rb") as source:
            shutil.copyfileobj(source, self._file)
        self._positions = [tuple(map(int, position)) for position in old.positions]
        self._values = list(zip(*(index.read_values(old.file, name) for name in self.header.index_fields), strict=True)) or [()] * len(old)
        for page in self.header.pages:
            self._open[page["page_type"]] = page

    def add(self, row: dict[str, Any]) -> None:
        """Write a row."""
        raw, blob, saved = encode(self.header.schema, self._blobs, row)
        self.header.saved += saved
        blob_page, blob_start = self._put("BLOB_DATA", blob)
        raw_page, raw_start = self._put("RAW_DATA", raw)
        number, group = len(self._positions), blob_page["page_type_id"]
        blob_page["end_row_id"] = number + 1
        if raw_page["row_group_ids"][-1]["id"] != group:
            raw_page["row_group_ids"].append({"id": group, "offset": raw_start})
        self._positions.append((
            number, raw_page["page_id"], raw_start, raw_page["page_size"], group, blob_page["page_id"], blob_start, blob_page["page_size"],
        ))
        self._values.append(tuple(layout.plain(row[name]) for name in self.header.index_fields))

    def _put(self, kind: str, content: bytes) -> tuple[dict[str, Any], int]:
        """Write a part of a row into the open page of its kind, or a new one; returns the page and the part's offset in it."""
        size = LENGTH + len(content)
        if size > self.header.page_size:
            raise ParamValueError(message(
                f"a row of {size} bytes", f"at most {self.header.page_size}, the bytes of a page", hint="set_page_size takes up to 256 MiB"
            ))
        page = self._open.get(kind)
        if page is None or page["page_size"] + size > self.header.page_size:
            page = self._new_page(kind, page)
        start = page["page_size"]
        self._file.seek(self.header.page_offset(page["page_id"]) + start)
        self._file.write(len(content).to_bytes(LENGTH, "little") + content)
        page["page_size"] += size
        return page, start

    def _new_page(self, kind: str, before: dict[str, Any] | None) -> dict[str, Any]:
        number = len(self._positions) if kind == "BLOB_DATA" else 0
        group = 0 if kind == "BLOB_DATA" else self._open["BLOB_DATA"]["page_type_id"]
        page = {
            "end_row_id": number, "page_id": len(self.header.pages), "page_size": 0, "page_type": kind,
            "page_type_id": 0 if before is None else before["page_type_id"] + 1, "row_group_ids": [{"id": group, "offset": 0}],
            "shard_id": self.header.shard, "start_row_id": number,
        }
        self.header.pages.append(page)
        self._open[kind] = page
        return page

    def finish(self, target: BinaryIO) -> None:
        """Write the header, and the encrypted file into `target` if it is another path. Raises ParamValueError for a too long header."""
        text = header_to_bytes(self.header)
        if len(text) > self.header.header_size:
            expected = f"at most {self.header.header_size}"
            raise ParamValueError(message(f"a header of {len(text)} bytes", expected, hint="call set_header_size"))
        self._file.seek(0)
        self._file.write(text)
        ends = [self.header.page_offset(page["page_id"]) + page["page_size"] for page in self.header.pages]
        size = self._file.truncate(max(ends, default=self.header.header_size))
        self._sealed = target is not self._file
        if self._sealed:
            encrypted_files.seal(self._file, size, target)

    @contextlib.contextmanager
    def index(self) -> Iterator[None]:
        """Create the index, then move it next to the file, replacing an existing one."""
        target = index.path_of(self.path)
        with tempfile.TemporaryDirectory(dir=self.path.parent, prefix=f".{self.path.name}.") as folder:
            index_path = Path(folder) / target.name
            index.write(index_path, self.path.name, self.header.schema, self.header.index_fields, self._positions, self._values)
            if self._sealed:
                plain, index_path = index_path, index_path.with_suffix(".sealed")
                with plain.open("rb") as source, index_path.open("xb") as out:
                    encrypted_files.seal(source, plain.stat().st_size, out)
            yield
            os.replace(index_path, target)
