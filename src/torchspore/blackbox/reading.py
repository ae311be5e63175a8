"""Reads records back: what is damaged is named, what is whole is read; nothing in a file is run, and no file is read beyond a bound."""
from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from torchspore.base import json_text
from torchspore.blackbox import stacks, writing

_MOST = 1 << 23
"""Bytes that are read of one file."""
_NAMES, _WIDEST = 20000, 2000
_NAME = re.compile(r"([A-Z_]{1,40}\.[\w.-]{1,80}?)\.(\d{14})(?:_\d{1,6})?\.(ir|txt|json|safetensors)")
_STEERING = {
    number: chr(number).encode("unicode_escape").decode()
    for number in (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)) if chr(number) not in "\t\n"
}
"""Characters that steer a terminal, or turn the direction of the text."""


class NoRecord(Exception):
    """There is no record where one was looked for; the text is for the user."""


@dataclass
class Record:
    """One record: its files by the first two parts of their names."""

    folder: Path
    stamp: str
    files: dict[str, list[Path]] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        """The text of a file, with characters that steer a terminal made visible; empty where it is not there."""
        paths = self.files.get(name, [])
        return self._read(paths[0]) if paths else ""

    def json(self, name: str) -> dict[str, Any]:
        """The JSON object in a file; empty where it is not there or damaged, which is noted."""
        paths = [path for path in self.files.get(name, []) if path.suffix == ".json"]
        if not paths:
            return {}
        try:
            found = json_text.parse(self._read(paths[0]))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            self.damaged.append(f"{paths[0].name} is no JSON object" if paths[0].stat().st_size else f"{paths[0].name} is empty: the "
                                "record was being written when its writer ended")
            return {}
        return found

    def _read(self, path: Path) -> str:
        try:
            raw = bounded(path)
        except OSError as error:
            self.damaged.append(f"{path.name} can't be read ({error.strerror or error})")
            return ""
        if len(raw) > _MOST:
            self.damaged.append(f"{path.name} has more than {_MOST >> 20} MB; its beginning is read")
            raw = raw[:_MOST]
        return visible(raw.decode("utf-8", "replace"))


def visible(text: str) -> str:
    """The text with control characters written out."""
    return text.translate(_STEERING)


