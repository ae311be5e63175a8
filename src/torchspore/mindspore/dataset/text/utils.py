"""Enumerations for the arguments of text transforms, vocabularies, word vectors, and conversion between text and bytes."""

# ruff: noqa: F401
from __future__ import annotations

import codecs
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.text.choices import (
    JiebaMode,
    NormalizeForm,
    SentencePieceModel,
    SPieceTokenizerLoadType,
    SPieceTokenizerOutType,
)
from torchspore.mindspore.dataset.text.sentence_pieces import SentencePieceVocab
from torchspore.mindspore.dataset.text.vectors import CharNGram, FastText, GloVe, Vectors
from torchspore.mindspore.dataset.text.vocabulary import Vocab


def to_bytes(array: Any, encoding: str = "utf8") -> np.ndarray:
    """Converts an array of text to bytes. Raises ValueError if it is not an array."""
    if not isinstance(array, np.ndarray):
        raise ValueError(message(f"to_bytes({short(array)})", f"a NumPy array, got {type(array).__name__}"))
    if array.dtype.kind != "U":
        raise TypeError(message(f"to_bytes of {array.dtype}", "an array of text"))
    _check_encoding("to_bytes", encoding)
    return np.char.encode(array, encoding)


def to_str(array: Any, encoding: str = "utf8") -> np.ndarray:
    """Converts an array of bytes to text. Raises ValueError if it is not an array."""
    if not isinstance(array, np.ndarray):
        raise ValueError(message(f"to_str({short(array)})", f"a NumPy array, got {type(array).__name__}"))
    if array.dtype.kind == "U":
        raise AttributeError(message(f"to_str of {array.dtype}", "an array of bytes", hint="it is text already"))
    if array.dtype.kind != "S":
        raise TypeError(message(f"to_str of {array.dtype}", "an array of bytes"))
    _check_encoding("to_str", encoding)
    return np.char.decode(array, encoding)


def _check_encoding(call: str, encoding: Any) -> None:
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ValueError(message(f"{call}(encoding={encoding!r})", "an encoding that Python supports", hint="write 'utf8'")) from None
