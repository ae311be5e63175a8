"""Rows into MindRecord files."""
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
from torchspore.mindspore.mindrecord import config, index, layout, sealing
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
    """Takes the files that are being written back."""


class FileWriter:
    """Writes rows into `shard_num` MindRecord files, `file_name` or `file_name0`, `file_name1`, ..., each with its index `.db`.

    The files are there after `commit`, whole; before it, and after an error, what was there before is. Raises ParamTypeError and
    ParamValueError for wrong arguments, RuntimeError where a file is there already and `overwrite` is False.
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
        """A writer that adds rows to files that are there, all of the set that `file_name` belongs to. Raises FileNotFoundError."""
        paths = all_shards(Path(file_name).expanduser())
        old = Shards(paths)
        writer = cls(file_name, 1, True)
        writer._paths, writer._old, writer._header, writer._fields = paths, old, old.header, old.header.index_fields
        return writer

    def add_schema(self, content: Schema, desc: str | None = None) -> int:
        """Says which fields rows have: a name, a 'type' (int32, int64, float32, float64, string, bytes) and for arrays a 'shape'.

        Gives the schema's number, 0. Raises MRMInvalidSchemaError (a ValueError), MRMAddSchemaError where there is one.
        """
        if self._header.schema:
            raise MRMAddSchemaError(message("add_schema", "to be called once; the writer has a schema"))
        if desc is not None and not isinstance(desc, str):
            raise ParamTypeError(message(f"add_schema(desc={desc!r:.40})", "a str"))
        self._header = Header(check_schema(content), desc or "", [], [], 0, [], self._header.header_size, self._header.page_size)
        return 0

    def add_index(self, index_fields: list[str]) -> None:
        """Names the fields by which rows can be found (`MindPage`); without it all numbers and texts are. Raises MRMDefineIndexError."""
        if not isinstance(index_fields, list):
            raise ParamTypeError(message(f"add_index({index_fields!r:.60})", "a list of names"))
        for name in index_fields:
            if name not in self._header.schema or is_blob(self._header.schema[name]):
                plain = [field for field, kind in self._header.schema.items() if not is_blob(kind)]
                wanted = f"fields that hold a number or a text: {', '.join(plain) or 'none here'}"
                raise MRMDefineIndexError(message(f"add_index: {name!r:.60}", wanted))
        self._fields = list(index_fields)

    def set_header_size(self, header_size: int) -> None:
        """The bytes that a header may have, from 16 KiB to 128 MiB in steps of 4 bytes; before the first row."""
        self._before_rows("set_header_size", header_size, SHORTEST_HEADER, LONGEST_HEADER)
        self._header.header_size = header_size

    def set_page_size(self, page_size: int) -> None:
        """The bytes of a page, which a row must fit into, from 32 KiB to 256 MiB in steps of 4 bytes; before the first row."""
        self._before_rows("set_page_size", page_size, SHORTEST_PAGE, LONGEST_PAGE)
        self._header.page_size = page_size

    def _before_rows(self, call: str, size: Any, least: int, most: int) -> None:
        if self._shards or self._old is not None:
            raise RuntimeError(message(call, "to be called before the first row is written"))
        if type(size) is not int or not least <= size <= most or size % 4:
            raise ParamValueError(message(f"{call}({size!r:.40})", f"a multiple of 4 from {least} to {most}"))

    def write_raw_data(self, raw_data: list[dict[str, Any]], parallel_writer: bool = False) -> None:
        """Writes rows, dicts with a value for each field; each file takes an equal part of them, in their order.

        A row that does not fit the schema is left out, with a warning that says why; what the schema lacks is left out of a row.
        `parallel_writer` changes nothing: one process writes. Raises ParamTypeError for what are no rows, RuntimeError where none fits,
        ParamValueError for one that no page can hold.
        """
        if not isinstance(raw_data, list) or not all(isinstance(row, dict) for row in raw_data):
            raise ParamTypeError(message(f"write_raw_data({raw_data!r:.60})", "a list of dicts"))
        if not isinstance(parallel_writer, bool):
            raise ParamTypeError(message(f"write_raw_data(parallel_writer={parallel_writer!r:.40})", "a bool"))
        rows = [row for number, row in enumerate(raw_data) if self._fits(number, row)]
        if not rows:
            wanted = "at least one that fits the schema; the warnings say why none does"
            raise RuntimeError(message(f"write_raw_data of {len(raw_data)} rows", wanted))
        self._open()
        count, rest = divmod(len(rows), len(self._shards))
        place = 0
        with self._whole_or_none():
            for number, shard in enumerate(self._shards):
                end = place + count + (number < rest)
                for row in rows[place:end]:
                    shard.add(row)
                place = end

    def commit(self) -> None:
        """Makes the files whole and gives them their names. Raises OSError."""
        self._open()
        with self._whole_or_none():
            for shard, target in zip(self._shards, self._targets, strict=True):
                shard.finish(target)
            for shard in self._shards:
                self._files.enter_context(shard.index())
            self._files.close()

    def _discard(self) -> None:
        """Leaves what was there before: nothing that was written gets its name."""
        with contextlib.suppress(_Discarded, OSError):         # what a full disk did not take is not missed
            self._files.__exit__(_Discarded, _Discarded(), None)

    @contextlib.contextmanager
    def _whole_or_none(self) -> Iterator[None]:
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
            raise RuntimeError(message("FileWriter in another process than its own", "one writer for each process, with a file of its own"))
        present = [str(path) for path in self._paths if path.exists()]
        if present and not self._overwrite:
            raise RuntimeError(message(f"FileWriter: {present[0]} is there", "no such file", hint="overwrite=True replaces it"))
        key = config.current()[0]
        plain = [name for name, kind in self._header.schema.items() if not is_blob(kind)]
        fields = plain if self._fields is None else self._fields
        names = [path.name for path in self._paths]
        for number, path in enumerate(self._paths):
            one = self._header
            pages = list(self._old.shards[number].header.pages) if self._old else []
            header = Header(one.schema, one.description, fields, names, number, pages, one.header_size, one.page_size, one.saved)
            target = self._files.enter_context(atomic_file(path))
            self._targets.append(target)
            # What will be encrypted is first written where nobody sees it.
            file = target if key is None else self._files.enter_context(tempfile.TemporaryFile(dir=path.parent))  # noqa: SIM115
            self._shards.append(_ShardWriter(path, header, file, self._old.shards[number] if self._old else None))


def _misfit(kind: dict[str, Any], value: Any) -> str:
    """Why a value does not fit a field, or ''."""
    wanted = kind["type"]
    if "shape" in kind:
        if not isinstance(value, np.ndarray) or value.dtype != NUMBERS[wanted]:
            return f"no array of {wanted}: {_shown(value)}"
        known = [length for length in kind["shape"] if length != -1]
        fits = value.size % int(np.prod(known)) == 0 if -1 in kind["shape"] else value.size == int(np.prod(known))
        return "" if fits else f"of shape {value.shape}, which does not fit {kind['shape']}"
    if wanted in ("string", "bytes"):
        return "" if isinstance(value, str if wanted == "string" else bytes) else f"no {wanted}: {_shown(value)}"
    if isinstance(value, bool) or not isinstance(value, (int if wanted.startswith("int") else float, NUMBERS[wanted])):
        return f"no {wanted}: {_shown(value)}"
    bits = {"int32": 31, "int64": 63}.get(wanted)
    return f"beyond {wanted}: {value}" if bits and not -(1 << bits) <= value < 1 << bits else ""


def _shown(value: Any) -> str:
    return f"array of {value.dtype}" if isinstance(value, np.ndarray) else f"{value!r:.40} of type {type(value).__name__}"


class _ShardWriter:
    """One file: its pages, and where each row came to lie."""

    def __init__(self, path: Path, header: Header, file: BinaryIO, old: Shard | None) -> None:
        self.path, self.header, self._file = path, header, file
        self._blobs = header.blobs
        self._open: dict[str, dict[str, Any]] = {}
        self._places: list[tuple[int, ...]] = []
        self._values: list[tuple[Any, ...]] = []
        if old is not None:
            self._take_over(old)

    def _take_over(self, old: Shard) -> None:
        """Begins with the pages and rows of a file that is there."""
        with old.file.open("rb") as source:
            shutil.copyfileobj(source, self._file)
        self._places = [tuple(map(int, place)) for place in old.places]
        self._values = list(zip(*(index.read_values(old.file, name) for name in self.header.index_fields), strict=True)) or [()] * len(old)
        for page in self.header.pages:
            self._open[page["page_type"]] = page

    def add(self, row: dict[str, Any]) -> None:
        """Writes a row."""
        raw, blob, saved = encode(self.header.schema, self._blobs, row)
        self.header.saved += saved
        blob_page, blob_start = self._put("BLOB_DATA", blob)
        raw_page, raw_start = self._put("RAW_DATA", raw)
        number, group = len(self._places), blob_page["page_type_id"]
        blob_page["end_row_id"] = number + 1
        if raw_page["row_group_ids"][-1]["id"] != group:
            raw_page["row_group_ids"].append({"id": group, "offset": raw_start})
        self._places.append((
            number, raw_page["page_id"], raw_start, raw_page["page_size"], group, blob_page["page_id"], blob_start, blob_page["page_size"],
        ))
        self._values.append(tuple(layout.plain(row[name]) for name in self.header.index_fields))

    def _put(self, kind: str, content: bytes) -> tuple[dict[str, Any], int]:
        """Writes a part of a row into the open page of its kind, or a new one; gives the page and where in it the part begins."""
        size = LENGTH + len(content)
        if size > self.header.page_size:
            raise ParamValueError(message(
                f"a row of {size} bytes", f"at most {self.header.page_size}, the bytes of a page", hint="set_page_size takes up to 256 MiB"
            ))
        page = self._open.get(kind)
        if page is None or page["page_size"] + size > self.header.page_size:
            page = self._new_page(kind, page)
        start = page["page_size"]
        self._file.seek(self.header.place(page["page_id"]) + start)
        self._file.write(len(content).to_bytes(LENGTH, "little") + content)
        page["page_size"] += size
        return page, start

    def _new_page(self, kind: str, before: dict[str, Any] | None) -> dict[str, Any]:
        number = len(self._places) if kind == "BLOB_DATA" else 0
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
        """Writes the header, and into `target` the encrypted file where it is another. Raises ParamValueError where it is too long."""
        text = header_to_bytes(self.header)
        if len(text) > self.header.header_size:
            wanted = f"at most {self.header.header_size}"
            raise ParamValueError(message(f"a header of {len(text)} bytes", wanted, hint="call set_header_size"))
        self._file.seek(0)
        self._file.write(text)
        ends = [self.header.place(page["page_id"]) + page["page_size"] for page in self.header.pages]
        size = self._file.truncate(max(ends, default=self.header.header_size))
        self._sealed = target is not self._file
        if self._sealed:
            sealing.seal(self._file, size, target)

    @contextlib.contextmanager
    def index(self) -> Iterator[None]:
        """Makes the index, and at the end puts it beside the file, in the place of the one that was there."""
        target = index.path_of(self.path)
        with tempfile.TemporaryDirectory(dir=self.path.parent, prefix=f".{self.path.name}.") as folder:
            made = Path(folder) / target.name
            index.write(made, self.path.name, self.header.schema, self.header.index_fields, self._places, self._values)
            if self._sealed:
                plain, made = made, made.with_suffix(".sealed")
                with plain.open("rb") as source, made.open("xb") as out:
                    sealing.seal(source, plain.stat().st_size, out)
            yield
            os.replace(made, target)
