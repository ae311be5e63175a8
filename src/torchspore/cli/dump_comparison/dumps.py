"""Read and compare folders of dumped operators, from torchspore and from MindSpore; `dump_pairs` pairs them.

Reading executes nothing from a file, and does not trust sizes that exceed the file. An operator is identified by its full name, in which
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
from torchspore.base.text import message
from torchspore.translations import translatable, translate

FILE = re.compile(
    r"(?P<kind>[^.]+)\.(?P<name>.+)\.(?P<task>\d+)\.(?P<stream>\d+)\.(?P<time>\d+)\.(?P<side>input|output)\.(?P<slot>\d+)\.[^.]+(\.[^.]+)?\.npy")
_MOST_FILES = 2_000_000
_MOST_LINES = 1_000_000
_LONGEST_LINE = 1 << 16
_CHUNK = 1 << 20
_HEADER = 65536
_LARGEST_FORTRAN = 1 << 28
_AS_ANOTHER = {"input": translatable(" as input {slot} of the second"), "output": translatable(" as output {slot} of the second")}
_NO_FIRST = {
    "input": translatable("the first dump has no input like it"), "output": translatable("the first dump has no output like it"),
}
_NO_SECOND = {
    "input": translatable("the second dump has no input like it"), "output": translatable("the second dump has no output like it"),
}


class Unreadable(ValueError):
    """A file or folder that is not a dump, or is damaged; the text names it."""


@dataclass
class Operator:
    """One operator of an iteration, with its files by ('input' or 'output', slot)."""

    kind: str
    name: str
    """The name as it appears in file names."""
    full_name: str
    order: tuple[int, int]
    line: str = ""
    note: str = ""
    files: dict[tuple[str, int], Path] = field(default_factory=dict)
    statistics: dict[tuple[str, int], dict[str, str]] = field(default_factory=dict)
    members: tuple[Operator, ...] = ()
    """The operators that this operator represents, if several are compared together."""

    @property
    def scope(self) -> str:
        """The name without its last component."""
        return re.sub(rf"_?{re.escape(self.kind)}-op\d+$", "", self.name)

    @property
    def plain_name(self) -> str:
        """The name without the number of the call, in lower case, with the kind as MindSpore's graphs call it."""
        kind = operator_names.plain(self.kind)
        return f"{self.scope}/{operator_names.OTHER_NAMES.get(kind, kind)}"


@dataclass
class Dump:
    """The contents of a folder: for each iteration, the operators in the order in which they ran."""

    root: Path
    iterations: dict[int, list[Operator]]
    troubles: list[str]


@dataclass
class TensorComparison:
    """The comparison of one tensor of a pair."""

    side: str
    slot: int
    state: str
    """'equal', 'close', 'departs', 'unused' (differs, but no result depends on it), 'unreadable', or 'alone': the other side lacks it."""
    text: str
    first: dict[str, Any] = field(default_factory=dict)
    second: dict[str, Any] = field(default_factory=dict)
    largest: float = 0.0


@dataclass
class Pair:
    """An operator on both sides, and the comparison of its results."""

    iteration: int
    first: Operator
    second: Operator
    by: str
    """'name', 'scope' (the last operators of a layer), or 'layer' (all operators of a gradient or an optimizer)."""
    results: list[TensorComparison]

    @property
    def departs(self) -> bool:
        """True if a result differs or can't be read, or if none could be compared."""
        states = {result.state for result in self.results}
        return bool(states & {"departs", "unreadable"}) or states == {"alone"}


# ---- reading

def read(root: Path) -> Dump:
    """Return the dump in a folder (the dump's `path`, or one inside it). Raise Unreadable if there is none, or more than one."""
    if not root.is_dir():
        raise Unreadable(message(str(root), "a folder with a dump"))
    folders: dict[int, Path] = {}
    nets: set[Path] = set()
    troubles: list[str] = []
    count = 0
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name != "constants")
        count += len(names)
        if count > _MOST_FILES:
            raise Unreadable(translate("{path}: holds more than {count} files.").format(path=root, count=_MOST_FILES))
        current = Path(folder)
        if not any(name.endswith(".npy") or name == "statistic.csv" for name in names):
            continue
        iteration = int(current.name) if current.name.isdecimal() and len(current.name) < 18 else 0
        nets.add(current.parent.parent if current.name.isdecimal() and current.parent.name.isdecimal() else current.parent)
        if len(nets) > 1:
            text = translate("{path}: holds several dumps: {names}; name one of them.")
            raise Unreadable(text.format(path=root, names=", ".join(sorted(str(net) for net in nets))))
        if iteration in folders:
            text = translate("{path}: a second graph of iteration {iteration} is left out")
            troubles.append(text.format(path=current, iteration=iteration))
            continue
        folders[iteration] = current
    if not folders:
        text = translate("{path}: holds no dump: no file is named OP_TYPE.OP_NAME.TASK.STREAM.TIME.input.SLOT.FORMAT.DTYPE.npy.")
        raise Unreadable(text.format(path=root))
    return Dump(root, {iteration: _operators(folder, troubles) for iteration, folder in sorted(folders.items())}, troubles)


