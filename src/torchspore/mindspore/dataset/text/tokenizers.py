"""Tokenizers: split a text into a row of tokens, optionally with their byte offsets."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_type
from torchspore.mindspore.dataset.text.choices import NormalizeForm
from torchspore.mindspore.dataset.text.normalization import fold, normal
from torchspore.mindspore.dataset.text.operation import TextTensorOperation, check_text, compiled, text_array, tokens_with_offsets


class Tokenizer(TextTensorOperation):
    """Base: returns the tokens (N,), or with `with_offsets` the tokens with their start and end offsets, in bytes of UTF-8 (uint32)."""

    def __init__(self, with_offsets: bool = False) -> None:
        check_bool(type(self).__name__, "with_offsets", with_offsets)
        self.with_offsets = with_offsets

    def _apply(self, value: np.ndarray) -> Any:
        check_text(type(self).__name__, value, (0,))
        text = value.item()
        if not self.with_offsets:
            return text_array(self.parts(text))
        text = self._prepare(text)
        return tokens_with_offsets(text, self._spans(text))

    def parts(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        text = self._prepare(text)
        return [text[start:end] for start, end in self._spans(text)]

    def _prepare(self, text: str) -> str:
        return text

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end offsets of the tokens."""
        raise NotImplementedError


class UnicodeCharTokenizer(Tokenizer):
    """Splits a text into its characters."""

    def _spans(self, text: str) -> list[tuple[int, int]]:
        return [(index, index + 1) for index in range(len(text))]


class WhitespaceTokenizer(Tokenizer):
    """Splits a text at white space."""

    def parts(self, text: str) -> list[str]:
        # Python's split also splits at four ASCII separators, which are not white space in Unicode.
        if "\x1c" in text or "\x1d" in text or "\x1e" in text or "\x1f" in text:
            return super().parts(text)
        return text.split()

    def _spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _no_spaces().finditer(text)]


@functools.cache
def _no_spaces() -> Any:
    import regex

    return regex.compile(r"\P{White_Space}+")


class UnicodeScriptTokenizer(Tokenizer):
    """Splits a text where the script changes, or white space begins or ends; `keep_whitespace` keeps white space as tokens."""

    def __init__(self, keep_whitespace: bool = False, with_offsets: bool = False) -> None:
        check_bool("UnicodeScriptTokenizer", "keep_whitespace", keep_whitespace)
        super().__init__(with_offsets)
        self.keep_whitespace = keep_whitespace

    def _spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _script_runs().finditer(text) if self.keep_whitespace or match.lastgroup != "spaces"]


_SCRIPTS = """
    Latin Common Han Cyrillic Greek Arabic Hangul Hiragana Katakana Hebrew Devanagari Thai Inherited Adlam Ahom Anatolian_Hieroglyphs
    Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian
    Caucasian_Albanian Chakma Cham Cherokee Chorasmian Coptic Cuneiform Cypriot Deseret Dives_Akuru Dogra Duployan Egyptian_Hieroglyphs
    Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Gujarati Gunjala_Gondi Gurmukhi Hanifi_Rohingya Hanunoo Hatran
    Imperial_Aramaic Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Kayah_Li Kharoshthi Khitan_Small_Script Khmer
    Khojki Khudawadi Lao Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen
    Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar
    Nabataean Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian
    Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa
    Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng
    Soyombo Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangut Telugu Thaana Tibetan Tifinagh
    Tirhuta Ugaritic Vai Wancho Warang_Citi Yezidi Yi Zanabazar_Square
"""


@functools.cache
def _script_runs() -> Any:
    """Return the pattern for runs of white space, of one script, or of no known script. It tries the frequent scripts first."""
    import regex

    runs = "|".join(rf"[\p{{Script={script}}}--\p{{White_Space}}]+" for script in _SCRIPTS.split())
    return regex.compile(rf"(?P<spaces>\p{{White_Space}}+)|{runs}|\p{{Script=Unknown}}+|.", regex.V1)


class RegexTokenizer(Tokenizer):
    """Splits a text at matches of `delim_pattern`; a delimiter that `keep_delim_pattern` matches completely becomes a token."""

    def __init__(self, delim_pattern: str, keep_delim_pattern: str = "", with_offsets: bool = False) -> None:
        check_type("RegexTokenizer", "delim_pattern", delim_pattern, str, "a str")
        check_type("RegexTokenizer", "keep_delim_pattern", keep_delim_pattern, str, "a str")
        super().__init__(with_offsets)
        self.delim_pattern, self.keep_delim_pattern = delim_pattern, keep_delim_pattern

    def _spans(self, text: str) -> list[tuple[int, int]]:
        keep = compiled("RegexTokenizer", "keep_delim_pattern", self.keep_delim_pattern) if self.keep_delim_pattern else None
        return cut(text, compiled("RegexTokenizer", "delim_pattern", self.delim_pattern), keep)


