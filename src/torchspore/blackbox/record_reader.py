"""Read records: damaged files are reported, intact ones are read. Nothing in a file is executed, and reading is bounded."""
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
from torchspore.base.columns import pad
from torchspore.base.files import BINARY
from torchspore.base.text import message
from torchspore.blackbox import record_writer, stacks
from torchspore.translations import translatable, translate

_MOST = 1 << 23
"""Maximum number of bytes read from a file."""
_NAMES, _WIDEST = 20000, 2000
KINDS = (
    translatable("out of memory"), translatable("exception"), translatable("not finite"), translatable("normal end"),
    translatable("time-out"), translatable("crash"), translatable("killed"),
)
"""The events that end a program; records name them in English."""
_NAME = re.compile(r"([A-Z_]{1,40}\.[\w.-]{1,80}?)\.(\d{14})(?:_\d{1,6})?\.(ir|txt|json|safetensors)")
_ESCAPES = {
    number: chr(number).encode("unicode_escape").decode()
    for number in (*range(0x20), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)) if chr(number) not in "\t\n"
}
"""Characters that control a terminal, or change the direction of text."""


class NoRecord(Exception):
    """No record exists at the path; the text is for the user."""


@dataclass
class Record:
    """One record: its files by the first two components of their names."""

    folder: Path
    stamp: str
    files: dict[str, list[Path]] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        """Return the text of a file with control characters escaped; "" if it does not exist."""
        paths = self.files.get(name, [])
        return self._read(paths[0]) if paths else ""

    def json(self, name: str) -> dict[str, Any]:
        """Return the JSON object in a file; {} if it does not exist, or if it is damaged, which is noted."""
        paths = [path for path in self.files.get(name, []) if path.suffix == ".json"]
        if not paths:
            return {}
        try:
            value = json_text.parse(self._read(paths[0]))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            text = translate("{file} is not a JSON object") if paths[0].stat().st_size else translate(
                "{file} is empty: the record was being written when its writer ended")
            self.damaged.append(text.format(file=paths[0].name))
            return {}
        return value

    def _read(self, path: Path) -> str:
        try:
            raw = bounded(path)
        except OSError as error:
            self.damaged.append(translate("{file} can't be read ({error})").format(file=path.name, error=error.strerror or error))
            return ""
        if len(raw) > _MOST:
            text = translate("{file} has more than {size} MB; its beginning is read")
            self.damaged.append(text.format(file=path.name, size=_MOST >> 20))
            raw = raw[:_MOST]
        return visible(raw.decode("utf-8", "replace"))


def visible(text: str) -> str:
    """Return the text with control characters escaped."""
    return text.translate(_ESCAPES)