def _operators(folder: Path, troubles: list[str]) -> list[Operator]:
    long_names = {row[0]: row[1] for row in _rows(folder / "mapping.csv", troubles) if len(row) > 1}
    table_rows = {_file_name(row[2]): row for row in _rows(folder / "operators.csv", troubles) if len(row) > 5}
    full_names = {_file_name(name): name for name in _names_of_mindspore(folder, troubles)}
    operators: dict[str, Operator] = {}

    def operator(kind: str, name: str, order: tuple[int, int]) -> Operator:
        entry = operators.get(name)
        if entry is None:
            row = table_rows.get(name)
            full_name = row[2] if row is not None else full_names.get(name, name)
            entry = operators[name] = Operator(kind, name, full_name, order, *(() if row is None else (row[3], row[5])))
        entry.order = min(entry.order, order)
        return entry

    for name in sorted(os.listdir(folder)):
        match = FILE.fullmatch(long_names.get(name, name))
        if match is None:
            if name.endswith(".npy"):
                troubles.append(translate("{path}: has no name of a dump's file").format(path=folder / name))
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
            entry = operator(values.get("Op Type", ""), values["Op Name"], order)
            entry.statistics[values["IO"], int(values["Slot"][:9])] = dict(list(values.items())[8:])
    for row in table_rows.values():
        dumped = operators.get(_file_name(row[2]))
        if len(row) > 6 and row[6].isdecimal() and dumped is not None and len(dumped.files) < int(row[6][:9]):
            text = translate("{folder}: of {operator} {missing} of {count} files are missing")
            troubles.append(text.format(folder=folder, operator=row[2], missing=int(row[6][:9]) - len(dumped.files), count=row[6][:9]))
    return sorted(operators.values(), key=lambda dumped: dumped.order)


def _names_of_mindspore(folder: Path, troubles: list[str]) -> list[str]:
    """Return the full operator names that MindSpore writes next to its dump."""
    order_folder = folder.parents[2] / "execution_order" if len(folder.parents) > 2 else folder
    try:
        tables = sorted(order_folder.glob("ms_execution_order_graph_*.csv"))
    except OSError:
        return []
    return [row[0] for table in tables for row in _rows(table, troubles) if row]


def _file_name(full_name: str) -> str:
    return re.sub(r"[./\\\s]", "_", full_name)


def _rows(path: Path, troubles: list[str]) -> Iterator[list[str]]:
    """Yield the rows of a table, except an incomplete last line, which a killed process leaves."""
    if not path.exists():
        return
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError("no plain file")
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            for number, row in enumerate(csv.reader(_lines(file))):
                if number > _MOST_LINES:
                    troubles.append(translate("{path}: the text after line {number} is left out").format(path=path, number=_MOST_LINES))
                    return
                yield row
    except (OSError, csv.Error) as error:
        troubles.append(translate("{path}: can't be read ({error})").format(path=path, error=error))


def _lines(file: Any) -> Iterator[str]:
    """Yield the complete lines of a file. Raise OSError for a line that is too long for a table."""
    while line := file.readline(_LONGEST_LINE):
        if line.endswith("\n"):
            yield line
        elif len(line) == _LONGEST_LINE:
            raise OSError(f"a line has more than {_LONGEST_LINE} characters")


# ---- comparing

