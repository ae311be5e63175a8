"""Folders of dumped operators, of torchspore and of MindSpore: read and compared; `dump_pairs` lines them up.

Nothing in a file runs, and no size in it is believed that the file does not have. An operator is known by its full name, in which
MindSpore writes `_` for `/`, and by the iteration.
"""
from __future__ import annotations

import csv
import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from torchspore.base import operator_names

FILE = re.compile(
    r"(?P<kind>[^.]+)\.(?P<name>.+)\.(?P<task>\d+)\.(?P<stream>\d+)\.(?P<time>\d+)\.(?P<side>input|output)\.(?P<slot>\d+)\.[^.]+(\.[^.]+)?\.npy")
_MOST_FILES = 2_000_000
_MOST_LINES = 1_000_000
_LONGEST_LINE = 1 << 16
_CHUNK = 1 << 20
_HEADER = 65536
_LARGEST_TURNED = 1 << 28


class Unreadable(ValueError):
    """A file or folder that is no dump, or is damaged; the text names it."""


@dataclass
class Operator:
    """One operator of an iteration: its files by ('input' or 'output', slot)."""

    kind: str
    name: str
    """The name as files have it."""
    full_name: str
    order: tuple[int, int]
    line: str = ""
    note: str = ""
    files: dict[tuple[str, int], Path] = field(default_factory=dict)
    statistics: dict[tuple[str, int], dict[str, str]] = field(default_factory=dict)
    members: tuple[Operator, ...] = ()
    """The operators that this one stands for, where several are compared together."""

    @property
    def scope(self) -> str:
        """Its name without its own part."""
        return re.sub(rf"_?{re.escape(self.kind)}-op\d+$", "", self.name)

    @property
    def plain_name(self) -> str:
        """The name without the number of the call, its own part as MindSpore's graphs call it, in small letters."""
        kind = operator_names.plain(self.kind)
        return f"{self.scope}/{operator_names.OTHER_NAMES.get(kind, kind)}"


@dataclass
class Dump:
    """What a folder holds: for each iteration the operators in the order in which they ran."""

    root: Path
    iterations: dict[int, list[Operator]]
    troubles: list[str]


@dataclass
class Compared:
    """One tensor of a pair."""

    side: str
    slot: int
    state: str
    """'equal', 'close', 'departs', 'unused' (it departs, and no result hangs on it), 'unreadable', or 'alone': the other side has none."""
    text: str
    first: dict[str, Any] = field(default_factory=dict)
    second: dict[str, Any] = field(default_factory=dict)
    largest: float = 0.0


@dataclass
class Pair:
    """An operator on both sides, and what came of its results."""

    iteration: int
    first: Operator
    second: Operator
    by: str
    """'name', 'scope' (the last operators of a layer), or 'layer' (all operators of a gradient or an optimizer)."""
    results: list[Compared]

    @property
    def departs(self) -> bool:
        """Whether a result departs or can't be read, or none could be compared."""
        states = {one.state for one in self.results}
        return bool(states & {"departs", "unreadable"}) or states == {"alone"}


# ---- finding

def read(root: Path) -> Dump:
    """The dump in a folder (that of the dump's `path`, or one inside of it). Raises Unreadable where there is none, or more than one."""
    if not root.is_dir():
        raise Unreadable(f"{root}: expected a folder with a dump.")
    folders: dict[int, Path] = {}
    nets: set[Path] = set()
    troubles: list[str] = []
    count = 0
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name != "constants")
        count += len(names)
        if count > _MOST_FILES:
            raise Unreadable(f"{root}: holds more than {_MOST_FILES} files.")
        here = Path(folder)
        if not any(name.endswith(".npy") or name == "statistic.csv" for name in names):
            continue
        iteration = int(here.name) if here.name.isdecimal() and len(here.name) < 18 else 0
        nets.add(here.parent.parent if here.name.isdecimal() and here.parent.name.isdecimal() else here.parent)
        if len(nets) > 1:
            raise Unreadable(f"{root}: holds several dumps: {', '.join(sorted(str(net) for net in nets))}; name one of them.")
        if iteration in folders:
            troubles.append(f"{here}: a second graph of iteration {iteration} is left out")
            continue
        folders[iteration] = here
    if not folders:
        raise Unreadable(f"{root}: holds no dump: no file is named OP_TYPE.OP_NAME.TASK.STREAM.TIME.input.SLOT.FORMAT.DTYPE.npy.")
    return Dump(root, {iteration: _operators(folder, troubles) for iteration, folder in sorted(folders.items())}, troubles)