def bounded(path: Path, most: int = _MOST) -> bytes:
    """Return at most `most` bytes of a regular file, and one more. Raise OSError, also for a link, a FIFO or a device."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | BINARY)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(22, "not a regular file")
        return file.read(most + 1)


def records(location: str) -> list[Record]:
    """Return the records at a path (`rdr.path`, a `rank_N` or the `rdr` in it), the newest last. Raise NoRecord."""
    root = Path(location)
    if not os.path.isdir(location):
        raise NoRecord(_refusal(location, translate("a directory with records")))
    records_by_stamp: dict[tuple[str, str], Record] = {}
    for folder in _folders(root):
        for path in _names(folder):
            name = _NAME.fullmatch(path.name)
            if name is not None:
                record = records_by_stamp.setdefault((str(folder), name.group(2)), Record(folder, name.group(2)))
                record.files.setdefault(name.group(1), []).append(path)
    complete = [record for record in records_by_stamp.values() if record_writer.CAUSE in record.files]
    if not complete:
        expected = translate("records of the recorder (files {name}.<time>.json in <path>/rank_N/rdr), found none")
        raise NoRecord(_refusal(location, expected.format(name=record_writer.CAUSE)))
    return sorted(complete, key=lambda record: (record.stamp, str(record.folder)))


def _refusal(location: str, expected: str) -> str:
    """Return the sentence about a path, without its period."""
    return message(location, expected).removesuffix(translate("."))


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


def describe(record: Record, operators: int = 12, with_stacks: bool = False) -> str:
    """Describe what happened, the likely cause first."""
    cause, about = record.json(record_writer.CAUSE), record.json(record_writer.VERSIONS)
    lines = [_headline(cause), ""]
    count = sum(map(len, record.files.values()))
    text = translate("{stamp} in {folder}, {count} files, written {time}")
    lines.append(_labelled(
        translate("record"), text.format(stamp=record.stamp, folder=record.folder, count=count, time=_word(cause.get("at")))))
    command = cause.get("command")
    if isinstance(command, list):
        lines.append(_labelled(translate("command"), " ".join(map(_word, command[:64]))))
    versions = about.get("versions")
    if isinstance(versions, dict):
        named = ", ".join(f"{_word(key)} {_word(value)}" for key, value in list(versions.items())[:12])
        lines.append(_labelled(translate("versions"), named))
    if cause.get("incomplete"):
        record.damaged.append(translate("the record is incomplete: its writer was ended, or the disk was full"))
    lines += _memory(record)
    lines += _operators(record, operators)
    lines += _graphs(record)
    lines += _steps(record)
    trace = cause.get("traceback")
    if isinstance(trace, str) and trace:
        lines += ["", translate("traceback"), *[f"  {line}" for line in visible(trace[-_MOST // 64 :]).splitlines()[-14:]]]
    dump = record.text(record_writer.STACKS)
    if with_stacks:
        lines += ["", translate("threads"), *[f"  {line}" for line in dump.splitlines()]]
    else:
        lines += _threads(dump)
    lines += ["", translate("context"), *[f"  {line}" for line in record.text(record_writer.CONTEXT).splitlines()[:40]]]
    if record.damaged:
        lines += ["", translate("damaged"), *[f"  {visible(line)}" for line in record.damaged]]
    return "\n".join(line[:_WIDEST] for line in lines)


def _labelled(label: str, text: str) -> str:
    """Return a line with its label in a column of its own."""
    return f"{pad(label, 9)} {text}"


def _headline(cause: dict[str, Any]) -> str:
    if not cause:
        return translate("likely cause: unknown; the file with the cause is damaged")
    operator = _word(cause.get("operator"))
    line = _word(cause.get("line"))
    description = _word(cause.get("text"), 400)
    if line and line not in description:
        description = translate("{description} at {line}").format(description=description, line=line)
    operator_text = translate(" [operator {name}]").format(name=operator) if operator and operator not in description else ""
    kind = translate(_word(cause.get("kind"))) or translate("unknown")
    return translate("likely cause: {kind}: {description}").format(kind=kind, description=description) + operator_text


def _word(value: object, most: int = 200) -> str:
    """Return a text or number from a file in one line; "" for anything else."""
    return visible(str(value)[:most]).replace("\n", " ") if isinstance(value, (str, int, float)) and value else ""


def _memory(record: Record) -> list[str]:
    peak = re.search(r"^# peak (\d{1,19})$", record.text(record_writer.ALLOCATIONS), re.MULTILINE)
    tensors = re.match(r"# (\d{1,19}) Tensors of the program hold (\d{1,19}) bytes", record.text(record_writer.TENSORS))
    parts = [translate("{size:.0f} MB of the process at its peak").format(size=int(peak.group(1)) / 2**20)] if peak else []
    if tensors:
        parts.append(translate("{count} Tensors hold {size:.2f} MB").format(count=tensors.group(1), size=int(tensors.group(2)) / 2**20))
    return [_labelled(translate("memory"), translate(", ").join(parts))] if parts else []


def _operators(record: Record, count: int) -> list[str]:
    rows = [line for line in record.text(record_writer.OPERATORS).splitlines() if not line.startswith("#")]
    if not rows:
        return ["", translate("operators none was recorded")]
    head = translate("operators (the last {shown} of {count}: number, seconds, microseconds, thread, name, inputs)")
    return ["", head.format(shown=min(count, len(rows)), count=len(rows)), *[f"  {row[:300]}" for row in rows[-count:]]]


def _graphs(record: Record) -> list[str]:
    stages = sum(len(paths) for name, paths in record.files.items() if name.startswith("PIPELINE."))
    orders = sorted(path for name, paths in record.files.items() if name.startswith("SESSION.graph_exec_order") for path in paths)
    if not orders:
        return []
    lines = ["", _labelled(translate("graphs"), translate("{count}, {stages} stages").format(count=len(orders), stages=stages))]
    for path in orders[:8]:
        size = re.search(r"^execution_order size: (\d{1,9})$", record._read(path), re.MULTILINE)
        text = translate("  {file}: {count} operators in order")
        lines.append(text.format(file=path.name, count=size.group(1) if size else "?"))
    return lines


def _steps(record: Record) -> list[str]:
    step_names = sorted(name for name in record.files if name.startswith("REPLAY."))
    if not step_names:
        return []
    lines = ["", translate("steps")]
    for name in step_names:
        about = record.json(name)
        text = translate("  {name}: {label}, call {number}")
        lines.append(text.format(name=name.removeprefix("REPLAY."), label=_word(about.get("label")), number=_word(about.get("number"))))
    return [*lines, translate("  torchspore replay {folder} PROGRAM runs one again").format(folder=record.folder)]


def _threads(dump: str) -> list[str]:
    lines = []
    for name, frames in stacks.threads(dump):
        at = stacks.user_line("\n".join(frames))
        if at:
            lines.append(f"  0x{name}: {at}")
    return ["", translate("threads in the program's own lines (--stacks shows all)"), *lines] if lines else []