def bounded(path: Path, most: int = _MOST) -> bytes:
    """At most `most` bytes of a plain file, and one more. Raises OSError, also for a link, a FIFO or a device."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(22, "no plain file")
        return file.read(most + 1)


def records(place: str) -> list[Record]:
    """The records at a path, which may be `rdr.path`, a `rank_N` or the `rdr` in it, the newest last. Raises NoRecord."""
    root = Path(place)
    if not os.path.isdir(place):
        raise NoRecord(f"{place}: expected a directory with records")
    found: dict[tuple[str, str], Record] = {}
    for folder in _folders(root):
        for path in _names(folder):
            name = _NAME.fullmatch(path.name)
            if name is not None:
                record = found.setdefault((str(folder), name.group(2)), Record(folder, name.group(2)))
                record.files.setdefault(name.group(1), []).append(path)
    whole = [record for record in found.values() if writing.CAUSE in record.files]
    if not whole:
        raise NoRecord(f"{place}: expected records of the recorder (files {writing.CAUSE}.<time>.json in <path>/rank_N/rdr), found none")
    return sorted(whole, key=lambda record: (record.stamp, str(record.folder)))


def _folders(root: Path) -> Iterator[Path]:
    yield root
    yield root / "rdr"
    for path in _names(root):
        if path.name.startswith("rank_"):
            yield path / "rdr"


def _names(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as names:
            return sorted(Path(name.path) for name in islice(names, _NAMES))
    except OSError:
        return []


def shown(record: Record, operators: int = 12, with_stacks: bool = False) -> str:
    """What happened, the likely cause first."""
    cause, about = record.json(writing.CAUSE), record.json(writing.VERSIONS)
    lines = [_headline(cause), ""]
    count = sum(map(len, record.files.values()))
    lines.append(f"record    {record.stamp} in {record.folder}, {count} files, written {_word(cause.get('at'))}")
    command = cause.get("command")
    if isinstance(command, list):
        lines.append("command   " + " ".join(map(_word, command[:64])))
    versions = about.get("versions")
    if isinstance(versions, dict):
        lines.append("versions  " + ", ".join(f"{_word(key)} {_word(value)}" for key, value in list(versions.items())[:12]))
    if cause.get("incomplete"):
        record.damaged.append("the record is not whole: its writer was ended, or the disk was full")
    lines += _memory(record)
    lines += _operators(record, operators)
    lines += _graphs(record)
    lines += _steps(record)
    trace = cause.get("traceback")
    if isinstance(trace, str) and trace:
        lines += ["", "traceback", *[f"  {line}" for line in visible(trace[-_MOST // 64 :]).splitlines()[-14:]]]
    dump = record.text(writing.STACKS)
    if with_stacks:
        lines += ["", "threads", *[f"  {line}" for line in dump.splitlines()]]
    else:
        lines += _threads(dump)
    lines += ["", "context", *[f"  {line}" for line in record.text(writing.CONTEXT).splitlines()[:40]]]
    if record.damaged:
        lines += ["", "damaged", *[f"  {visible(line)}" for line in record.damaged]]
    return "\n".join(line[:_WIDEST] for line in lines)


def _headline(cause: dict[str, Any]) -> str:
    if not cause:
        return "likely cause: not known; the file that says it is damaged"
    operator = _word(cause.get("operator"))
    line = _word(cause.get("line"))
    told = _word(cause.get("text"), 400)
    if line and line not in told:
        told += f" at {line}"
    shown = f" [operator {operator}]" if operator and operator not in told else ""
    return f"likely cause: {_word(cause.get('kind')) or 'unknown'}: {told}{shown}"


def _word(value: object, most: int = 200) -> str:
    """A text or number out of a file, in one line; empty for anything else."""
    return visible(str(value)[:most]).replace("\n", " ") if isinstance(value, (str, int, float)) and value else ""


def _memory(record: Record) -> list[str]:
    peak = re.search(r"^# peak (\d{1,19})$", record.text(writing.ALLOCATIONS), re.MULTILINE)
    held = re.match(r"# (\d{1,19}) Tensors of the program hold (\d{1,19}) bytes", record.text(writing.TENSORS))
    parts = [f"{int(peak.group(1)) / 2**20:.0f} MB of the process at its peak"] if peak else []
    parts += [f"{held.group(1)} Tensors hold {int(held.group(2)) / 2**20:.2f} MB"] if held else []
    return ["memory    " + ", ".join(parts)] if parts else []


def _operators(record: Record, count: int) -> list[str]:
    rows = [line for line in record.text(writing.OPERATORS).splitlines() if not line.startswith("#")]
    if not rows:
        return ["", "operators none was seen"]
    return ["", f"operators (the last {min(count, len(rows))} of {len(rows)}: number, seconds, microseconds, thread, name, inputs)",
            *[f"  {row[:300]}" for row in rows[-count:]]]


def _graphs(record: Record) -> list[str]:
    stages = sum(len(paths) for name, paths in record.files.items() if name.startswith("PIPELINE."))
    orders = sorted(path for name, paths in record.files.items() if name.startswith("SESSION.graph_exec_order") for path in paths)
    if not orders:
        return []
    lines = ["", f"graphs    {len(orders)}, {stages} stages"]
    for path in orders[:8]:
        size = re.search(r"^execution_order size: (\d{1,9})$", record._read(path), re.MULTILINE)
        lines.append(f"  {path.name}: {size.group(1) if size else '?'} operators in order")
    return lines


def _steps(record: Record) -> list[str]:
    kept = sorted(name for name in record.files if name.startswith("REPLAY."))
    if not kept:
        return []
    lines = ["", "steps"]
    for name in kept:
        about = record.json(name)
        lines.append(f"  {name.removeprefix('REPLAY.')}: {_word(about.get('label'))}, call {_word(about.get('number'))}")
    return [*lines, f"  torchspore replay {record.folder} PROGRAM runs one again"]


def _threads(dump: str) -> list[str]:
    lines = []
    for name, frames in stacks.threads(dump):
        at = stacks.user_line("\n".join(frames))
        if at:
            lines.append(f"  0x{name}: {at}")
    return ["", "threads in the program's own lines (--stacks shows all)", *lines] if lines else []
