"""The files of a dump, in MindSpore's folders and with its names, written by a separate thread.

`PATH/rank_N/NET/0/ITERATION/` contains `OP_TYPE.OP_NAME.TASK.STREAM.TIME.input.SLOT.DefaultFormat.DTYPE.npy` for each tensor,
`statistic.csv`, and `operators.csv`, which only torchspore writes: the order in which operators ran, with full names and the user's lines.
TASK is the position in that order.

The queue of the writer is bounded in bytes: a producer beyond the bound waits. An npy file is complete or absent; tables grow by complete
lines.
"""
from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.files import BINARY, atomic_file, unused_names
from torchspore.engine.execution.current_operator import Position
from torchspore.observe.debug.dump_settings import CATEGORIES, Settings

WAITING = "TORCHSPORE_DUMP_MEMORY"
"""Names how many megabytes may wait to be written; 256 without it."""
OPERATORS = ("Order", "Op Type", "Full Name", "Line", "Mode", "Note", "Tensors")
"""The titles of operators.csv; the last one says how many files of tensors there are."""
STATISTICS = ("Op Type", "Op Name", "Task ID", "Stream ID", "Timestamp", "IO", "Slot", "Data Size", "Data Type", "Shape")
"""The first titles of statistic.csv."""
_LONGEST = 250


@dataclass(frozen=True)
class DumpedValue:
    """One tensor of an operator: `side` is 'input' or 'output', `values` are its own, not shared with what runs."""

    side: str
    slot: int
    values: np.ndarray[Any, Any]
    dtype: str


@dataclass(frozen=True)
class Record:
    """An operator that has run; `note` says why it is written, if it failed or overflowed."""

    position: Position
    order: int
    tensors: Sequence[DumpedValue]
    note: str = ""

    @property
    def size(self) -> int:
        """Bytes that it takes while it waits."""
        return 1000 + sum(value.values.nbytes for value in self.tensors)


