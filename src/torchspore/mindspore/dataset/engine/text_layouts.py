"""Layouts of text files that several sources share: lines, CSV tables, tagged words, translations."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar
from xml.sax.saxutils import unescape

import numpy as np

from torchspore.base.text import message, short
from torchspore.errors import DataDamaged
from torchspore.mindspore.dataset.core.validator_helpers import check_type
from torchspore.mindspore.dataset.engine.declarations import damaged, folder_of, text_lines
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.mindspore.dataset.engine.streams import TextStream


class PlainText(TextStream):
    """Lines from files with fixed names."""

    choices = {"usage": ("all", "train", "test", "valid")}
    _name: ClassVar[str]

    def _files(self) -> Sequence[Any]:
        return [self.dataset_dir / self._name.format(part) for part in ("test", "train", "valid") if self.usage in (part, "all")]

    def _rows(self, file: Path) -> Iterator[Row]:
        return ((np.array(line),) for _, line in text_lines(file))


def table(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield (number of its first line, fields) of each row of a CSV file; a quoted field may contain newlines, and '""' for a quote.

    Raises DataDamaged, which names file and line, for quotes that do not end.
    """
    field = re.compile(rf'"([^"]*(?:""[^"]*)*)"|([^{re.escape(delimiter)}"]*)')
    waiting: list[str] = []
    first = 0
    for number, line in text_lines(path, empty=True):
        first = first if waiting else number
        is_odd = line.count('"') % 2 == 1
        if is_odd == bool(waiting):           # a complete row, or the end of an open field
            line, waiting = "\n".join([*waiting, line.removesuffix("\r")]), []
            if line:
                yield first, list(_quoted(path, first, line, field, delimiter)) if '"' in line else line.split(delimiter)
        else:
            waiting.append(line)
    if waiting:
        raise damaged(path, first, waiting[0], "a quote at the end of the field that begins with one")


def _quoted(path: Path, number: int, line: str, field: re.Pattern[str], delimiter: str) -> Iterator[str]:
    position = 0
    while True:
        match = field.match(line, position)
        assert match is not None
        yield match[1].replace('""', '"') if match[1] is not None else match[2]
        position = match.end()
        if position == len(line):
            return
        if line[position] != delimiter:
            raise damaged(path, number, line[position:], f"{delimiter!r} or the end of the line after a field in quotes")
        position += 1


class Tables(TextStream):
    """Rows of `train.csv` and `test.csv`, all of them text."""

    choices = {"usage": ("all", "train", "test")}
    _order: ClassVar[tuple[str, str]] = ("test", "train")

    def _files(self) -> Sequence[Any]:
        return [self.dataset_dir / f"{part}.csv" for part in self._order if self.usage in (part, "all")]

    def _rows(self, file: Path) -> Iterator[Row]:
        for number, values in table(file):
            if len(values) != len(self.columns):
                raise damaged(file, number, ",".join(values), f"{len(self.columns)} fields: {', '.join(self.columns)}")
            yield tuple(np.array(value) for value in values)


class TaggedWords(TextStream):
    """Sentences with one word per line, each followed by an empty line; each column is (N,) of text."""

    _separator: ClassVar[str]

    def _rows(self, file: Path) -> Iterator[Row]:
        words: list[list[str]] = []
        for number, line in text_lines(file, empty=True):
            line = line.rstrip("\r")
            if line:
                words.append(line.split(self._separator))
                if len(words[-1]) < 3:
                    raise damaged(file, number, line, "a word and two tags")
            elif words:
                yield tuple(np.array(column) for column in zip(*(word[:3] for word in words), strict=True))
                words = []
        if words:
            yield tuple(np.array(column) for column in zip(*(word[:3] for word in words), strict=True))


class Translations(TextStream):
    """Pairs of files with the same sentences in two languages: the columns text and translation."""

    columns = ("text", "translation")
    language_pair: Any
    _languages: ClassVar[tuple[tuple[str, str], ...]]

    def _check(self) -> None:
        pair = self._languages[0] if self.language_pair is None else self.language_pair
        call = type(self).__name__
        check_type(call, "language_pair", pair, (list, tuple), "a pair such as ('de', 'en')")
        if tuple(pair) not in self._languages:
            raise ValueError(message(f"{call}(language_pair={short(pair)})", f"one of {', '.join(map(str, self._languages))}"))
        self.language_pair = tuple(pair)

    def _sentences(self, path: Path) -> Iterator[str]:
        return (line for _, line in text_lines(path))

    def _rows(self, file: tuple[Path, Path]) -> Iterator[Row]:
        source, target = map(self._sentences, file)
        for number, sentence in enumerate(source):
            other = next(target, None)
            if other is None:
                raise DataDamaged(message(f"{file[1]}: {number} sentences", f"as many as {file[0].name} has; the file is truncated"))
            yield np.array(sentence), np.array(other)
        if next(target, None) is not None:
            raise DataDamaged(message(f"{file[0]}: fewer sentences than {file[1].name}", "as many; the file is truncated"))


class Talks(Translations):
    """Transcribed talks of IWSLT: lines of `train.tags.*`, and segments of XML files."""

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {"usage": ("all", "train", "valid", "test")}
    _year: ClassVar[str]

    def _talks(self) -> tuple[Path, str, str]:
        """Return the folder, and the names of the sets for validation and test."""
        raise NotImplementedError

    def _files(self) -> Sequence[Any]:
        folder, valid, test = self._talks()
        pair = "-".join(self.language_pair)
        names = {
            "train": f"train.tags.{pair}.{{}}", "valid": f"IWSLT{self._year}.TED.{valid}.{pair}.{{}}.xml",
            "test": f"IWSLT{self._year}.TED.{test}.{pair}.{{}}.xml",
        }
        names_of_parts = [name for part, name in names.items() if self.usage in (part, "all")]
        return [tuple(folder_of(folder) / name.format(language) for language in self.language_pair) for name in names_of_parts]

    def _sentences(self, path: Path) -> Iterator[str]:
        for number, line in text_lines(path):
            line = line.strip()
            if path.suffix != ".xml":
                if line and not line.startswith("<"):
                    yield line
            elif line.startswith("<seg"):
                head, end, _ = line.partition("</seg>")
                if not end:
                    raise damaged(path, number, line, "a segment that ends in its line")
                yield unescape(head.partition(">")[2].strip(), {"&quot;": '"', "&apos;": "'"})
