"""Sources of text: lines, CSV tables, translations, tagged words, questions and answers."""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from torchspore.base.text import message, short
from torchspore.errors import DataDamaged
from torchspore.mindspore.dataset.core.validator_helpers import check_type, checked_columns
from torchspore.mindspore.dataset.engine.dataset import TextBaseDataset, UnionBaseDataset, VisionBaseDataset
from torchspore.mindspore.dataset.engine.declarations import ListedDataset, damaged, folder_of, read_file, text_lines
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.mindspore.dataset.engine.streams import StreamedDataset, TextStream, matching
from torchspore.mindspore.dataset.engine.text_layouts import PlainText, Tables, TaggedWords, Talks, Translations, table
from torchspore.public_names import missing

_USUAL = "dataset_dir, usage=None, LINES"
_WORKERS_LAST = (
    "num_samples=None, shuffle=GLOBAL, num_shards=None, shard_id=None, num_parallel_workers=None, cache=None"
)
_ALL_TRAIN_TEST = ("all", "train", "test")


class TextFileDataset(TextStream, arguments="dataset_files, LINES"):
    """The non-empty lines of text files as the column text; `dataset_files` is a path, a pattern or a list of them.

    Rows are shuffled (`Shuffle.GLOBAL`) unless `shuffle` is False; `Shuffle.FILES` shuffles the files. Raises ValueError if nothing
    matches, and when read RuntimeError for a file that is not text.
    """

    dataset_files: Any

    def _check(self) -> None:
        self.dataset_files = matching(type(self).__name__, self.dataset_files)

    def _files(self) -> Sequence[Any]:
        return self.dataset_files

    def _rows(self, file: Path) -> Iterator[Row]:
        return ((np.array(line),) for _, line in text_lines(file))


class PennTreebankDataset(PlainText, arguments=_USUAL):
    """Penn Treebank's lines, the column text, from `ptb.train.txt`, `ptb.test.txt` and `ptb.valid.txt`."""

    _name = "ptb.{}.txt"


class WikiTextDataset(PlainText, arguments=_USUAL):
    """WikiText's lines, the column text, from `wiki.train.tokens`, `wiki.test.tokens` and `wiki.valid.tokens`."""

    _name = "wiki.{}.tokens"


class EnWik9Dataset(
    TextStream,
    arguments="dataset_dir, num_samples=None, num_parallel_workers=None, shuffle=True, num_shards=None, shard_id=None, cache=None",
):
    """The lines of `enwik9`, empty ones too, as the column text."""

    def _files(self) -> Sequence[Any]:
        return [self.dataset_dir / "enwik9"]

    def _rows(self, file: Path) -> Iterator[Row]:
        return ((np.array(line),) for _, line in text_lines(file, empty=True))


# Tables --------------------------------------------------------------------------------------------------------------------------------


class CSVDataset(
    StreamedDataset, UnionBaseDataset, arguments="dataset_files, field_delim=',', column_defaults=None, column_names=None, LINES"
):
    """The rows of CSV files; columns have the names of `column_names`, or those of the first line.

    `column_defaults` has an int, float or str for each column, which determines its type: int32, float32 or text; by default all are text.
    Raises ValueError if nothing matches, and when read RuntimeError, which names file and line, for an invalid row.
    """

    dataset_files: Any
    field_delim: str
    column_defaults: Any
    column_names: Any

    def _check(self) -> None:
        self.dataset_files = matching("CSVDataset", self.dataset_files)
        check_type("CSVDataset", "field_delim", self.field_delim, str, "a str of one character")
        if len(self.field_delim) != 1 or self.field_delim in '"\r\n':
            expected = "one character other than a quote and the end of a line"
            raise ValueError(message(f"CSVDataset(field_delim={self.field_delim!r})", expected))
        if self.column_defaults is not None:
            check_type("CSVDataset", "column_defaults", self.column_defaults, list, "a list of an int, float or str for each column")
            for value in self.column_defaults:
                check_type("CSVDataset", "column_defaults", value, (int, float, str), "a list of an int, float or str for each column")
        if self.column_names is not None:
            self.column_names = checked_columns("CSVDataset", "column_names", self.column_names)
        self._names: list[str] | None = self.column_names

    def _columns(self) -> list[str]:
        if self._names is None:
            path = self.dataset_files[0]
            for _, names in table(path, self.field_delim):
                self._names = names
                break
            else:
                raise DataDamaged(message(f"{path}: an empty file", "the names of the columns in its first line"))
        return self._names

    def _files(self) -> Sequence[Any]:
        return self.dataset_files

    def _rows(self, file: Path) -> Iterator[Row]:
        names = self._columns()
        kinds = self.column_defaults or [""] * len(names)
        if len(kinds) != len(names):
            raise ValueError(message(f"CSVDataset(column_defaults={short(kinds)})", f"one for each of the columns {short(names)}"))
        rows = table(file, self.field_delim)
        if self.column_names is None:
            next(rows, None)
        for number, values in rows:
            if len(values) != len(names):
                line = self.field_delim.join(values)
                raise damaged(file, number, line, f"{len(names)} fields, one for each of the columns {short(names)}, not {len(values)}")
            try:
                yield tuple(_typed(kind, value) for kind, value in zip(kinds, values, strict=True))
            except (ValueError, OverflowError):
                expected = ", ".join(type(kind).__name__ for kind in kinds)
                raise damaged(file, number, self.field_delim.join(values), f"fields of the types {expected}") from None