class Writer:
    """Writes records in the order in which they come, in a thread; an error of the disk is reported once, and ends it."""

    def __init__(self, settings: Settings, rank: Callable[[], str], warn: Callable[[str], None]) -> None:
        """`rank` gives the name of this process's folder; it is asked when the first record is written."""
        self._settings, self._rank, self._warn = settings, rank, warn
        self.folder: Path | None = None
        self._created: set[Path] = set()
        self._tables: set[Path] = set()
        self._waiting: deque[Record | None] = deque()
        self._bytes = 0
        self._most = int(float(os.environ.get(WAITING) or 256) * 2**20)
        self._changed = threading.Condition()
        self._is_full = self._is_closed = False
        self._last_time = 0
        self._process = os.getpid()
        self._thread: threading.Thread | None = None

    def put(self, record: Record) -> None:
        """Hands in a record; waits while there is too much to be written."""
        if self._is_full or self._is_closed or os.getpid() != self._process:
            return
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="torchspore dump", daemon=True)
                self._thread.start()
            while self._bytes and self._bytes + record.size > self._most and not self._is_full:
                self._changed.wait()
            self._waiting.append(record)
            self._bytes += record.size
            self._changed.notify_all()

    def close(self) -> None:
        """Close after all pending writes; later writes are ignored."""
        self._is_closed = True
        if self._thread is None or os.getpid() != self._process:
            return
        with self._changed:
            self._waiting.append(None)
            self._changed.notify_all()
        self._thread.join()
        self._thread = None

    def flush(self) -> None:
        """Wait for all pending writes."""
        if self._thread is not None and os.getpid() == self._process:
            with self._changed:
                while self._bytes and not self._is_full:
                    self._changed.wait()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                record = self._waiting[0]
            if record is None:
                return
            try:
                if not self._is_full:
                    self._write(record)
            except OSError as error:
                self._is_full = True
                self._warn(f"dump: {error.filename or self.folder or self._settings.path} can't be written ({error.strerror or error}); "
                           "the program continues without it, and written files stay readable.")
            except Exception as error:             # a caller would wait forever for a thread that has ended
                self._is_full = True
                self._warn(
                    f"dump: {record.position.name} can't be written ({type(error).__name__}: {error}); the program continues without a "
                    f"dump, and what was written stays readable in {self.folder}."
                )
            finally:
                with self._changed:
                    self._waiting.popleft()
                    self._bytes -= record.size
                    self._changed.notify_all()

    # ---- in the thread

    def _write(self, record: Record) -> None:
        folder = self._folder_of(record)
        position = record.position
        for value in record.tensors:
            self._last_time = max(self._last_time + 1, time.time_ns() // 1000)
            name = re.sub(r"[./\\\s]", "_", position.name)
            head = (position.operator, name, record.order, 0, self._last_time)
            if self._settings.tensors:
                file = ".".join(map(str, (*head, value.side, value.slot, "DefaultFormat", value.dtype, "npy")))
                values = value.values if self._settings.sample is None else value.values.reshape(-1)[: self._settings.sample]
                self._array(folder, file, values)
            if self._settings.statistics:
                titles = (*STATISTICS, *[CATEGORIES[name] for name in self._settings.categories])
                shape = f"({', '.join(map(str, value.values.shape))})"
                self._row(folder / "statistic.csv", titles, (
                    *head, value.side, value.slot, value.values.nbytes, value.dtype, shape,
                    *statistics(value.values, self._settings.categories)))
        # Last, so that a killed process leaves no line of an operator whose files are not all there.
        self._row(folder / "operators.csv", OPERATORS, (
            record.order, position.operator, position.name, position.line, "graph" if position.in_graph else "pynative", record.note,
            len(record.tensors) if self._settings.tensors else 0))

    def _folder_of(self, record: Record) -> Path:
        if self.folder is None:
            self.folder = create_unique_folder(Path(self._settings.path) / self._rank() / self._settings.net_name)
        folder = self.folder / "0" / str(record.position.iteration)
        if folder not in self._created:
            folder.mkdir(parents=True, exist_ok=True)
            self._created.add(folder)
        return folder

    def _array(self, folder: Path, name: str, values: np.ndarray[Any, Any]) -> None:
        if len(os.fsencode(name)) > _LONGEST:
            short = hashlib.sha256(name.encode()).hexdigest()[:24] + ".npy"
            self._row(folder / "mapping.csv", None, (short, name))
            name = short
        with atomic_file(folder / name, sweeps=False) as file:
            np.save(file, values, allow_pickle=False)

    def _row(self, path: Path, titles: Sequence[str] | None, values: Sequence[Any]) -> None:
        """Append a complete line to a table."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        if path not in self._tables:
            self._tables.add(path)
            if titles is not None:
                rows.writerow(titles)
        rows.writerow(values)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | BINARY, 0o600)
        try:
            size, contents = os.fstat(handle).st_size, text.getvalue().encode(errors="replace")
            if os.write(handle, contents) != len(contents):
                os.ftruncate(handle, size)
                raise OSError(28, "No space left on device", str(path))
        finally:
            os.close(handle)


def create_unique_folder(wanted: Path) -> Path:
    """Create a folder: with the requested name or, if that exists, with the seconds since 1970 appended. Raises OSError."""
    wanted.parent.mkdir(parents=True, exist_ok=True)
    for path in unused_names(wanted):
        try:
            path.mkdir()
            return path
        except FileExistsError:
            continue
    raise FileExistsError(17, "File exists", str(wanted))


def statistics(values: np.ndarray[Any, Any], categories: Sequence[str]) -> list[Any]:
    """Return the numbers of `statistic_category`; NaN values count only for their own count, the mean and the norm."""
    flat = values.reshape(-1)
    flat = np.abs(flat) if flat.dtype.kind == "c" else flat
    wide = flat.astype(np.float64) if flat.dtype.kind in "fb" else flat
    return [_STATISTICS[name](wide, values) for name in categories]


def _extreme(reduce: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def matches(wide: Any, _: Any) -> Any:
        with np.errstate(all="ignore"):
            return reduce(wide).item() if wide.size else ""

    return matches


def _norm(wide: Any, _: Any) -> Any:
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.square(wide.astype(np.float64)).sum()))


_STATISTICS: dict[str, Callable[[Any, Any], Any]] = {
    "max": _extreme(np.fmax.reduce), "min": _extreme(np.fmin.reduce), "avg": _extreme(lambda wide: np.mean(wide, dtype=np.float64)),
    "count": lambda wide, _: wide.size, "negative zero count": lambda wide, _: int((wide < 0).sum()),
    "positive zero count": lambda wide, _: int((wide > 0).sum()), "nan count": lambda wide, _: int((wide != wide).sum()),
    "negative inf count": lambda wide, _: int((wide == -np.inf).sum()), "positive inf count": lambda wide, _: int((wide == np.inf).sum()),
    "zero count": lambda wide, _: int((wide == 0).sum()), "l2norm": _norm,
    "md5": lambda _, values: hashlib.md5(np.ascontiguousarray(values).tobytes(), usedforsecurity=False).hexdigest(),
}
