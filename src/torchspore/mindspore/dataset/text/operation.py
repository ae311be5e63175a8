"""The base of text transforms: they take text, and say so where they are given anything else."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.operation import TensorOperation


class TextTensorOperation(TensorOperation):
    """A transform of one column of text."""

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        if len(values) != 1:
            raise RuntimeError(message(f"{type(self).__name__} of {len(values)} columns", "one column"))
        found = self._apply(values[0])
        return found if type(found) is tuple else (found,)


def check_text(call: str, value: np.ndarray, axes: tuple[int, ...] | None = None) -> None:
    """Raises RuntimeError for what is no text, or has other than `axes` axes."""
    if value.dtype.kind != "U":
        hint = "write text.to_str(...) for bytes" if value.dtype.kind == "S" else None
        raise RuntimeError(message(f"{call} of {value.dtype} {list(value.shape)}", "text", hint=hint))
    if axes is not None and value.ndim not in axes:
        expected = " or ".join({0: "one text", 1: "a row of texts"}[axis] for axis in axes)
        raise RuntimeError(message(f"{call} of text {list(value.shape)}", expected))


def text_array(texts: list[str]) -> np.ndarray:
    """A row of texts; one empty text where there is none, so that a column has a shape."""
    return np.array(texts or [""])


def each(value: np.ndarray, function: Callable[[str], str]) -> np.ndarray:
    """An array of the same shape with every text changed."""
    if value.ndim == 0:
        return np.array(function(value.item()))
    return np.array([function(text) for text in value.ravel().tolist()]).reshape(value.shape)


def byte_places(text: str) -> Callable[[int], int]:
    """Says how many bytes of UTF-8 stand before a letter of `text`."""
    if text.isascii():
        return int
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    widths = 1 + (codes > 0x7F).astype(np.int64) + (codes > 0x7FF) + (codes > 0xFFFF)
    return np.concatenate([[0], np.cumsum(widths)]).__getitem__


def with_places(text: str, spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The parts of a text, and where each begins and ends, in bytes of UTF-8."""
    if not spans:
        spans = [(0, 0)]
    place = byte_places(text)
    starts = np.array([place(start) for start, _ in spans], np.uint32)
    ends = np.array([place(end) for _, end in spans], np.uint32)
    return np.array([text[start:end] for start, end in spans]), starts, ends


@functools.lru_cache(256)
def compiled(call: str, argument: str, pattern: str) -> Any:
    r"""A regular expression of ICU's as one of the library `regex`, which knows scripts, properties and sets of sets; `re` does not.

    ICU's `\s` is narrower than Python's. Raises RuntimeError for what is no expression.
    """
    import regex

    translated = regex.sub(r"\\(.)", lambda found: _SPACES.get(found[1], found[0]), pattern, flags=regex.DOTALL)
    try:
        return regex.compile(translated, regex.V1)
    except regex.error as error:
        raise RuntimeError(message(f"{call}({argument}={short(pattern)})", f"a regular expression ({error})")) from None


_SPACES = {"s": r"\p{White_Space}", "S": r"\P{White_Space}"}