def cut(text: str, delimiters: Any, keep: Any) -> list[tuple[int, int]]:
    """Yield the texts between delimiters, and the delimiters that `keep` matches, in order."""
    spans = []
    last = 0
    for match in delimiters.finditer(text):
        start, end = match.span()
        if start > last:
            spans.append((last, start))
        if keep is not None and end > start and keep.fullmatch(text, start, end):
            spans.append((start, end))
        last = end
    if last < len(text):
        spans.append((last, len(text)))
    return spans


# BERT splits (Devlin et al. 2018, tokenization.py) at punctuation, ASCII characters other than letters and digits, and CJK characters.
_SIGNS = r"[!-/:-@\[-`{-~\p{P}]"
_CJK = (
    r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}"
    r"\x{2F800}-\x{2FA1F}]"
)
_SPECIAL = r"\[CLS\]|\[SEP\]|\[UNK\]|\[PAD\]|\[MASK\]|\[unused\d+\]"


@functools.cache
def _pattern(text: str) -> Any:
    import regex

    return regex.compile(regex.sub(r"\\x\{([0-9A-F]+)\}", lambda match: chr(int(match[1], 16)), text))


class BasicTokenizer(Tokenizer):
    """Splits a text at white space, punctuation and each CJK character, as BERT does.

    `lower_case` first removes capitals and accents; otherwise the text is converted to `normalization_form`. Control characters become
    spaces. `preserve_unused_token` does not split [CLS], [SEP], [UNK], [PAD], [MASK] and [unused1].
    """

    def __init__(
        self, lower_case: bool = False, keep_whitespace: bool = False, normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True, with_offsets: bool = False,
    ) -> None:
        call = type(self).__name__
        check_bool(call, "lower_case", lower_case)
        check_bool(call, "keep_whitespace", keep_whitespace)
        check_type(call, "normalization_form", normalization_form, NormalizeForm, "a member of NormalizeForm")
        check_bool(call, "preserve_unused_token", preserve_unused_token)
        super().__init__(with_offsets)
        self.lower_case, self.keep_whitespace, self.normalization_form = lower_case, keep_whitespace, normalization_form
        self.preserve_unused_token = preserve_unused_token

    def _prepare(self, text: str) -> str:
        if not self.lower_case:
            text = normal(text, self.normalization_form)
        elif self.preserve_unused_token:
            pieces = _pattern(f"({_SPECIAL})").split(text)
            text = "".join([_lower(piece) if index % 2 == 0 else piece for index, piece in enumerate(pieces)])
        else:
            text = _lower(text)
        return _pattern(r"[\p{Cc}\p{Cf}]").sub(" ", text)

    def _spans(self, text: str) -> list[tuple[int, int]]:
        tokens = rf"{_SPECIAL}|{_SIGNS}|{_CJK}" if self.preserve_unused_token else rf"{_SIGNS}|{_CJK}"
        delimiters = rf"{tokens}|\p{{White_Space}}+"
        return cut(text, _pattern(delimiters), _pattern(delimiters if self.keep_whitespace else tokens))


def _lower(text: str) -> str:
    """Return lower-case letters without accents."""
    import unicodedata

    folded = fold(text)
    return folded if folded.isascii() else _pattern(r"\p{Mn}").sub("", unicodedata.normalize("NFD", folded))


class PythonTokenizer(TensorOperation):
    """Splits a text, or each text of a row, by a Python function, which takes a str and returns a list of str."""

    runs_in_any_order = False

    def __init__(self, tokenizer: Any) -> None:
        if not callable(tokenizer):
            raise TypeError(message(f"PythonTokenizer({short(tokenizer)})", f"a function, got {type(tokenizer).__name__}"))
        self.tokenizer = tokenizer
        self.random = False

    def _input(self, value: Any) -> np.ndarray:
        if not isinstance(value, np.ndarray):
            raise TypeError(message(f"PythonTokenizer({short(value)})", f"a NumPy array, got {type(value).__name__}"))
        return value

    def _apply(self, value: np.ndarray) -> np.ndarray:
        if value.dtype.kind not in "US":
            raise TypeError(message(f"PythonTokenizer of {value.dtype}", "text"))
        texts = (np.char.decode(value, "utf-8") if value.dtype.kind == "S" else value).ravel().tolist()
        rows = [self.tokenizer(text) for text in texts]
        return np.array(rows[0] if value.ndim == 0 else rows)
