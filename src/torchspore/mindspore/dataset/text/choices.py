"""What text transforms are told by name."""
from __future__ import annotations

from enum import IntEnum


class JiebaMode(IntEnum):
    """How Chinese is cut into words: by both ways, by the likeliest words of the dictionary, or by the model of letters alone."""

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
    """How SentencePiece cuts."""

    UNIGRAM = 0
    BPE = 1
    CHAR = 2
    WORD = 3


class SPieceTokenizerOutType(IntEnum):
    """What `SentencePieceTokenizer` gives: the pieces, or their numbers."""

    STRING = 0
    INT = 1


class SPieceTokenizerLoadType(IntEnum):
    """Where `SentencePieceTokenizer` has its model from."""

    FILE = 0
    MODEL = 1
