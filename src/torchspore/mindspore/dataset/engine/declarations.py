"""Base classes of published data sets: the declarations of a class, and the common reading code.

A class declares its signature as one line (ROWS and CHOICE stand for the common arguments), the valid values of its arguments, its columns,
and `_list`, which returns one entry for each row without reading any picture. `_row` makes a row of an entry on demand.
"""
from __future__ import annotations

import ast
import bisect
import copy
import inspect
import itertools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from torchspore.base.text import list_choices, message, short
from torchspore.errors import DataDamaged, DataMissing
from torchspore.mindspore.dataset.core.constructor_arguments import recorded
from torchspore.mindspore.dataset.core.validator_helpers import (
    check_bool,
    check_callable,
    check_choice,
    check_int,
    check_type,
    with_sentence,
)
from torchspore.mindspore.dataset.engine.dataset import VisionBaseDataset
from torchspore.mindspore.dataset.engine.mappable import MappableDataset
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.mindspore.dataset.engine.samplers import Shuffle
from torchspore.translations import translate

PICTURES = (".jpg", ".jpeg", ".png", ".bmp")
_SHORTHANDS = {
    "ROWS": "num_samples=None, num_parallel_workers=None, shuffle=None",
    "CHOICE": "sampler=None, num_shards=None, shard_id=None, cache=None",
    "LINES": "num_samples=None, num_parallel_workers=None, shuffle=GLOBAL, num_shards=None, shard_id=None, cache=None",
}
_SHARED = {"num_samples", "num_parallel_workers", "shuffle", "sampler", "num_shards", "shard_id", "cache"}


def signature(arguments: str) -> inspect.Signature:
    """Parse a line of arguments into a signature: names, defaults that are literals or GLOBAL, and the shorthands."""
    for name, text in _SHORTHANDS.items():
        arguments = re.sub(rf"\b{name}\b", text, arguments)
    arguments_node = ast.parse(f"def f(self, {arguments}): 0").body[0].args  # type: ignore[attr-defined]
    defaults: list[Any] = [
        Shuffle.GLOBAL if isinstance(default, ast.Name) else ast.literal_eval(default) for default in arguments_node.defaults
    ]
    defaults = [inspect.Parameter.empty] * (len(arguments_node.args) - len(defaults)) + defaults
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named_defaults = zip(arguments_node.args, defaults, strict=True)
    return inspect.Signature([inspect.Parameter(argument.arg, kind, default=default) for argument, default in named_defaults])


def constructor(arguments: str) -> Callable[..., None]:
    """Return an `__init__` with this signature that passes all arguments by name to `_begin`."""
    declared = signature(arguments)

    def __init__(self: Any, *args: Any, **named: Any) -> None:
        try:
            bound = declared.bind(self, *args, **{self.old_names.get(name, name): value for name, value in named.items()})
        except TypeError as error:
            raise TypeError(message(f"{type(self).__name__}(...): {error}", f"the arguments {declared}")) from None
        bound.apply_defaults()
        del bound.arguments["self"]
        self._begin(**bound.arguments)

    __init__.__signature__ = declared  # type: ignore[attr-defined]
    return __init__


def check_folder(call: str, folder: Any, name: str = "dataset_dir") -> Path:
    """Return the folder as a Path. Raises TypeError if the value is not a path, ValueError if the folder does not exist."""
    return _existing(call, folder, name, "folder", Path.is_dir)


def check_file(call: str, file: Any, name: str) -> Path:
    """Return the file as a Path. Raises TypeError if the value is not a path, ValueError if the file does not exist."""
    return _existing(call, file, name, "file", Path.is_file)


def _existing(call: str, value: Any, name: str, kind: str, exists: Callable[[Path], bool]) -> Path:
    check_type(call, name, value, (str, Path), "a path")
    path = Path(value).expanduser()
    if not exists(path):
        expected = (translate("a file that exists (looked for {path})") if kind == "file" else
                    translate("a folder that exists (looked for {path})"))
        text = message(f"{call}({name}={str(value)!r})", expected.format(path=path.resolve()))
        kind_of_path = f"file {value} does not exist" if kind == "file" else f"folder {value} does not exist or is not a directory"
        raise ValueError(with_sentence(text, f"The {kind_of_path} or permission denied!"))
    return path