def _typed(kind: Any, value: str) -> np.ndarray:
    if isinstance(kind, str):
        return np.array(value)
    return np.array(int(value), np.int32) if isinstance(kind, int) else np.array(float(value), np.float32)


class AGNewsDataset(Tables, arguments=_USUAL):
    """AG's news: index, title and description, all of them text; `usage` is 'train', 'test' or 'all' (None)."""

    columns = ("index", "title", "description")


class AmazonReviewDataset(Tables, arguments=_USUAL):
    """Amazon's reviews: label, title and content, all of them text; `usage` is 'train', 'test' or 'all' (None)."""

    columns = ("label", "title", "content")


class DBpediaDataset(Tables, arguments=_USUAL):
    """DBpedia's articles: class, title and content, all of them text; `usage` is 'train', 'test' or 'all' (None)."""

    columns = ("class", "title", "content")


class YahooAnswersDataset(Tables, arguments=_USUAL):
    """Yahoo's questions: class, title, content and answer, all of them text; `usage` is 'train', 'test' or 'all' (None)."""

    columns = ("class", "title", "content", "answer")


class SogouNewsDataset(Tables, arguments=f"dataset_dir, usage=None, {_WORKERS_LAST}"):
    """Sogou's news: index, title and content, all of them text; `usage` is 'train', 'test' or 'all' (None)."""

    columns = ("index", "title", "content")
    _order = ("train", "test")


class YelpReviewDataset(Tables, arguments=f"dataset_dir, usage=None, {_WORKERS_LAST}"):
    """Yelp's reviews: label and text, both text; `usage` is 'train', 'test' or 'all' (None)."""

    columns = ("label", "text")
    _order = ("train", "test")


class SST2Dataset(TextStream, arguments=_USUAL):
    """The Stanford Sentiment Treebank: sentence and label, both text; `usage` is 'train' (None), 'dev' or 'test', which has no label."""

    choices = {"usage": ("train", "test", "dev")}

    def _columns(self) -> list[str]:
        return ["sentence"] if self.usage == "test" else ["sentence", "label"]

    def _files(self) -> Sequence[Any]:
        return [self.dataset_dir / f"{self.usage}.tsv"]

    def _rows(self, file: Path) -> Iterator[Row]:
        rows = text_lines(file)
        next(rows, None)
        for number, line in rows:
            parts = line.split("\t")
            if len(parts) != 2:
                raise damaged(file, number, line, "two fields with a tab between them")
            yield (np.array(parts[1]),) if self.usage == "test" else (np.array(parts[0]), np.array(parts[1]))


# JSON ------------------------------------------------------------------------------------------------------------------------------------

_PAIR = ("label", "sentence1", "sentence2"), ("id", "sentence1", "sentence2")
_SPANS = ("span1_index", "span1_text", "span2_index", "span2_text")
_CLUE = {
    "AFQMC": _PAIR, "CMNLI": _PAIR, "CSL": (("abst", "id", "keyword", "label"), ("abst", "id", "keyword")),
    "IFLYTEK": (("label", "label_des", "sentence"), ("id", "sentence")),
    "TNEWS": (("keywords", "label", "label_desc", "sentence"), ("id", "keywords", "sentence")),
    "WSC": (("idx", "label", *_SPANS, "text"), ("idx", *_SPANS, "text")),
}
"""The columns of a CLUE task with and without labels."""


