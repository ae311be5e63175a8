"""Sources of published data sets: what such a class declares, and the reading that all of them share.

A class declares its signature as one line, with ROWS and CHOICE for what all sources have, the values that its arguments take, its columns,
and `_list`, which gives one entry for each row without reading any picture. `_row` makes a row of an entry when it is asked for.
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
from torchspore.mindspore.dataset.core.recording import recorded
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_callable, check_choice, check_int, check_type
from torchspore.mindspore.dataset.engine.dataset import VisionBaseDataset
from torchspore.mindspore.dataset.engine.mappable import MappableDataset
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.mindspore.dataset.engine.samplers import Shuffle

PICTURES = (".jpg", ".jpeg", ".png", ".bmp")
_SHORTHANDS = {
    "ROWS": "num_samples=None, num_parallel_workers=None, shuffle=None",
    "CHOICE": "sampler=None, num_shards=None, shard_id=None, cache=None",
    "LINES": "num_samples=None, num_parallel_workers=None, shuffle=GLOBAL, num_shards=None, shard_id=None, cache=None",
}
_SHARED = {"num_samples", "num_parallel_workers", "shuffle", "sampler", "num_shards", "shard_id", "cache"}


def signature(arguments: str) -> inspect.Signature:
    """The signature that a line of arguments says: names, defaults that are literals or GLOBAL, and the shorthands."""
    for name, text in _SHORTHANDS.items():
        arguments = re.sub(rf"\b{name}\b", text, arguments)
    said = ast.parse(f"def f(self, {arguments}): 0").body[0].args  # type: ignore[attr-defined]
    defaults: list[Any] = [Shuffle.GLOBAL if isinstance(one, ast.Name) else ast.literal_eval(one) for one in said.defaults]
    defaults = [inspect.Parameter.empty] * (len(said.args) - len(defaults)) + defaults
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(one.arg, kind, default=value) for one, value in zip(said.args, defaults, strict=True)])


def constructor(arguments: str) -> Callable[..., None]:
    """An `__init__` of this signature, which hands all arguments by name to `_begin`."""
    declared = signature(arguments)

    def __init__(self: Any, *given: Any, **named: Any) -> None:
        try:
            bound = declared.bind(self, *given, **{self.old_names.get(name, name): value for name, value in named.items()})
        except TypeError as error:
            raise TypeError(message(f"{type(self).__name__}(...): {error}", f"the arguments {declared}")) from None
        bound.apply_defaults()
        del bound.arguments["self"]
        self._begin(**bound.arguments)

    __init__.__signature__ = declared  # type: ignore[attr-defined]
    return __init__


def check_folder(call: str, folder: Any, name: str = "dataset_dir") -> Path:
    """The folder as a Path. Raises TypeError for what is no path, ValueError where there is no such folder."""
    return _existing(call, folder, name, "folder", Path.is_dir)


def check_file(call: str, file: Any, name: str) -> Path:
    """The file as a Path. Raises TypeError for what is no path, ValueError where there is no such file."""
    return _existing(call, file, name, "file", Path.is_file)


def _existing(call: str, given: Any, name: str, kind: str, is_there: Callable[[Path], bool]) -> Path:
    check_type(call, name, given, (str, Path), "a path")
    path = Path(given).expanduser()
    if not is_there(path):
        raise ValueError(message(f"{call}({name}={str(given)!r})", f"a {kind} that exists (looked for {path.resolve()})"))
    return path


def _flag(call: str, value: Any, name: str) -> bool:
    if value is None:
        return False
    check_bool(call, name, value)
    return value


def _list_of_text(call: str, value: Any, name: str) -> Any:
    if value is not None:
        check_type(call, name, value, list, "a list of str")
        for one in value:
            check_type(call, name, one, str, "a list of str")
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
    """What a declared class has beside its base: a constructor of its signature, and its arguments checked and kept as attributes."""

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {}
    """The values of arguments that have a fixed set of them; the first one is what None means."""

    old_names: ClassVar[dict[str, str]] = {}
    """What 1.x called arguments, and what they are called since."""

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
        """Looks at the arguments together."""

    def _start(self, call: str, shared: dict[str, Any]) -> None:
        raise NotImplementedError


class ListedDataset(Declared, MappableDataset):
    """A source with one entry for each row, listed once when it is first needed."""

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
        """A dataset with a sampler of its own over the same entries."""
        made = copy.copy(self)
        made.sampler = copy.deepcopy(self.sampler, memory)
        memory[id(self)] = made
        return made

    def _columns(self) -> list[str]:
        return list(self.columns)

    def _entries(self) -> Sequence[Any]:
        if self._listed is not None:
            return self._listed
        with self._lock:
            if self._listed is None:
                found = self._list()
                if not len(found):
                    raise DataMissing(message(f"{type(self).__name__}: {self._place()}", "files of this data set; there is none"))
                self._listed = found
            return self._listed

    def _place(self) -> Any:
        """Where the data lies, for a message."""
        return self.dataset_dir

    def _list(self) -> Sequence[Any]:
        raise NotImplementedError

    def _count(self) -> int:
        return len(self._entries())

    def _read(self, index: int) -> Row:
        return self._row(self._entries()[index])

    def _row(self, entry: Any) -> Row:
        """A row of (picture, label)."""
        path, label = entry
        return self._picture(path), np.array(label, self._label_type)

    _label_type: ClassVar[Any] = np.uint32

    def _class_labels(self, column: str) -> list[Any]:
        if self._columns()[1:] != [column]:
            return super()._class_labels(column)
        labels = self._row_labels()
        return super()._class_labels(column) if any(np.ndim(label) for label in labels) else labels

    def _row_labels(self) -> list[Any]:
        """The label of each row."""
        labels = [entry[1] for entry in self._entries()]
        return [label.item() if isinstance(label, np.ndarray) and not label.ndim else label for label in labels]

    def _picture(self, path: Path) -> np.ndarray:
        """The bytes of a picture, with `decode` its pixels (H, W, 3)."""
        content = self.decrypt(str(path)) if self.decrypt is not None else read_file(path)
        image = np.frombuffer(content, np.uint8)
        if not self.decode:
            return image
        from torchspore.mindspore.dataset.vision.pictures import decode

        return decode(image, str(path))


class PictureDataset(ListedDataset, VisionBaseDataset):
    """A listed source of pictures."""


class Joined(Sequence[Any]):
    """Several files of equal columns as one sequence: each part is a tuple of arrays, of which each row takes its own."""

    def __init__(self, parts: Sequence[tuple[np.ndarray, ...]]) -> None:
        self._parts = list(parts)
        self._ends = list(itertools.accumulate(len(part[0]) for part in self._parts))

    def __len__(self) -> int:
        return self._ends[-1] if self._parts else 0

    def __getitem__(self, index: Any) -> tuple[np.ndarray, ...]:
        number = bisect.bisect_right(self._ends, index)
        place = index - (self._ends[number - 1] if number else 0)
        return tuple([column[place, ...] for column in self._parts[number]])


def mapped(path: Path, width: int) -> np.ndarray:
    """A file of records of `width` bytes as an array (records, width), of which only what is asked for is read."""
    if not path.is_file():
        kind, expected = (DataDamaged, "a plain file") if path.exists() else (DataMissing, "this file of the data set")
        raise kind(message(str(path), expected))
    size = path.stat().st_size
    if not size or size % width:
        raise DataDamaged(message(f"{path}: {size} bytes", f"a multiple of {width}; the file is cut short"))
    return np.asarray(np.memmap(path, np.uint8, "r")).reshape(-1, width)


def read_file(path: Path) -> bytes:
    """The content of a file. Raises DataMissing, which names it."""
    if not path.is_file():
        raise DataMissing(message(str(path), "this file of the data set"))
    return path.read_bytes()


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers from 1, without empty ones. Raises DataMissing, DataDamaged, which name it."""
    for number, line in text_lines(path):
        if line.strip():
            yield number, line.rstrip("\r")