def _operators(folder: Path, troubles: list[str]) -> list[Operator]:
    long_names = {row[0]: row[1] for row in _rows(folder / "mapping.csv", troubles) if len(row) > 1}
    told = {_in_files(row[2]): row for row in _rows(folder / "operators.csv", troubles) if len(row) > 5}
    shown = {_in_files(name): name for name in _names_of_mindspore(folder, troubles)}
    found: dict[str, Operator] = {}

    def operator(kind: str, name: str, order: tuple[int, int]) -> Operator:
        own = found.get(name)
        if own is None:
            row = told.get(name)
            full_name = row[2] if row is not None else shown.get(name, name)
            own = found[name] = Operator(kind, name, full_name, order, *(() if row is None else (row[3], row[5])))
        own.order = min(own.order, order)
        return own

    for name in sorted(os.listdir(folder)):
        match = FILE.fullmatch(long_names.get(name, name))
        if match is None:
            if name.endswith(".npy"):
                troubles.append(f"{folder / name}: has no name of a dump's file")
            continue
        if match["kind"] != "Parameter":
            order = (int(match["task"][:18]), int(match["time"][:18]))
            operator(match["kind"], match["name"], order).files[match["side"], int(match["slot"][:9])] = folder / name
    titles: list[str] = []
    for row in _rows(folder / "statistic.csv", troubles):
        if not titles:
            titles = row
            continue
        values = dict(zip(titles, row))
        if values.get("IO") in ("input", "output") and values.get("Slot", "").isdecimal() and values.get("Op Name"):
            task, time = (values.get(name, "0") for name in ("Task ID", "Timestamp"))
            order = (int(task[:18]) if task.isdecimal() else 0, int(time[:18]) if time.isdecimal() else 0)
            own = operator(values.get("Op Type", ""), values["Op Name"], order)
            own.statistics[values["IO"], int(values["Slot"][:9])] = dict(list(values.items())[8:])
    for row in told.values():
        known = found.get(_in_files(row[2]))
        if len(row) > 6 and row[6].isdecimal() and known is not None and len(known.files) < int(row[6][:9]):
            troubles.append(f"{folder}: of {row[2]} {int(row[6][:9]) - len(known.files)} of {row[6][:9]} files are missing")
    return sorted(found.values(), key=lambda one: one.order)


def _names_of_mindspore(folder: Path, troubles: list[str]) -> list[str]:
    """The full names of operators that MindSpore writes beside its dump."""
    beside = folder.parents[2] / "execution_order" if len(folder.parents) > 2 else folder
    try:
        tables = sorted(beside.glob("ms_execution_order_graph_*.csv"))
    except OSError:
        return []
    return [row[0] for table in tables for row in _rows(table, troubles) if row]


def _in_files(full_name: str) -> str:
    return re.sub(r"[./\\\s]", "_", full_name)


def _rows(path: Path, troubles: list[str]) -> Iterator[list[str]]:
    """The lines of a table; a half one at the end, which a killed process leaves, is left out."""
    if not path.exists():
        return
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError("no plain file")
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            for number, row in enumerate(csv.reader(_lines(file))):
                if number > _MOST_LINES:
                    troubles.append(f"{path}: what comes after line {_MOST_LINES} is left out")
                    return
                yield row
    except (OSError, csv.Error) as error:
        troubles.append(f"{path}: can't be read ({error})")


def _lines(file: Any) -> Iterator[str]:
    """The whole lines of a file. Raises OSError for one that no table has."""
    while line := file.readline(_LONGEST_LINE):
        if line.endswith("\n"):
            yield line
        elif len(line) == _LONGEST_LINE:
            raise OSError(f"a line has more than {_LONGEST_LINE} characters")


# ---- comparing

