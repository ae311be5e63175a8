"""Enumerations for the arguments of text transforms."""
from __future__ import annotations

from enum import IntEnum


class JiebaMode(IntEnum):
    """Segmentation of Chinese: by both methods, by the likeliest words of the dictionary, or by the character model alone."""

    MIX = 0
    MP = 1
    HMM = 2


class NormalizeForm(IntEnum):
    """Unicode's normal forms."""

    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4


class SentencePieceModel(IntEnum):
    """Kind of a SentencePiece model."""

    UNIGRAM = 0
    BPE = 1
    CHAR = 2
    WORD = 3


class SPieceTokenizerOutType(IntEnum):
    """Output of `SentencePieceTokenizer`: the pieces, or their ids."""

    STRING = 0
    INT = 1


class SPieceTokenizerLoadType(IntEnum):
    """Source of the model of `SentencePieceTokenizer`."""

    FILE = 0
    MODEL = 1
