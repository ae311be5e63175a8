"""Kinds whose values name files and directories."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Iterable, Mapping
from typing import Any

from torchspore.base import json_text
from torchspore.base.files import read_plain
from torchspore.base.paths import absolute
from torchspore.context.kinds.plain import Kind, Wrong
from torchspore.errors import OptionPathError, OptionTypeError, OptionValueError, TorchsporeError
from torchspore.translations import translate

_MOST_JSON = 16 << 20
"""Largest size in bytes of a file of options."""


def _is_valid_path(value: str) -> bool:
    """Return whether a file can have this name; an unpaired surrogate can't be encoded."""
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


class Path(Kind):
    """The path of a file that need not exist; stored as written unless `resolve`."""

    stub = "str"

    def __init__(self, resolve: bool = False, not_directory: bool = False) -> None:
        self.resolve, self.not_directory = resolve, not_directory

    @property
    def expected(self) -> str:
        return translate("the path of a file")

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise self.wrong_type()
        if not _is_valid_path(value):
            raise self.wrong_value(value.encode(errors="ignore").decode().replace("\0", ""))
        if self.not_directory and (not value or os.path.isdir(value)):
            raise Wrong(OptionPathError, translate("the path of a file, not of a directory"))
        return absolute(value) if self.resolve else value


class Folder(Path):
    """The path of a directory that need not exist."""

    @property
    def expected(self) -> str:
        return translate("the path of a directory")


class PrintPath(Path):
    """The path of a file to be created: `.` and the seconds since 1970 are appended if it exists."""

    def parse(self, value: object) -> str:
        path = super().parse(value)
        if not os.path.exists(path):
            return path
        stamped = f"{path}.{int(time.time())}"
        if os.path.exists(stamped):
            expected = translate("the path of a file that does not exist; {path} exists too").format(path=stamped)
            raise Wrong(OptionValueError, expected, hint=translate("wait for a second"))
        return stamped


class Absolute(Kind):
    """The absolute path of a directory."""

    stub = "str"

    @property
    def expected(self) -> str:
        return translate("the absolute path of a directory, such as '/tmp/records'")

    def parse(self, value: object) -> str:
        if not isinstance(value, str):
            raise self.wrong_type()
        if not os.path.isabs(value) or not _is_valid_path(value):
            raise self.wrong_value(absolute(value) if _is_valid_path(value) and value else None)
        return value

    def parse_text(self, raw: str) -> str:
        return self.parse(absolute(raw) if _is_valid_path(raw) else raw)     # relative to the current folder


class Directory(Kind):
    """The path of a directory, returned as an absolute path; setting the option creates the directory."""

    stub = "str"
    none: type[TorchsporeError] = OptionValueError

    @property
    def expected(self) -> str:
        return translate("the path of a directory")

    def parse(self, value: object) -> str:
        self.refuse_none(value)
        if not isinstance(value, str):
            raise self.wrong_type()
        if not value.strip():
            raise self.wrong_value(".")
        if not _is_valid_path(value):
            raise self.wrong_value(value.encode(errors="ignore").decode().replace("\0", ""))
        return absolute(value)


class ExistingFile(Kind):
    """The path of an existing file, stored as written; with `empty`, '' and None mean no file."""

    def __init__(self, what: str = "a file", empty: bool = False, resolve: bool = False) -> None:
        self.description, self.empty, self.resolve = what, empty, resolve

    @property
    def stub(self) -> str:  # type: ignore[override]
        return "str | None" if self.empty else "str"

    @property
    def expected(self) -> str:
        return translate("the path of {file} that exists").format(file=translate(self.description))

    def parse(self, value: object) -> Any:
        if self.empty and value in ("", None):
            return value
        if not isinstance(value, str):
            raise Wrong(OptionTypeError, self.expected)
        if not value or not _is_valid_path(value) or not os.path.exists(value):
            raise self.wrong_value()
        if os.path.isdir(value):
            raise self.wrong_value(hint=translate("{path} is a directory").format(path=value))
        return absolute(value) if self.resolve else value


class JsonFile(ExistingFile):
    """The path of a JSON file with an object of sections; its members are named `section.member`."""

    def __init__(self, other_names: dict[str, str]) -> None:
        super().__init__("a JSON file", resolve=True)
        self.other_names = other_names

    def parse(self, value: object) -> Any:
        path = super().parse(value)
        read_object(path, self.expected)
        return path

    def members(self, path: str) -> dict[str, Any]:
        """Return the members that torchspore knows, by name."""
        members: list[tuple[str, Any]] = []
        for section, content in read_object(path, self.expected).items():
            if isinstance(content, dict):
                members += [(f"{section}.{name}", item) for name, item in content.items()]
            if not isinstance(content, dict) or section in self.other_names:
                members.append((section, content))
        return canonical_members(members, self.other_names, self.expected)


class SpeedUpFile(ExistingFile):
    """The path of a JSON file whose members are separate options, which are set with the path; '' and None mean no file."""

    def __init__(self) -> None:
        super().__init__("a JSON file", empty=True)

    def parse(self, value: object) -> Any:
        path = super().parse(value)
        if path:
            read_object(path, self.expected)
        return path


def canonical_members(members: Iterable[tuple[str, Any]], other_names: Mapping[str, str], expected: str) -> dict[str, Any]:
    """Return the members by canonical name; raise Wrong if two names of one member have different values."""
    values: dict[str, Any] = {}
    spellings: dict[str, str] = {}
    for name, item in members:
        canonical_name = other_names.get(name, name)
        if canonical_name in values and values[canonical_name] != item:
            hint = translate("{first} and {second} are two names of one member; write it once")
            raise Wrong(OptionValueError, expected, hint=hint.format(first=spellings[canonical_name], second=name))
        values[canonical_name], spellings[canonical_name] = item, name
    return values


def read_json(path: str) -> Any:
    """Return the content of a JSON file. Raise OSError, also for a special file, and ValueError for invalid JSON or an absurd size."""
    if os.stat(path).st_size > _MOST_JSON:
        raise ValueError(f"more than {_MOST_JSON >> 20} MiB")
    return json_text.parse(read_plain(pathlib.Path(path)).decode())


def read_object(path: str, expected: str) -> dict[str, Any]:
    """Read a JSON file with one object; raise Wrong with the problem."""
    try:
        content = read_json(path)
    except OSError as error:
        hint = translate("{path} cannot be read: {reason}").format(path=path, reason=error.strerror)
        raise Wrong(OptionValueError, expected, hint=hint) from None
    except ValueError as error:
        raise Wrong(OptionValueError, translate("a file of JSON"), hint=f"{path}: {error}") from None
    if not isinstance(content, dict):
        hint = translate("{path} holds a {kind}").format(path=path, kind=type(content).__name__)
        raise Wrong(OptionValueError, translate("a file with one JSON object"), hint=hint)
    return content
