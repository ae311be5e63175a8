"""Transforms of rows of text or numbers: n-grams, windows, truncation, special tokens, and text to numbers."""
from __future__ import annotations

import re
from typing import Any

import numpy as np

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_type, with_sentence
from torchspore.mindspore.dataset.text.operation import TextTensorOperation, check_text, text_array
from torchspore.mindspore.dataset.text.vocabulary import number_type


class AddToken(TextTensorOperation):
    """Adds a token before a row of texts, or before each row; at the end with `begin=False`."""

    def __init__(self, token: str, begin: bool = True) -> None:
        check_type("AddToken", "token", token, str, "a str")
        check_bool("AddToken", "begin", begin)
        self.token, self.begin = token, begin

    def _apply(self, value: np.ndarray) -> np.ndarray:
        check_text("AddToken", value)
        if value.ndim not in (1, 2):
            raise RuntimeError(message(f"AddToken of shape {list(value.shape)}", "a row of texts, or rows of them"))
        token = np.full((*value.shape[:-1], 1), self.token)
        return np.concatenate([token, value] if self.begin else [value, token], -1)


class Ngram(TextTensorOperation):
    """Returns all sequences of `n` consecutive words (an int, or a list of them), joined by `separator`.

    `left_pad` and `right_pad` are (word, count); at most n - 1 of these words are added before and after the row. A row that is too short
    yields one empty text.
    """

    def __init__(self, n: Any, left_pad: Any = ("", 0), right_pad: Any = ("", 0), separator: str = " ") -> None:
        sizes = [n] if is_int(n) else n
        if not isinstance(sizes, list) or not sizes:
            raise ValueError(message(f"Ngram(n={short(n)})", "an int or a list of them"))
        for size in sizes:
            check_int("Ngram", "n", size, 1)
        self.left_pad, self.right_pad = _check_pad("left_pad", left_pad), _check_pad("right_pad", right_pad)
        check_type("Ngram", "separator", separator, str, "a str")
        self.n, self.separator = sizes, separator

    def _apply(self, value: np.ndarray) -> np.ndarray:
        check_text("Ngram", value, (1,))
        words = value.tolist()
        joined: list[str] = []
        for size in self.n:
            before, after = ([pad] * min(width, size - 1) for pad, width in (self.left_pad, self.right_pad))
            row = [*before, *words, *after]
            joined += [self.separator.join(row[start : start + size]) for start in range(len(row) - size + 1)] or [""]
        return text_array(joined)


def _check_pad(argument: str, pad: Any) -> tuple[str, int]:
    if not (isinstance(pad, tuple) and len(pad) == 2 and isinstance(pad[0], str) and isinstance(pad[1], int) and pad[1] >= 0):
        raise ValueError(message(f"Ngram({argument}={short(pad)})", "(word, how many)", hint='write ("_", 1)'))
    return pad


class SlidingWindow(TextTensorOperation):
    """Returns all windows of `width` elements of a row: shape (N - width + 1, width), empty if the row is shorter."""

    def __init__(self, width: int, axis: int = 0) -> None:
        check_int("SlidingWindow", "width", width, 1)
        check_type("SlidingWindow", "axis", axis, int, "an int")
        self.width, self.axis = width, axis

    def _apply(self, value: np.ndarray) -> np.ndarray:
        if value.ndim != 1 or self.axis not in (0, -1):
            raise RuntimeError(message(f"SlidingWindow(axis={self.axis}) of shape {list(value.shape)}", "a row, and its axis 0"))
        if len(value) < self.width:
            return value[:0].copy()
        return np.lib.stride_tricks.sliding_window_view(value, self.width).copy()


class Truncate(TextTensorOperation):
    """Truncates a row, or each row, of texts or numbers to `max_seq_len`."""

    def __init__(self, max_seq_len: int) -> None:
        check_int("Truncate", "max_seq_len", max_seq_len, 1)
        self.max_seq_len = max_seq_len

    def _apply(self, value: np.ndarray) -> np.ndarray:
        if value.ndim not in (1, 2):
            raise RuntimeError(message(f"Truncate of shape {list(value.shape)}", "a row, or rows"))
        return np.ascontiguousarray(value[..., : self.max_seq_len])