def array(path: Path) -> np.ndarray[Any, Any]:
    """Return the values of an .npy file, memory-mapped. Raise Unreadable, also if the header claims more bytes than the file has."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Unreadable(translate("{path}: is no plain file.").format(path=path))
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            if version not in ((1, 0), (2, 0)):
                raise Unreadable(translate("{path}: has the unknown version {version}.").format(path=path, version=version))
            reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = reader(file, max_header_size=_HEADER)
            start, size = file.tell(), os.fstat(file.fileno()).st_size
    except (OSError, ValueError, TypeError, SyntaxError, KeyError, MemoryError, RecursionError, TokenError) as error:
        if isinstance(error, Unreadable):
            raise
        text = translate("{path}: is damaged ({error}).")
        raise Unreadable(text.format(path=path, error=f"{' '.join(str(error).split()):.100}")) from None
    if dtype.hasobject or dtype.kind not in "biufc":
        raise Unreadable(translate("{path}: holds {dtype}, expected numbers.").format(path=path, dtype=dtype))
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != size - start:
        text = translate("{path}: is damaged: {shape!s:.100} of {dtype} needs {size!s:.40} bytes, it has {present}.")
        raise Unreadable(text.format(path=path, shape=shape, dtype=dtype, size=math.prod(shape) * dtype.itemsize, present=size - start))
    if fortran and size > _LARGEST_FORTRAN:
        text = translate("{path}: {size} bytes in Fortran's order, expected {most} at most.")
        raise Unreadable(text.format(path=path, size=size, most=_LARGEST_FORTRAN))
    try:
        return np.memmap(path, dtype, "r", start, shape, "F" if fortran else "C") if math.prod(shape) else np.zeros(shape, dtype)
    except (OSError, ValueError, TypeError, OverflowError) as error:      # odd lengths, no memory to map it, truncated in the meantime
        raise Unreadable(translate("{path}: can't be read ({error})").format(path=path, error=error) + translate(".")) from None


def compare(first: Operator, second: Operator, side: str, rtol: float, atol: float) -> list[TensorComparison]:
    """Compare each input or output of two operators.

    Where tensors with the same slot differ, another slot that agrees is searched: the order of inputs and outputs depends on the kernels
    that an operator runs.
    """
    slots = [{slot for s, slot in (*operator.files, *operator.statistics) if s == side} for operator in (first, second)]
    results = {slot: _compare_tensors(first, second, (side, slot), (side, slot), rtol, atol) for slot in sorted(slots[0] & slots[1])}
    unmatched = [slot for slot in sorted(slots[0]) if slot not in results or results[slot].state == "departs"]
    free = [slot for slot in sorted(slots[1]) if slot not in results or results[slot].state == "departs"]
    for slot in unmatched:
        for another in free:
            tried = _compare_tensors(first, second, (side, slot), (side, another), rtol, atol)
            if tried.state in ("equal", "close"):
                tried.text += translate(_AS_ANOTHER[side]).format(slot=another) if another != slot else ""
                results[slot] = tried
                free.remove(another)
                break
        else:
            if slot not in results or slot not in free or (_has_other_size(results[slot]) and len(slots[0]) > 1):
                results[slot] = TensorComparison(side, slot, "alone", translate(_NO_SECOND[side]))
    for slot in free:
        if slot not in results:
            results[slot] = TensorComparison(side, slot, "alone", translate(_NO_FIRST[side]))
    return [results[slot] for slot in sorted(results)]


def _has_other_size(result: TensorComparison) -> bool:
    """Return whether the two tensors of a comparison have different numbers of values."""
    return "shape" in result.first and math.prod(result.first["shape"]) != math.prod(result.second["shape"])


def _compare_tensors(
    first: Operator, second: Operator, key: tuple[str, int], second_key: tuple[str, int], rtol: float, atol: float
) -> TensorComparison:
    files = first.files.get(key), second.files.get(second_key)
    if files[0] is not None and files[1] is not None:
        try:
            return _compare_arrays(array(files[0]), array(files[1]), key, rtol, atol)
        except Unreadable as error:
            return TensorComparison(*key, "unreadable", str(error))
    statistics = first.statistics.get(key), second.statistics.get(second_key)
    try:
        if files[0] is not None and statistics[1] is not None:
            statistics = _compute_statistics(array(files[0]), statistics[1]), statistics[1]
        elif files[1] is not None and statistics[0] is not None:
            statistics = statistics[0], _compute_statistics(array(files[1]), statistics[0])
    except Unreadable as error:
        return TensorComparison(*key, "unreadable", str(error))
    if statistics[0] is not None and statistics[1] is not None:
        return _compare_statistics(statistics[0], statistics[1], key, rtol, atol)
    text = translate("the first dump has no {side} {slot} of it" if files[0] is None else "the second dump has no {side} {slot} of it")
    return TensorComparison(*key, "alone", text.format(side=translate(key[0]), slot=key[1]))


def _compare_arrays(a: Any, b: Any, key: tuple[str, int], rtol: float, atol: float) -> TensorComparison:
    shapes = translate("shapes {first} and {second}").format(first=a.shape, second=b.shape) if a.shape != b.shape else ""
    if a.size != b.size:
        return TensorComparison(*key, "departs", shapes, _figures(a), _figures(b), math.inf)
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    is_equal, departing, largest, at = True, 0, 0.0, -1
    for start in range(0, a.size, _CHUNK):
        x, y = flat_a[start : start + _CHUNK], flat_b[start : start + _CHUNK]
        if x.dtype == y.dtype and x.tobytes() == y.tobytes():
            continue
        is_equal = False
        kind = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
        x, y = x.astype(kind), y.astype(kind)
        with np.errstate(all="ignore"):
            difference = np.abs(x - y)
            fine = (x == y) | (np.isnan(x) & np.isnan(y)) | (difference <= atol + rtol * np.abs(y))
            difference = np.where(fine & ~np.isfinite(difference), 0.0, np.where(np.isnan(difference), np.inf, difference))
        departing += int((~fine).sum())
        if difference.max() > largest or at < 0:
            largest, at = float(difference.max()), start + int(difference.argmax())
    if is_equal:         # a reshaped tensor may have been dumped with either shape
        text = translate("; ").join(filter(None, (translate("equal in every bit"), shapes)))
        return TensorComparison(*key, "close" if shapes else "equal", text)
    where = tuple(int(i) for i in np.unravel_index(at, a.shape)) if a.ndim else ()
    text = translate("largest difference {largest:.6g} at {where}: {first} and {second}") if where else translate(
        "largest difference {largest:.6g}: {first} and {second}")
    parts = [text.format(largest=largest, where=where, first=flat_a[at], second=flat_b[at])]
    if departing:
        parts.append(translate("{count} of {total} elements differ").format(count=departing, total=a.size))
    if shapes:
        parts.append(shapes)
    if a.dtype != b.dtype:
        parts.append(translate("{first} and {second}").format(first=a.dtype, second=b.dtype))
    text = translate("; ").join(parts)
    return TensorComparison(*key, "departs" if departing else "close", text, _figures(a), _figures(b), largest)


def _figures(values: Any) -> dict[str, Any]:
    """Return statistics of one side."""
    flat = values.reshape(-1)
    nan = infinite = zero = 0
    minimum, maximum, total = math.inf, -math.inf, 0.0
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        wide = (np.abs(part) if part.dtype.kind == "c" else part).astype(np.float64)
        finite = wide[np.isfinite(wide)]
        nan, infinite, zero = nan + int(np.isnan(wide).sum()), infinite + int(np.isinf(wide).sum()), zero + int((wide == 0).sum())
        if finite.size:
            minimum, maximum, total = min(minimum, float(finite.min())), max(maximum, float(finite.max())), total + float(finite.sum())
    count = flat.size - nan - infinite
    return {"shape": list(values.shape), "dtype": str(values.dtype), "min": minimum if count else None, "max": maximum if count else None,
            "mean": total / count if count else None, "nan": nan, "inf": infinite, "zero": zero}


def _compute_statistics(values: Any, titles: dict[str, str]) -> dict[str, str]:
    """Return the statistics of a tensor under the titles that the other side has. Sums are computed in float64."""
    wide = np.abs(values) if values.dtype.kind == "c" else values
    wide = wide.astype(np.float64).reshape(-1)
    finite = wide[~np.isnan(wide)]
    with np.errstate(all="ignore"):
        all_statistics: dict[str, Any] = {
            "Shape": str(values.shape), "Count": wide.size, "NaN Count": int(np.isnan(wide).sum()),
            "Negative Inf Count": int(np.isneginf(wide).sum()), "Positive Inf Count": int(np.isposinf(wide).sum()),
            "Zero Count": int((wide == 0).sum()), "Max Value": finite.max() if finite.size else None,
            "Min Value": finite.min() if finite.size else None, "Avg Value": wide.mean() if wide.size else None,
            "L2Norm Value": float(np.sqrt((wide * wide).sum())),
        }
    return {title: str(all_statistics[title]) for title in titles if all_statistics.get(title) is not None}


_NOT_COMPARED = ("MD5", "Data Size", "Data Type", "Zero Count", "Negative Zero Count", "Positive Zero Count")
"""Statistics that may differ between tensors that agree within a tolerance."""


def _compare_statistics(a: dict[str, str], b: dict[str, str], key: tuple[str, int], rtol: float, atol: float) -> TensorComparison:
    departing, is_same = [], all(title in b for title in a)
    largest = max((abs(_number(side.get(title, ""))) for side in (a, b) for title in ("Max Value", "Min Value")), default=0.0)
    for title in a:
        if title not in b or a[title] == b[title]:
            continue
        is_same = False
        if title in _NOT_COMPARED:
            continue
        if title == "Shape":
            lengths = [[int(length[:18]) for length in re.findall(r"\d+", side[title])] for side in (a, b)]
            is_close = math.prod(lengths[0]) == math.prod(lengths[1])      # a reshaped tensor may have been dumped with either shape
        else:
            x, y = _number(a[title]), _number(b[title])
            scale = max(abs(y), largest) if title == "Avg Value" and math.isfinite(largest) else abs(y)   # an average may cancel
            is_close = x == y or abs(x - y) <= atol + rtol * scale or (math.isnan(x) and math.isnan(y))
        if not is_close:
            departing.append(translate("{title} {first} and {second}").format(title=title, first=a[title], second=b[title]))
    state = "departs" if departing else "equal" if is_same else "close"
    text = translate("statistics: ") + (translate("; ").join(departing) or translate("they agree"))
    return TensorComparison(*key, state, text, dict(a), dict(b))


def _number(text: str) -> float:
    """Return the number in a text, or NaN if there is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