def _flag(call: str, value: Any, name: str) -> bool:
    if value is None:
        return False
    check_bool(call, name, value)
    return value


def _list_of_text(call: str, value: Any, name: str) -> Any:
    if value is not None:
        check_type(call, name, value, list, "a list of str")
        for item in value:
            check_type(call, name, item, str, "a list of str")
    return value


def _indexing(call: str, value: Any, name: str) -> Any:
    if value is not None:
        check_type(call, name, value, dict, "a dict from class name to label")
        for key, number in value.items():
            check_type(call, name, key, str, "a dict from class name to label")
            check_int(call, name, number, 0)
    return value


def _function(call: str, value: Any, name: str) -> Any:
    if value is not None:
        check_callable(call, name, value)
    return value


_CHECKS: dict[str, Callable[[str, Any, str], Any]] = {
    "dataset_dir": check_folder, "annotation_file": check_file, "dataset_file": check_file, "decode": _flag, "extra_metadata": _flag,
    "class_indexing": _indexing, "extensions": _list_of_text, "classes": _list_of_text, "decrypt": _function, "compat": _flag,
}


class Declared:
    """Adds to a declared class a constructor with its signature, which checks the arguments and stores them as attributes."""

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {}
    """The valid values of arguments with a fixed set; None means the first one."""

    old_names: ClassVar[dict[str, str]] = {}
    """The 1.x names of arguments, and their current names."""

    def __init_subclass__(cls, arguments: str | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if arguments is not None:
            cls.__init__ = recorded(cls, constructor(arguments))  # type: ignore[method-assign]

    def _begin(self, **arguments: Any) -> None:
        call = type(self).__name__
        for name, value in arguments.items():
            if name in _SHARED:
                continue
            if name in self.choices:
                choices = self.choices[name]
                value = choices[0] if value is None else value
                check_choice(call, name, value, (*choices[1:], "all") if choices[0] == "all" else choices)
            elif name in _CHECKS:
                value = _CHECKS[name](call, value, name)
            setattr(self, f"_{name}" if callable(getattr(type(self), name, None)) else name, value)
        self._check()
        self._start(call, {name: arguments.get(name) for name in _SHARED})

    def _check(self) -> None:
        """Check the combination of arguments."""

    def _start(self, call: str, shared: dict[str, Any]) -> None:
        raise NotImplementedError


class ListedDataset(Declared, MappableDataset):
    """A source with one entry for each row, listed once on first use."""

    columns: ClassVar[tuple[str, ...]] = ("image", "label")
    dataset_dir: Path
    usage: Any
    decode: bool = False
    decrypt: Any = None

    def _start(self, call: str, shared: dict[str, Any]) -> None:
        super().__init__(call, **shared)
        self._listed: Sequence[Any] | None = None
        self._lock = threading.Lock()

    def __deepcopy__(self, memory: dict[int, Any]) -> ListedDataset:
        """Return a dataset with a separate sampler over the same entries."""
        copied = copy.copy(self)
        copied.sampler = copy.deepcopy(self.sampler, memory)
        memory[id(self)] = copied
        return copied

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _entries(self) -> Sequence[Any]:
        if self._listed is not None:
            return self._listed
        with self._lock:
            if self._listed is None:
                entries = self._list()
                if not len(entries):
                    raise DataMissing(message(f"{type(self).__name__}: {self._location()}", "files of this data set; there is none"))
                self._listed = entries
            return self._listed

    def _location(self) -> Any:
        """Return the location of the data, for a message."""
        return self.dataset_dir

    def _list(self) -> Sequence[Any]:
        raise NotImplementedError

    def _count(self) -> int:
        return len(self._entries())

    def _read(self, index: int) -> Row:
        return self._row(self._entries()[index])

    def _row(self, entry: Any) -> Row:
        """Return a row of (picture, label)."""
        path, label = entry
        return self._picture(path), np.array(label, self._label_type)

    _label_type: ClassVar[Any] = np.uint32

    def _class_labels(self, column: str) -> list[Any]:
        if self._columns()[1:] != [column]:
            return super()._class_labels(column)
        labels = self._row_labels()
        return super()._class_labels(column) if any(np.ndim(label) for label in labels) else labels

    def _row_labels(self) -> list[Any]:
        """Return the label of each row."""
        labels = [entry[1] for entry in self._entries()]
        return [label.item() if isinstance(label, np.ndarray) and not label.ndim else label for label in labels]

    def _picture(self, path: Path) -> np.ndarray:
        """Return the bytes of a picture, with `decode` its pixels (H, W, 3)."""
        content = self.decrypt(str(path)) if self.decrypt is not None else read_file(path)
        image = np.frombuffer(content, np.uint8)
        if not self.decode:
            return image
        from torchspore.mindspore.dataset.vision.images import decode

        return decode(image, str(path))


class PictureDataset(ListedDataset, VisionBaseDataset):
    """A listed source of pictures."""


class Joined(Sequence[Any]):
    """Several files with equal columns as one sequence: each part is a tuple of arrays, from which a row takes one element each."""

    def __init__(self, parts: Sequence[tuple[np.ndarray, ...]]) -> None:
        self._parts = list(parts)
        self._ends = list(itertools.accumulate(len(part[0]) for part in self._parts))

    def __len__(self) -> int:
        return self._ends[-1] if self._parts else 0

    def __getitem__(self, index: Any) -> tuple[np.ndarray, ...]:
        number = bisect.bisect_right(self._ends, index)
        offset = index - (self._ends[number - 1] if number else 0)
        return tuple([column[offset, ...] for column in self._parts[number]])


def mapped(path: Path, width: int) -> np.ndarray:
    """Return a file of records of `width` bytes as a lazily read array (records, width)."""
    if not path.is_file():
        kind, expected = (DataDamaged, "a plain file") if path.exists() else (DataMissing, "this file of the data set")
        raise kind(message(str(path), expected))
    size = path.stat().st_size
    if not size or size % width:
        raise DataDamaged(message(f"{path}: {size} bytes", f"a multiple of {width}; the file is truncated"))
    return np.asarray(np.memmap(path, np.uint8, "r")).reshape(-1, width)


def read_file(path: Path) -> bytes:
    """Return the content of a file. Raises DataMissing, which names it."""
    if not path.is_file():
        raise DataMissing(message(str(path), "this file of the data set"))
    return path.read_bytes()


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the non-empty lines of a text file with their numbers from 1. Raises DataMissing, DataDamaged, which name it."""
    for number, line in text_lines(path):
        if line.strip():
            yield number, line.rstrip("\r")


def text_lines(path: Path, *, empty: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line) of a text file, without the newline; empty lines only with `empty`. Raises DataMissing, DataDamaged."""
    if not path.is_file():
        raise DataMissing(message(str(path), "this file of the data set"))
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.removesuffix(b"\n").decode()
            except UnicodeDecodeError as error:
                raise DataDamaged(message(f"{path}, line {number}: {error.reason}", "a text file of UTF-8")) from None
            if text or empty:
                yield number, text


def fields(path: Path, expected: str, separator: str | None = None, *, least: int) -> Iterator[list[str]]:
    """Yield the parts of each line. Raises DataDamaged, which names file and line, if there are fewer than `least`."""
    for number, line in lines(path):
        parts = line.split(separator)
        if len(parts) < least:
            raise damaged(path, number, line, expected)
        yield parts


def damaged(path: Path, number: int, line: str, expected: str) -> DataDamaged:
    """Return the error for a line that does not match the layout."""
    return DataDamaged(message(f"{path}, line {number}: {short(line)}", expected))


def folder_of(path: Path) -> Path:
    """Return a folder of the layout. Raises DataMissing, which names it."""
    if not path.is_dir():
        raise DataMissing(message(str(path), "this folder of the data set"))
    return path


def folders(path: Path) -> list[Path]:
    """Return the folders in a folder, sorted."""
    return sorted(entry for entry in folder_of(path).iterdir() if entry.is_dir())


def pictures(path: Path, suffixes: Iterable[str] = PICTURES) -> list[Path]:
    """Return the pictures in a folder, sorted."""
    allowed = tuple(suffixes)
    return sorted(entry for entry in folder_of(path).iterdir() if entry.suffix.lower() in allowed and entry.is_file())


def label_of(path: Path, name: str, labels: Mapping[str, int]) -> int:
    """Return the label of a class. Raises DataDamaged, which names the file, for an unknown class."""
    if name not in labels:
        raise DataDamaged(message(f"{path}: class {short(name)}", list_choices(sorted(labels)[:8]) if labels else "a known class"))
    return labels[name]
