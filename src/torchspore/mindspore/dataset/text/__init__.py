"""Text transforms, vocabularies and word vectors."""
from __future__ import annotations

from torchspore.mindspore.dataset.text import transforms, utils
from torchspore.mindspore.dataset.text.transforms import (
    AddToken,
    BasicTokenizer,
    BertTokenizer,
    CaseFold,
    FilterWikipediaXML,
    JiebaTokenizer,
    Lookup,
    Ngram,
    NormalizeUTF8,
    PythonTokenizer,
    RegexReplace,
    RegexTokenizer,
    SentencePieceTokenizer,
    SlidingWindow,
    ToNumber,
    ToVectors,
    Truncate,
    TruncateSequencePair,
    UnicodeCharTokenizer,
    UnicodeScriptTokenizer,
    WhitespaceTokenizer,
    WordpieceTokenizer,
)
from torchspore.mindspore.dataset.text.utils import (
    CharNGram,
    FastText,
    GloVe,
    JiebaMode,
    NormalizeForm,
    SentencePieceModel,
    SentencePieceVocab,
    SPieceTokenizerLoadType,
    SPieceTokenizerOutType,
    Vectors,
    Vocab,
    to_bytes,
    to_str,
)
from torchspore.public_names import missing

__getattr__ = missing(__name__)