class CLUEDataset(TextStream, arguments="dataset_files, task='AFQMC', usage='train', LINES"):
    """CLUE's tasks 'AFQMC', 'CMNLI', 'CSL', 'IFLYTEK', 'TNEWS' and 'WSC', one JSON object a line.

    Columns are the members of the objects in order of their names: text, () uint32 for numbers, (N,) of text for lists; `usage` 'test' has
    no columns of answers.
    """

    choices = {"task": ("AFQMC", "TNEWS", "IFLYTEK", "CMNLI", "WSC", "CSL"), "usage": ("train", "test", "eval")}
    dataset_files: Any
    task: str

    def _check(self) -> None:
        self.dataset_files = matching("CLUEDataset", self.dataset_files)

    def _columns(self) -> list[str]:
        return list(_CLUE[self.task][self.usage == "test"])

    def _files(self) -> Sequence[Any]:
        return self.dataset_files

    def _rows(self, file: Path) -> Iterator[Row]:
        for number, line in text_lines(file):
            try:
                content = json.loads(line)
                members = {**content, **content.get("target", {})}
                yield tuple(_member(members[name]) for name in self._columns())
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise damaged(file, number, line, f"a JSON object with {', '.join(self._columns())}") from None


def _member(value: Any) -> np.ndarray:
    if isinstance(value, (str, list)):
        return np.array(value, np.str_)
    if type(value) is not int or not 0 <= value < 1 << 32:
        raise ValueError
    return np.array(value, np.uint32)


class SQuADDataset(TextStream, arguments=_USUAL):
    """SQuAD 1.1 and 2.0: context and question (), text (N,) and answer_start (N,) uint32, the offsets of the answers in the context.

    A question without an answer has an empty one at 2**32 - 1. `usage` is 'train', 'dev' or 'all' (None).
    """

    choices = {"usage": ("all", "train", "dev")}
    columns = ("context", "question", "text", "answer_start")

    def _files(self) -> Sequence[Any]:
        files = []
        for part in ("train", "dev"):
            if self.usage in (part, "all"):
                paths = [self.dataset_dir / f"{part}-v{version}.json" for version in ("1.1", "2.0")]
                files.append(next((path for path in paths if path.is_file()), paths[0]))
        return files

    def _rows(self, file: Path) -> Iterator[Row]:
        try:
            for article in json.loads(read_file(file))["data"]:
                for paragraph in article["paragraphs"]:
                    for question in paragraph["qas"]:
                        answers = [(str(answer["text"]), int(answer["answer_start"])) for answer in question["answers"]] or [("", -1)]
                        texts, starts = zip(*answers, strict=True)
                        offsets = np.array(starts, np.int64).astype(np.uint32)
                        yield np.array(str(paragraph["context"])), np.array(str(question["question"])), np.array(texts), offsets
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataDamaged(message(f"{file}: {type(error).__name__}: {error!s:.100}", "a file of SQuAD")) from None


# Words and tags --------------------------------------------------------------------------------------------------------------------------


class UDPOSDataset(TaggedWords, arguments=f"dataset_dir, usage=None, {_WORKERS_LAST}"):
    """Universal Dependencies: word, universal and stanford, a sentence a row; `usage` is 'train', 'test', 'valid' or 'all' (None)."""

    choices = {"usage": ("all", "train", "test", "valid")}
    columns = ("word", "universal", "stanford")
    _separator = "\t"

    def _files(self) -> Sequence[Any]:
        names = {"valid": "dev", "test": "test", "train": "train"}
        return [self.dataset_dir / f"en-ud-tag.v2.{name}.txt" for part, name in names.items() if self.usage in (part, "all")]


class CoNLL2000Dataset(TaggedWords, arguments=f"dataset_dir, usage=None, {_WORKERS_LAST}"):
    """CoNLL-2000's chunks: word, pos_tag and chunk_tag, a sentence a row; `usage` is 'train', 'test' or 'all' (None)."""

    choices = {"usage": _ALL_TRAIN_TEST}
    columns = ("word", "pos_tag", "chunk_tag")
    _separator = " "

    def _files(self) -> Sequence[Any]:
        return [self.dataset_dir / f"{part}.txt" for part in ("test", "train") if self.usage in (part, "all")]


# Translations ----------------------------------------------------------------------------------------------------------------------------


class Multi30kDataset(
    Translations,
    arguments="dataset_dir, usage=None, language_pair=None, num_samples=None, num_parallel_workers=None, shuffle=None, num_shards=None, "
    "shard_id=None, cache=None",
):
    """Multi30k: text and translation of `language_pair` ['en', 'de'] (None) or ['de', 'en']; `usage` as 'train', 'test', 'valid', 'all'."""

    choices = {"usage": ("all", "train", "test", "valid")}
    _languages = (("en", "de"), ("de", "en"))

    def _files(self) -> Sequence[Any]:
        names = {"test": "mmt16_task1_test/test", "train": "training/train", "valid": "validation/val"}
        paths = [self.dataset_dir / name for part, name in names.items() if self.usage in (part, "all")]
        return [tuple(path.with_suffix(f".{language}") for language in self.language_pair) for path in paths]