def array(path: Path) -> np.ndarray[Any, Any]:
    """The values in an .npy file, mapped and not read. Raises Unreadable; no size is believed that the file does not have."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Unreadable(f"{path}: is no plain file.")
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise Unreadable(f"{path}: has the unknown version {version}.")
            reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = reader(file, max_header_size=_HEADER)
            start, size = file.tell(), os.fstat(file.fileno()).st_size
    except (OSError, ValueError, TypeError, SyntaxError, KeyError, MemoryError, RecursionError, TokenError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"{path}: is damaged ({' '.join(str(error).split()):.100}).") from None
    if dtype.hasobject or dtype.kind not in "biufc":
        raise Unreadable(f"{path}: holds {dtype}, expected numbers.")
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != size - start:
        needed = f"{shape!s:.100} of {dtype} needs {math.prod(shape) * dtype.itemsize!s:.40} bytes"
        raise Unreadable(f"{path}: is damaged: {needed}, it has {size - start}.")
    if fortran and size > _LARGEST_TURNED:
        raise Unreadable(f"{path}: {size} bytes in Fortran's order, expected {_LARGEST_TURNED} at most.")
    try:
        return np.memmap(path, dtype, "r", start, shape, "F" if fortran else "C") if math.prod(shape) else np.zeros(shape, dtype)
    except (OSError, ValueError, TypeError, OverflowError) as error:      # odd lengths, no room to map it, shorter by now
        raise Unreadable(f"{path}: can't be read ({error}).") from None


def compare(one: Operator, other: Operator, side: str, rtol: float, atol: float) -> list[Compared]:
    """What came of each input or output. Where tensors of one place depart, others that agree are looked for: the order of inputs and
    outputs hangs on which kernels an operator runs.
    """
    slots = [{slot for s, slot in (*operator.files, *operator.statistics) if s == side} for operator in (one, other)]
    found = {slot: _compared(one, other, (side, slot), (side, slot), rtol, atol) for slot in sorted(slots[0] & slots[1])}
    left = [slot for slot in sorted(slots[0]) if slot not in found or found[slot].state == "departs"]
    free = [slot for slot in sorted(slots[1]) if slot not in found or found[slot].state == "departs"]
    for slot in left:
        for another in free:
            tried = _compared(one, other, (side, slot), (side, another), rtol, atol)
            if tried.state in ("equal", "close"):
                tried.text += f" as {side} {another} of the second" if another != slot else ""
                found[slot] = tried
                free.remove(another)
                break
        else:
            of_other_size = slot in found and found[slot].largest == math.inf and not found[slot].text.startswith("largest")
            if slot not in found or slot not in free or (of_other_size and len(slots[0]) > 1):
                found[slot] = Compared(side, slot, "alone", f"the second dump has no {side} like it")
    for slot in free:
        if slot not in found:
            found[slot] = Compared(side, slot, "alone", f"the first dump has no {side} like it")
    return [found[slot] for slot in sorted(found)]


def _compared(one: Operator, other: Operator, key: tuple[str, int], theirs: tuple[str, int], rtol: float, atol: float) -> Compared:
    files = one.files.get(key), other.files.get(theirs)
    if files[0] is not None and files[1] is not None:
        try:
            return _of_arrays(array(files[0]), array(files[1]), key, rtol, atol)
        except Unreadable as error:
            return Compared(*key, "unreadable", str(error))
    told = one.statistics.get(key), other.statistics.get(theirs)
    try:
        if files[0] is not None and told[1] is not None:
            told = _statistics_of(array(files[0]), told[1]), told[1]
        elif files[1] is not None and told[0] is not None:
            told = told[0], _statistics_of(array(files[1]), told[0])
    except Unreadable as error:
        return Compared(*key, "unreadable", str(error))
    if told[0] is not None and told[1] is not None:
        return _of_statistics(told[0], told[1], key, rtol, atol)
    which = "first" if files[0] is None else "second"
    return Compared(*key, "alone", f"the {which} dump has no {key[0]} {key[1]} of it")


def _of_arrays(a: Any, b: Any, key: tuple[str, int], rtol: float, atol: float) -> Compared:
    shapes = f"shapes {a.shape} and {b.shape}" if a.shape != b.shape else ""
    if a.size != b.size:
        return Compared(*key, "departs", shapes, _figures(a), _figures(b), math.inf)
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    same, departing, largest, at = True, 0, 0.0, -1
    for start in range(0, a.size, _CHUNK):
        x, y = flat_a[start : start + _CHUNK], flat_b[start : start + _CHUNK]
        if x.dtype == y.dtype and x.tobytes() == y.tobytes():
            continue
        same = False
        kind = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
        x, y = x.astype(kind), y.astype(kind)
        with np.errstate(all="ignore"):
            difference = np.abs(x - y)
            fine = (x == y) | (np.isnan(x) & np.isnan(y)) | (difference <= atol + rtol * np.abs(y))
            difference = np.where(fine & ~np.isfinite(difference), 0.0, np.where(np.isnan(difference), np.inf, difference))
        departing += int((~fine).sum())
        if difference.max() > largest or at < 0:
            largest, at = float(difference.max()), start + int(difference.argmax())
    if same:             # a reshaped tensor may have been written with either shape
        return Compared(*key, "close" if shapes else "equal", "; ".join(filter(None, ("equal in every bit", shapes))))
    where = tuple(int(i) for i in np.unravel_index(at, a.shape)) if a.ndim else ()
    text = f"largest difference {largest:.6g}" + (f" at {where}" if where else "") + f": {flat_a[at]} and {flat_b[at]}"
    if departing:
        text += f"; {departing} of {a.size} elements depart"
    if shapes:
        text += f"; {shapes}"
    if a.dtype != b.dtype:
        text += f"; {a.dtype} and {b.dtype}"
    return Compared(*key, "departs" if departing else "close", text, _figures(a), _figures(b), largest)


def _figures(values: Any) -> dict[str, Any]:
    """Statistics of one side."""
    flat = values.reshape(-1)
    nan = infinite = zero = 0
    least, most, total = math.inf, -math.inf, 0.0
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        wide = (np.abs(part) if part.dtype.kind == "c" else part).astype(np.float64)
        finite = wide[np.isfinite(wide)]
        nan, infinite, zero = nan + int(np.isnan(wide).sum()), infinite + int(np.isinf(wide).sum()), zero + int((wide == 0).sum())
        if finite.size:
            least, most, total = min(least, float(finite.min())), max(most, float(finite.max())), total + float(finite.sum())
    count = flat.size - nan - infinite
    return {"shape": list(values.shape), "dtype": str(values.dtype), "min": least if count else None, "max": most if count else None,
            "mean": total / count if count else None, "nan": nan, "inf": infinite, "zero": zero}


def _statistics_of(values: Any, titles: dict[str, str]) -> dict[str, str]:
    """The statistics of a tensor that the other side has, under the same titles. Sums are computed in float64."""
    wide = np.abs(values) if values.dtype.kind == "c" else values
    wide = wide.astype(np.float64).reshape(-1)
    finite = wide[~np.isnan(wide)]
    with np.errstate(all="ignore"):
        known: dict[str, Any] = {
            "Shape": str(values.shape), "Count": wide.size, "NaN Count": int(np.isnan(wide).sum()),
            "Negative Inf Count": int(np.isneginf(wide).sum()), "Positive Inf Count": int(np.isposinf(wide).sum()),
            "Zero Count": int((wide == 0).sum()), "Max Value": finite.max() if finite.size else None,
            "Min Value": finite.min() if finite.size else None, "Avg Value": wide.mean() if wide.size else None,
            "L2Norm Value": float(np.sqrt((wide * wide).sum())),
        }
    return {title: str(known[title]) for title in titles if known.get(title) is not None}


_OF_THE_FILE = ("MD5", "Data Size", "Data Type", "Zero Count", "Negative Zero Count", "Positive Zero Count")
"""Statistics in which tensors that agree within a tolerance may differ."""


def _of_statistics(a: dict[str, str], b: dict[str, str], key: tuple[str, int], rtol: float, atol: float) -> Compared:
    departing, is_same = [], all(title in b for title in a)
    largest = max((abs(_number(side.get(title, ""))) for side in (a, b) for title in ("Max Value", "Min Value")), default=0.0)
    for title in a:
        if title not in b or a[title] == b[title]:
            continue
        is_same = False
        if title in _OF_THE_FILE:
            continue
        if title == "Shape":
            lengths = [[int(length[:18]) for length in re.findall(r"\d+", side[title])] for side in (a, b)]
            is_close = math.prod(lengths[0]) == math.prod(lengths[1])      # a reshaped tensor may have been written with either shape
        else:
            x, y = _number(a[title]), _number(b[title])
            scale = max(abs(y), largest) if title == "Avg Value" and math.isfinite(largest) else abs(y)   # an average may cancel
            is_close = x == y or abs(x - y) <= atol + rtol * scale or (math.isnan(x) and math.isnan(y))
        if not is_close:
            departing.append(f"{title} {a[title]} and {b[title]}")
    state = "departs" if departing else "equal" if is_same else "close"
    return Compared(*key, state, "statistics: " + ("; ".join(departing) or "they agree"), dict(a), dict(b))


def _number(text: str) -> float:
    """The number in a text; NaN where there is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
