"""`Vocab`, words and their ids, and `Lookup`, which replaces words by ids."""
from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.engine.tensors import dtypes
from torchspore.mindspore.dataset.core.validator_helpers import INT32_MAX, check_bool, check_int, check_type, checked_columns
from torchspore.mindspore.dataset.text.operation import TextTensorOperation, check_text
from torchspore.mindspore.dataset.text.tokenizers import Tokenizer
from torchspore.mindspore.dataset.transforms.transforms import numpy_type


class Vocab:
    """Words and their ids. It is created by `from_list`, `from_dict`, `from_file` or `from_dataset`."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._words: dict[int, str] = {}

    @classmethod
    def _of(cls, ids: dict[str, int]) -> Vocab:
        vocab = cls()
        vocab._ids = ids
        vocab._words = {number: word for word, number in ids.items()}
        return vocab

    @classmethod
    def from_list(cls, word_list: Any, special_tokens: Any = None, special_first: bool = True) -> Vocab:
        """Numbers the words of a list in its order. Raises TypeError unless it is a list of str, ValueError for duplicates."""
        words = _check_words("Vocab.from_list", "word_list", word_list)
        special = _check_special("Vocab.from_list", special_tokens, special_first)
        if common := sorted(set(special) & set(words)):
            raise ValueError(message(f"Vocab.from_list(special_tokens={short(special)})", f"words as tokens, got {common}"))
        return cls._of(_numbered(words, special, special_first))

    @classmethod
    def from_dict(cls, word_dict: Any) -> Vocab:
        """Uses the ids of a dict. Raises TypeError unless it is from str to int, ValueError for an id below 0."""
        check_type("Vocab.from_dict", "word_dict", word_dict, dict, "a dict of words and their numbers")
        for word, number in word_dict.items():
            check_type("Vocab.from_dict", "word", word, str, "a str")
            check_int("Vocab.from_dict", "word_id", number, 0)
        return cls._of(dict(word_dict))

    @classmethod
    def from_file(
        cls, file_path: Any, delimiter: str = "", vocab_size: int | None = None, special_tokens: Any = None, special_first: bool = True
    ) -> Vocab:
        """Numbers the words of a file, of each line the text before `delimiter`; at most `vocab_size` of them.

        Raises RuntimeError for a file that can't be read, and for duplicate words.
        """
        call = "Vocab.from_file"
        check_type(call, "file_path", file_path, str, "a path")
        check_type(call, "delimiter", delimiter, str, "a str")
        if vocab_size is not None:
            check_int(call, "vocab_size", vocab_size, 1)
        special = _check_special(call, special_tokens, special_first)
        try:
            lines = Path(file_path).read_bytes().decode("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise RuntimeError(message(f"{call}({file_path!r})", f"a text file ({error})")) from None
        if lines[-1] == "":
            lines.pop()
        words = [line.split(delimiter, 1)[0] if delimiter else line for line in lines][:vocab_size]
        twice = [word for word, count in Counter(words).items() if count > 1] + sorted(set(special) & set(words))
        if twice:
            raise RuntimeError(message(f"{call}({file_path!r})", f"each word once, got {short(twice[0])} twice"))
        return cls._of(_numbered(words, special, special_first))

    @classmethod
    def from_dataset(
        cls, dataset: Any, columns: Any = None, freq_range: Any = None, top_k: int | None = None, special_tokens: Any = None,
        special_first: bool = True,
    ) -> Vocab:
        """Numbers the words of a dataset's columns, the most frequent first, equally frequent ones by their letters.

        Only words whose count is in `freq_range` (min, max; None is open) are included, and of these at most `top_k`.
        """
        call = "Vocab.from_dataset"
        names = checked_columns(call, "columns", columns) if columns else []
        minimum, maximum = _check_frequencies(call, freq_range)
        if top_k is not None:
            check_int(call, "top_k", top_k, 1)
        special = _check_special(call, special_tokens, special_first)
        if not hasattr(dataset, "create_dict_iterator"):
            raise TypeError(message(f"{call}({short(dataset)})", f"a dataset, got {type(dataset).__name__}"))
        counts = _counted(call, dataset, names)
        if common := sorted(set(special) & set(counts)):
            raise RuntimeError(message(f"{call}(special_tokens={short(special)})", f"words as tokens, got {common}"))
        selected = [(word, count) for word, count in counts.items() if minimum <= count and (maximum is None or count <= maximum)]
        selected.sort(key=lambda pair: (-pair[1], pair[0].encode()))
        return cls._of(_numbered([word for word, _ in selected[:top_k]], special, special_first))

    def vocab(self) -> dict[str, int]:
        """Returns the ids of all words."""
        return dict(self._ids)

    def tokens_to_ids(self, tokens: Any) -> Any:
        """Returns the ids of words: an int for a str, a list for a list or a row; -1 for an unknown word."""
        check_type("tokens_to_ids", "tokens", tokens, (str, list, np.ndarray), "a str, a list of them or an array")
        if isinstance(tokens, str):
            return self._ids.get(tokens, -1)
        words = _row("tokens_to_ids", "tokens", tokens, str, "str")
        ids = [self._ids.get(word, -1) for word in words]
        return ids[0] if isinstance(tokens, np.ndarray) and tokens.ndim == 0 else ids

    def ids_to_tokens(self, ids: Any) -> Any:
        """Returns the words of ids: a str for an int, a list for a list or a row; empty for an unknown id."""
        check_type("ids_to_tokens", "ids", ids, (int, list, np.ndarray), "an int, a list of them or an array")
        if isinstance(ids, int):
            check_int("ids_to_tokens", "ids", ids, 0)
            return self._words.get(ids, "")
        numbers = _row("ids_to_tokens", "ids", ids, int, "int")
        for number in numbers:
            check_int("ids_to_tokens", "ids", number, 0, INT32_MAX)
        words = [self._words.get(number, "") for number in numbers]
        return words[0] if isinstance(ids, np.ndarray) and ids.ndim == 0 else words


def _row(call: str, argument: str, values: Any, kind: type, name: str) -> list[Any]:
    if isinstance(values, np.ndarray):
        if values.ndim > 1 or values.dtype.kind not in ("U" if kind is str else "iu"):
            raise TypeError(message(f"{call} of {values.dtype} {list(values.shape)}", f"a row of {name}"))
        return values.reshape(-1).tolist()
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    for value in plain:
        check_type(call, argument, value, kind, f"a list of {name}")
    return plain


def _check_words(call: str, argument: str, words: Any) -> list[str]:
    check_type(call, argument, words, list, "a list of str")
    for word in words:
        check_type(call, argument, word, str, "a list of str")
    if len(set(words)) != len(words):
        twice = next(word for word, count in Counter(words).items() if count > 1)
        raise ValueError(message(f"{call}({argument}=...)", f"each word once, got {short(twice)} twice"))
    return words


def _check_special(call: str, special_tokens: Any, special_first: Any) -> list[str]:
    check_bool(call, "special_first", special_first)
    return [] if special_tokens is None else _check_words(call, "special_tokens", special_tokens)


def _check_frequencies(call: str, freq_range: Any) -> tuple[int, int | None]:
    if freq_range is None:
        return 0, None
    check_type(call, "freq_range", freq_range, tuple, "(min, max)")
    if len(freq_range) != 2 or not all(limit is None or is_int(limit) for limit in freq_range):
        raise ValueError(message(f"{call}(freq_range={short(freq_range)})", "(min, max), each an int or None"))
    minimum, maximum = freq_range
    if (minimum or 0) < 0 or (maximum is not None and maximum < (minimum or 0)):
        raise ValueError(message(f"{call}(freq_range={freq_range})", "(min, max) from 0 on, the smaller number first"))
    return minimum or 0, maximum


def _counted(call: str, dataset: Any, names: list[str]) -> Counter[str]:
    columns = dataset.get_col_names()
    for name in names:
        if name not in columns:
            raise RuntimeError(message(f"{call}(columns={short(name)})", f"a column of the dataset, which are {columns}"))
    counts: Counter[str] = Counter()
    for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
        for name in names or columns:
            if row[name].dtype.kind != "U":
                raise RuntimeError(message(f"{call}: column {name!r} of {row[name].dtype}", "text"))
            counts.update(row[name].reshape(-1).tolist())
    return counts


def _numbered(words: list[str], special: list[str], special_first: bool) -> dict[str, int]:
    return {word: number for number, word in enumerate([*special, *words] if special_first else [*words, *special])}


class Lookup(TextTensorOperation):
    """Replaces words by their ids in `vocab`, of the dtype `data_type`; unknown ones by the id of `unknown_token`.

    Raises RuntimeError for an unknown word without an `unknown_token`, and for an `unknown_token` that is not in `vocab`.
    """

    def __init__(self, vocab: Any, unknown_token: str | None = None, data_type: Any = dtypes.int32) -> None:
        check_type("Lookup", "vocab", vocab, Vocab, "a Vocab")
        if unknown_token is not None:
            check_type("Lookup", "unknown_token", unknown_token, str, "a str")
        self._dtype = number_type("Lookup", data_type, RuntimeError)
        if unknown_token is not None and unknown_token not in vocab._ids:
            raise RuntimeError(message(f"Lookup(unknown_token={unknown_token!r})", "a word of the Vocab"))
        self.vocab, self.unknown_token = vocab, unknown_token
        self._unknown = None if unknown_token is None else vocab._ids[unknown_token]

    def _apply(self, value: np.ndarray) -> np.ndarray:
        check_text("Lookup", value)
        ids = self.vocab._ids
        words = value.ravel().tolist()
        numbers = [ids.get(word, self._unknown) for word in words]
        if None in numbers:
            word = words[numbers.index(None)]
            raise RuntimeError(message(f"Lookup of {word!r}", "a word of the Vocab", hint="write Lookup(vocab, unknown_token=...)"))
        return np.array(numbers, self._dtype).reshape(value.shape)


    def _after(self, before: Any) -> Any:
        """Return this step merged with a previous tokenizer; None if that is not a tokenizer or returns offsets too."""
        return _WordsToNumbers(before, self) if isinstance(before, Tokenizer) and not before.with_offsets else None


class _WordsToNumbers:
    """A tokenizer and a Lookup without an intermediate array of words."""

    def __init__(self, tokenizer: Tokenizer, lookup: Lookup) -> None:
        self._parts, self._numbers, self._dtype = tokenizer.parts, _Numbers(lookup.vocab._ids), lookup._dtype
        self._numbers.unknown = lookup._unknown

    def ragged(self, values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the concatenated ids of all rows, and the number of each. Raises ValueError; single rows then name the error."""
        if any(value.ndim or value.dtype.kind != "U" for value in values):
            raise ValueError
        parts = self._parts
        words = [parts(value.item()) or [""] for value in values]
        lengths = np.fromiter(map(len, words), np.intp, len(words))
        numbers = map(self._numbers.__getitem__, itertools.chain.from_iterable(words))
        return np.fromiter(numbers, self._dtype, int(lengths.sum())), lengths

    def _apply_rows(self, values: list[np.ndarray]) -> list[np.ndarray]:
        numbers, lengths = self.ragged(values)
        ends = np.cumsum(lengths).tolist()
        return [numbers[start:end] for start, end in zip([0, *ends], ends)]


class _Numbers(dict[str, int]):
    """Return the ids of words, with the fallback for unknown ones."""

    unknown: int | None = None

    def __missing__(self, word: str) -> int:
        if self.unknown is None:
            raise ValueError(word)
        return self.unknown


def number_type(call: str, data_type: Any, error: type[Exception]) -> np.dtype:
    from torchspore.mindspore.common import dtype as mstype

    check_type(call, "data_type", data_type, mstype.Type, "a MindSpore dtype", hint="write mindspore.int32")
    if data_type == mstype.string:
        raise error(message(f"{call}(data_type={short(data_type)})", "a dtype of numbers"))
    return numpy_type(call, "data_type", data_type)
