"""Tokenizers that split words into the pieces of a vocabulary: `WordpieceTokenizer`, and BERT's, which first splits into words."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.validator_helpers import UINT32_MAX, check_bool, check_int, check_type
from torchspore.mindspore.dataset.text.choices import NormalizeForm
from torchspore.mindspore.dataset.text.operation import TextTensorOperation, byte_offset_function, check_text, text_array
from torchspore.mindspore.dataset.text.tokenizers import BasicTokenizer
from torchspore.mindspore.dataset.text.vocabulary import Vocab


class WordpieceTokenizer(TextTensorOperation):
    """Splits a word, or each word of a row, into the longest pieces of `vocab`; `suffix_indicator` precedes a piece inside a word.

    A word of more than `max_bytes_per_token` bytes, or with a part that is not a piece, becomes `unknown_token` ("" leaves it unchanged).
    `with_offsets` adds each piece's start and end offsets in its word, in bytes of UTF-8.
    """

    def __init__(
        self, vocab: Any, suffix_indicator: str = "##", max_bytes_per_token: int = 100, unknown_token: str = "[UNK]",
        with_offsets: bool = False,
    ) -> None:
        call = type(self).__name__
        check_type(call, "vocab", vocab, Vocab, "a Vocab")
        check_type(call, "suffix_indicator", suffix_indicator, str, "a str")
        check_type(call, "unknown_token", unknown_token, str, "a str")
        check_int(call, "max_bytes_per_token", max_bytes_per_token, 0, UINT32_MAX)
        check_bool(call, "with_offsets", with_offsets)
        self.vocab, self.suffix_indicator, self.max_bytes_per_token = vocab, suffix_indicator, max_bytes_per_token
        self.unknown_token, self.with_offsets = unknown_token, with_offsets
        self._longest = max(map(len, vocab._ids), default=0)

    def _apply(self, value: np.ndarray) -> Any:
        check_text(type(self).__name__, value, (0, 1))
        words = value.reshape(-1).tolist()
        return self.cut(words, [0] * len(words))

    def cut(self, words: list[str], starts: list[int]) -> Any:
        """Return the pieces of words that begin at the bytes `starts`. Raises TypeError unless the words are a list of str."""
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise TypeError(message(f"{type(self).__name__}.cut({short(words)})", f"a list of str, got {type(words).__name__}"))
        pieces: list[str] = []
        offset_pairs: list[tuple[int, int]] = []
        for word, first in zip(words, starts):
            byte_offset = byte_offset_function(word) if self.with_offsets else int
            num_bytes = len(word) if word.isascii() else len(word.encode("utf-8", "surrogatepass"))
            spans = self._spans(word) if num_bytes <= self.max_bytes_per_token else None
            if spans is None:
                pieces.append(self.unknown_token or word)
                offset_pairs.append((first, first + num_bytes))
                continue
            pieces += [self.suffix_indicator + word[start:end] if start else word[start:end] for start, end in spans]
            offset_pairs += [(first + byte_offset(start), first + byte_offset(end)) for start, end in spans]
        if not self.with_offsets:
            return text_array(pieces)
        offsets = np.array(offset_pairs or [(0, 0)], np.uint32)
        return text_array(pieces), np.ascontiguousarray(offsets[:, 0]), np.ascontiguousarray(offsets[:, 1])

    def _spans(self, word: str) -> list[tuple[int, int]] | None:
        """Return the offsets of the longest pieces, from the front; None if one is missing."""
        ids = self.vocab._ids
        if word in ids or not word:
            return [(0, len(word))]
        spans = []
        start = 0
        while start < len(word):
            before = self.suffix_indicator if start else ""
            end = min(len(word), start + self._longest)
            while end > start and before + word[start:end] not in ids:
                end -= 1
            if end == start:
                return None
            spans.append((start, end))
            start = end
        return spans


class BertTokenizer(TextTensorOperation):
    """Applies `BasicTokenizer` and then `WordpieceTokenizer`; the offsets count from the beginning of the text."""

    def __init__(
        self, vocab: Any, suffix_indicator: str = "##", max_bytes_per_token: int = 100, unknown_token: str = "[UNK]",
        lower_case: bool = False, keep_whitespace: bool = False, normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True, with_offsets: bool = False,
    ) -> None:
        self.words = BasicTokenizer(lower_case, keep_whitespace, normalization_form, preserve_unused_token, True)
        self.pieces = WordpieceTokenizer(vocab, suffix_indicator, max_bytes_per_token, unknown_token, with_offsets)

    def _apply(self, value: np.ndarray) -> Any:
        check_text("BertTokenizer", value, (0,))
        words, starts, _ = self.words._apply(value)
        return self.pieces.cut(words.tolist(), starts.tolist())