class TruncateSequencePair(TextTensorOperation):
    """Truncates the longer of two rows at its end, one by one, until both together have `max_length`."""

    def __init__(self, max_length: int) -> None:
        check_int("TruncateSequencePair", "max_length", max_length, 0)
        self.max_length = max_length

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        if len(values) != 2 or any(value.ndim != 1 for value in values):
            raise RuntimeError(message(f"TruncateSequencePair of {[list(value.shape) for value in values]}", "two rows"))
        first, second = map(len, values)
        over = max(first + second - self.max_length, 0)
        # First cut the longer row to the length of the other; then cut both in turn, the second first.
        longer = max(first, second)
        alone = min(over, abs(first - second))
        first, second = (first - alone, second) if first == longer else (first, second - alone)
        over -= alone
        first, second = first - over // 2, second - (over - over // 2)
        return values[0][: max(first, 0)].copy(), values[1][: max(second, 0)].copy()


_INTEGER = re.compile(r"\s*[-+]?\d+")
_FLOAT = re.compile(r"\s*[-+]?(nan|inf(inity)?|0x[0-9a-f]*\.?[0-9a-f]*(p[-+]?\d+)?|(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)", re.IGNORECASE)


class ToNumber(TextTensorOperation):
    """Parses numbers of the MindSpore dtype `data_type`, as C does: ignores spaces before a number and letters after it.

    Raises RuntimeError for text that does not start with a number, and for a number outside the dtype's range.
    """

    def __init__(self, data_type: Any) -> None:
        self._dtype = number_type("ToNumber", data_type, TypeError)
        if self._dtype.kind not in "iuf":
            text = message(f"ToNumber(data_type={short(data_type)})", "a dtype of numbers")
            raise TypeError(with_sentence(text, f"data_type: {str(data_type).rpartition('.')[2]} is not numeric data type."))
        if self._dtype.kind == "f":
            limits = np.finfo(self._dtype)
            self._minimum, self._maximum = float(limits.smallest_subnormal), float(limits.max)
        else:
            self._minimum, self._maximum = int(np.iinfo(self._dtype).min), int(np.iinfo(self._dtype).max)

    def _apply(self, value: np.ndarray) -> np.ndarray:
        check_text("ToNumber", value)
        texts = value.ravel().tolist()
        read = self._integer if self._dtype.kind in "iu" else self._float
        return np.array([read(text) for text in texts], self._dtype).reshape(value.shape)

    def _refused(self, text: str, expected: str, sentence: str) -> RuntimeError:
        return RuntimeError(with_sentence(message(f"ToNumber({self._dtype}) of {short(text)}", expected), sentence))

    def _not_a_number(self, text: str, expected: str) -> RuntimeError:
        return self._refused(text, expected, f'it is invalid to convert "{text}" to a number.')

    def _integer(self, text: str) -> int:
        match = _INTEGER.match(text)
        if match is None or (self._dtype.kind == "u" and "-" in match[0]):
            raise self._not_a_number(text, "an integer" + (" without a sign" if match else ""))
        number = int(match[0])
        if not self._minimum <= number <= self._maximum:
            sentence = f"string input {text} will be out of bounds if cast to {self._dtype}."
            raise self._refused(text, f"a number from {self._minimum} to {self._maximum}", sentence)
        return number

    def _float(self, text: str) -> float:
        match = _FLOAT.match(text)
        if match is None:
            raise self._not_a_number(text, "a number")
        number = float.fromhex(match[0]) if "x" in match[0].lower() else float(match[0])
        vanished = number == 0 and re.search("[1-9]", re.split("[ep]", match[0], flags=re.IGNORECASE)[0])
        if vanished or abs(number) > self._maximum or 0 < abs(number) < self._minimum:
            sentence = f"string input {text} is outside of valid {self._dtype} range."
            raise self._refused(text, f"a number that {self._dtype} has, up to {self._maximum:g}", sentence)
        return number