def text_lines(path: Path, *, empty: bool = False) -> Iterator[tuple[int, str]]:
    """(number from 1, line) of a text file, without the newline; of empty lines only with `empty`. Raises DataMissing, DataDamaged."""
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
    """The parts of each line. Raises DataDamaged, which names file and line, where there are fewer than `least`."""
    for number, line in lines(path):
        parts = line.split(separator)
        if len(parts) < least:
            raise damaged(path, number, line, expected)
        yield parts


def damaged(path: Path, number: int, line: str, expected: str) -> DataDamaged:
    """The error for a line that is not as the layout has it."""
    return DataDamaged(message(f"{path}, line {number}: {short(line)}", expected))


def folder_of(path: Path) -> Path:
    """A folder of the layout. Raises DataMissing, which names it."""
    if not path.is_dir():
        raise DataMissing(message(str(path), "this folder of the data set"))
    return path


def folders(path: Path) -> list[Path]:
    """The folders in a folder, sorted."""
    return sorted(one for one in folder_of(path).iterdir() if one.is_dir())


def pictures(path: Path, suffixes: Iterable[str] = PICTURES) -> list[Path]:
    """The pictures that lie in a folder, sorted."""
    wanted = tuple(suffixes)
    return sorted(one for one in folder_of(path).iterdir() if one.suffix.lower() in wanted and one.is_file())


def label_of(path: Path, name: str, labels: Mapping[str, int]) -> int:
    """The label of a class. Raises DataDamaged, which names the file, for one that is unknown."""
    if name not in labels:
        raise DataDamaged(message(f"{path}: class {short(name)}", list_choices(sorted(labels)[:8]) if labels else "a known class"))
    return labels[name]
