"""The base of text transforms, which refuse anything but text."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.core.validator_helpers import with_sentence


class TextTensorOperation(TensorOperation):
    """A transform of one column of text."""

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        if len(values) != 1:
            text = message(f"{type(self).__name__} of {len(values)} columns", "one column")
            raise RuntimeError(with_sentence(text, "The op is OneToOne, can only accept one tensor as input."))
        result = self._apply(values[0])
        return result if type(result) is tuple else (result,)


def check_text(call: str, value: np.ndarray, axes: tuple[int, ...] | None = None) -> None:
    """Raises RuntimeError if the value is not text or does not have `axes` axes."""
    if value.dtype.kind != "U":
        hint = "write text.to_str(...) for bytes" if value.dtype.kind == "S" else None
        raise RuntimeError(message(f"{call} of {value.dtype} {list(value.shape)}", "text", hint=hint))
    if axes is not None and value.ndim not in axes:
        expected = " or ".join({0: "one text", 1: "a row of texts"}[axis] for axis in axes)
        raise RuntimeError(message(f"{call} of text {list(value.shape)}", expected))


def text_array(texts: list[str]) -> np.ndarray:
    """Return a row of texts; one empty text if there is none, so that a column has a shape."""
    return np.array(texts or [""])


def each(value: np.ndarray, function: Callable[[str], str]) -> np.ndarray:
    """Return an array of the same shape with every text converted."""
    if value.ndim == 0:
        return np.array(function(value.item()))
    return np.array([function(text) for text in value.ravel().tolist()]).reshape(value.shape)


def byte_offset_function(text: str) -> Callable[[int], int]:
    """Return the number of UTF-8 bytes before a character of `text`."""
    if text.isascii():
        return int
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    widths = 1 + (codes > 0x7F).astype(np.int64) + (codes > 0x7FF) + (codes > 0xFFFF)
    return np.concatenate([[0], np.cumsum(widths)]).__getitem__


def tokens_with_offsets(text: str, spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the tokens of a text with their start and end offsets, in bytes of UTF-8."""
    if not spans:
        spans = [(0, 0)]
    byte_offset = byte_offset_function(text)
    starts = np.array([byte_offset(start) for start, _ in spans], np.uint32)
    ends = np.array([byte_offset(end) for _, end in spans], np.uint32)
    return np.array([text[start:end] for start, end in spans]), starts, ends


@functools.lru_cache(256)
def compiled(call: str, argument: str, pattern: str) -> Any:
    r"""Convert an ICU regular expression for the library `regex`, which supports scripts, properties and nested sets; `re` does not.

    ICU's `\s` is narrower than Python's. Raises RuntimeError for an invalid expression.
    """
    import regex

    translated = regex.sub(r"\\(.)", lambda match: _SPACES.get(match[1], match[0]), pattern, flags=regex.DOTALL)
    try:
        return regex.compile(translated, regex.V1)
    except regex.error as error:
        raise RuntimeError(message(f"{call}({argument}={short(pattern)})", f"a regular expression ({error})")) from None


_SPACES = {"s": r"\p{White_Space}", "S": r"\P{White_Space}"}
