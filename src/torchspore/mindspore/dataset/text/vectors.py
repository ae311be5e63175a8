"""Pretrained word vectors, from their text files, and `ToVectors`, which replaces words by them."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_type
from torchspore.mindspore.dataset.text.operation import TextTensorOperation, check_text


class Vectors:
    """Words and their vectors, from a file with one word and its numbers in each line; created by `from_file`."""

    _names_of_files = ""

    def __init__(self) -> None:
        self._vectors: dict[str, np.ndarray] = {}
        self._length = 0

    @classmethod
    def from_file(cls, file_path: Any, max_vectors: int | None = None) -> Vectors:
        """Reads the first `max_vectors` vectors of a file (0 or None: all of them).

        Raises RuntimeError for a file that is missing, empty, without the usual name of its kind, or with lines of unequal lengths.
        """
        call = f"{cls.__name__}.from_file"
        check_type(call, "file_path", file_path, str, "a path")
        if max_vectors is not None:
            check_int(call, "max_vectors", max_vectors, 0)
        if cls._names_of_files and not re.fullmatch(cls._names_of_files, Path(file_path).name):
            expected = "a file glove.*.txt" if cls is GloVe else "a file *.vec"
            raise RuntimeError(message(f"{call}({file_path!r})", expected))
        vectors = cls()
        vectors._read(call, file_path, max_vectors or None)
        return vectors

    def _read(self, call: str, path: str, max_vectors: int | None) -> None:
        try:
            with Path(path).open(encoding="utf-8", newline="\n") as file:
                for number, line in enumerate(file, 1):
                    words = line.split()
                    if number == 1 and len(words) == 2:
                        continue  # the number of vectors, and their length
                    if max_vectors is not None and len(self._vectors) >= max_vectors:
                        break
                    if len(words) < 2 or (self._length and len(words) - 1 != self._length):
                        expected = f"a word and {self._length or 'its'} numbers, got {len(words)} words"
                        raise RuntimeError(message(f"{call}({path!r}), line {number}", expected))
                    self._length = len(words) - 1
                    if words[0] not in self._vectors:
                        self._vectors[words[0]] = _numbers(words[1:])
        except (OSError, UnicodeDecodeError) as error:
            raise RuntimeError(message(f"{call}({path!r})", f"a text file ({error})")) from None
        if not self._vectors:
            raise RuntimeError(message(f"{call}({path!r})", "at least one vector"))

    def _find(self, token: str) -> np.ndarray | None:
        return self._vectors.get(token)

    def _look_up(self, token: str, unknown: np.ndarray, lower_case_backup: bool) -> np.ndarray:
        vector = self._find(token)
        if vector is None and lower_case_backup:
            vector = self._find(token.lower())
        return unknown if vector is None else vector


def _numbers(words: list[str]) -> np.ndarray:
    try:
        return np.array(words, np.float32)
    except ValueError:  # invalid numbers count as 0, as in MindSpore
        number = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
        return np.array([float(word) if number.fullmatch(word) else 0.0 for word in words], np.float32)


class FastText(Vectors):
    """The vectors of FastText, from a file `*.vec`."""

    _names_of_files = r".*\.vec"


class GloVe(Vectors):
    """The vectors of GloVe, from a file `glove.*.txt`."""

    _names_of_files = r"glove\..*\.txt"


class CharNGram(Vectors):
    """Vectors of parts of words; a word's vector is the mean over its parts of two to four letters, where its ends count as letters."""

    def _find(self, token: str) -> np.ndarray | None:
        letters = ["#BEGIN#", *token, "#END#"]
        parts = [
            f"{count}gram-{''.join(letters[start : start + count])}" for count in (2, 3, 4) for start in range(len(letters) - count + 1)
        ]
        part_vectors = [self._vectors[part] for part in parts if part in self._vectors]
        return np.mean(part_vectors, 0, dtype=np.float32) if part_vectors else None


class ToVectors(TextTensorOperation):
    """Replaces a word, or a row of words, by their vectors: shape (D,) or (N, D), float32.

    An unknown word gets `unk_init`, zeros by default; with `lower_case_backup` it is first looked up in lower case.
    """

    def __init__(self, vectors: Any, unk_init: Any = None, lower_case_backup: bool = False) -> None:
        check_type("ToVectors", "vectors", vectors, Vectors, "Vectors, FastText, GloVe or CharNGram")
        if unk_init is not None:
            check_type("ToVectors", "unk_init", unk_init, (list, tuple), "a list of numbers")
            for number in unk_init:
                check_type("ToVectors", "unk_init", number, (int, float), "a list of numbers")
        check_bool("ToVectors", "lower_case_backup", lower_case_backup)
        self.vectors, self.unk_init, self.lower_case_backup = vectors, unk_init, lower_case_backup

    def _apply(self, value: np.ndarray) -> np.ndarray:
        check_text("ToVectors", value)
        length = self.vectors._length
        unknown = np.zeros(length, np.float32) if self.unk_init is None else np.array(self.unk_init, np.float32)
        if len(unknown) != length:
            raise RuntimeError(message(f"ToVectors(unk_init={self.unk_init})", f"{length} numbers, as the vectors have"))
        rows = np.stack([self.vectors._look_up(word, unknown, self.lower_case_backup) for word in value.ravel().tolist()])
        return rows[0] if len(rows) == 1 and value.ndim != 1 else rows
