"""MindSpore's module of this name: every text transform."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.text.choices import JiebaMode, NormalizeForm, SPieceTokenizerLoadType, SPieceTokenizerOutType
from torchspore.mindspore.dataset.text.jieba import JiebaTokenizer
from torchspore.mindspore.dataset.text.normalization import CaseFold, FilterWikipediaXML, NormalizeUTF8, RegexReplace
from torchspore.mindspore.dataset.text.operation import TextTensorOperation
from torchspore.mindspore.dataset.text.sentence_pieces import SentencePieceTokenizer, SentencePieceVocab
from torchspore.mindspore.dataset.text.sequences import AddToken, Ngram, SlidingWindow, ToNumber, Truncate, TruncateSequencePair
from torchspore.mindspore.dataset.text.tokenizers import (
    BasicTokenizer,
    PythonTokenizer,
    RegexTokenizer,
    UnicodeCharTokenizer,
    UnicodeScriptTokenizer,
    WhitespaceTokenizer,
)
from torchspore.mindspore.dataset.text.vectors import ToVectors
from torchspore.mindspore.dataset.text.vocabulary import Lookup
from torchspore.mindspore.dataset.text.word_pieces import BertTokenizer, WordpieceTokenizer