class IWSLT2016Dataset(
    Talks, arguments=f"dataset_dir, usage=None, language_pair=None, valid_set=None, test_set=None, {_WORKERS_LAST}"
):
    """IWSLT 2016's talks: text and translation of a pair of English and Arabic, Czech, French or German, ('de', 'en') by default.

    `valid_set` ('tst2013' by default) and `test_set` ('tst2014') are 'dev2010' or 'tst2010' to 'tst2014'.
    """

    _sets: ClassVar[tuple[str, ...]] = ("dev2010", "tst2010", "tst2011", "tst2012", "tst2013", "tst2014")
    choices = {**Talks.choices, "valid_set": ("tst2013", *_sets), "test_set": ("tst2014", *_sets)}
    _year = "16"
    _languages = (
        ("de", "en"), ("en", "fr"), ("en", "de"), ("en", "cs"), ("en", "ar"), ("fr", "en"), ("cs", "en"), ("ar", "en"),
    )
    valid_set: str
    test_set: str

    def _talks(self) -> tuple[Path, str, str]:
        source, target = self.language_pair
        return self.dataset_dir / f"texts/{source}/{target}/{source}-{target}", self.valid_set, self.test_set


class IWSLT2017Dataset(Talks, arguments=f"dataset_dir, usage=None, language_pair=None, {_WORKERS_LAST}"):
    """IWSLT 2017's talks: text and translation of any two of English, German, Italian, Dutch and Romanian, ('de', 'en') by default."""

    _year = "17"
    _languages = (
        ("de", "en"), *((one, other) for one in ("en", "nl", "de", "it", "ro") for other in ("en", "nl", "de", "it", "ro") if one != other),
    )

    def _talks(self) -> tuple[Path, str, str]:
        return self.dataset_dir / "texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo", "dev2010", "tst2010"


class IMDBDataset(ListedDataset, TextBaseDataset, arguments="dataset_dir, usage=None, ROWS, CHOICE"):
    """IMDb's reviews: text () and label () int32, 1 for those in `pos`, 0 for `neg`; `usage` is 'train', 'test' or 'all' (None)."""

    choices = {"usage": _ALL_TRAIN_TEST}
    columns = ("text", "label")

    def _list(self) -> Sequence[Any]:
        return [
            (path, label)
            for part in ("train", "test") if self.usage in (part, "all") for kind, label in (("pos", 1), ("neg", 0))
            for path in sorted(folder_of(self.dataset_dir / part / kind).glob("*.txt"))
        ]

    def num_classes(self) -> int:
        """Returns 2: positive and negative."""
        return 2

    def _row(self, entry: Any) -> Row:
        path, label = entry
        try:
            return np.array(read_file(path).decode().removesuffix("\n")), np.array(label, np.int32)
        except UnicodeDecodeError as error:
            raise DataDamaged(message(f"{path}: {error.reason} at byte {error.start}", "a text file of UTF-8")) from None


class USPSDataset(StreamedDataset, VisionBaseDataset, arguments=_USUAL):
    """The postal service's digits: images (16, 16, 1) uint8 and labels () uint32 from `usps` and `usps.t`."""

    choices = {"usage": _ALL_TRAIN_TEST}
    columns = ("image", "label")

    def _files(self) -> Sequence[Any]:
        return [self.dataset_dir / name for part, name in (("train", "usps"), ("test", "usps.t")) if self.usage in (part, "all")]

    def _rows(self, file: Path) -> Iterator[Row]:
        for number, line in text_lines(file):
            label, *parts = line.split()
            try:
                values = np.array([float(part.partition(":")[2]) for part in parts]).reshape(16, 16, 1)
                if not 1 <= int(label) <= 10 or np.abs(values).max() > 1:
                    raise ValueError
            except ValueError:
                raise damaged(file, number, line, "a label from 1 to 10 and 256 fields such as 3:-0.5, from -1 to 1") from None
            pixels = (values.astype(np.float32).astype(np.float64) + 1) / 2 * 255
            yield pixels.astype(np.uint8), np.array(int(label) - 1, np.uint32)


__getattr__ = missing(__name__)
