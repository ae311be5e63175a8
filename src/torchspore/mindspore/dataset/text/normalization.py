"""Text transforms that keep the shape: lower case, normal forms, replacements, Wikipedia's pages as plain words."""
from __future__ import annotations

import re
import unicodedata
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_type
from torchspore.mindspore.dataset.text.choices import NormalizeForm
from torchspore.mindspore.dataset.text.operation import TextTensorOperation, check_text, compiled, each

_IGNORED = dict.fromkeys(
    [0xAD, 0x34F, 0x61C, 0x3164, 0xFEFF, 0xFFA0, *range(0x115F, 0x1161), *range(0x17B4, 0x17B6), *range(0x180B, 0x1810),
     *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9),
     *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)]
)
"""Unicode's Default_Ignorable_Code_Point."""


def fold(text: str) -> str:
    """Unicode's NFKC_Casefold (Unicode Standard, section 3.13): no case, compatibility forms replaced, ignorable characters removed."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold()).translate(_IGNORED)
    return unicodedata.normalize("NFKC", folded.casefold())


def normal(text: str, form: NormalizeForm) -> str:
    """Return a text in a normal form."""
    return text if form is NormalizeForm.NONE or text.isascii() else unicodedata.normalize(form.name, text)  # type: ignore[arg-type]


class CaseFold(TextTensorOperation):
    """Converts text to lower case, by Unicode's NFKC_Casefold: "ß" becomes "ss"."""

    def _apply(self, value: np.ndarray) -> np.ndarray:
        check_text("CaseFold", value)
        return each(value, fold)


class NormalizeUTF8(TextTensorOperation):
    """Converts text to one of Unicode's normal forms."""

    def __init__(self, normalize_form: NormalizeForm = NormalizeForm.NFKC) -> None:
        check_type("NormalizeUTF8", "normalize_form", normalize_form, NormalizeForm, "a member of NormalizeForm")
        self.normalize_form = normalize_form

    def _apply(self, value: np.ndarray) -> np.ndarray:
        check_text("NormalizeUTF8", value)
        return each(value, lambda text: normal(text, self.normalize_form))


class RegexReplace(TextTensorOperation):
    r"""Replaces all matches of `pattern`, or only the first; `$1` or `${name}` in `replace` inserts a group, `\x` inserts x.

    Raises RuntimeError for an invalid regular expression, and for an unknown group.
    """

    def __init__(self, pattern: str, replace: str, replace_all: bool = True) -> None:
        check_type("RegexReplace", "pattern", pattern, str, "a str")
        check_type("RegexReplace", "replace", replace, str, "a str")
        check_bool("RegexReplace", "replace_all", replace_all)
        self.pattern, self.replace, self.replace_all = pattern, replace, replace_all

    def _apply(self, value: np.ndarray) -> np.ndarray:
        check_text("RegexReplace", value)
        pattern = compiled("RegexReplace", "pattern", self.pattern)
        parts = self._parts(pattern)
        if len(parts) == 1 and isinstance(parts[0], str):
            replacement: Any = lambda _: parts[0]
        else:
            replacement = lambda match: "".join([part if isinstance(part, str) else match[part[0]] or "" for part in parts])
        return each(value, lambda text: pattern.sub(replacement, text, count=0 if self.replace_all else 1))

    def _parts(self, pattern: Any) -> list[str | tuple[Any]]:
        """Return the replacement as texts and groups."""
        parts: list[str | tuple[Any]] = [""]
        for escaped, number, name, lone, plain in re.findall(r"\\(.)|\$(\d)|\$\{(\w+)\}|(\$)|([^\\$]+|\\$)", self.replace, re.DOTALL):
            if lone or (number and int(number) > pattern.groups) or (name and name not in pattern.groupindex):
                subject = f"RegexReplace(replace={short(self.replace)})"
                raise RuntimeError(message(subject, "groups that the pattern has, or \\$ for a dollar"))
            parts.append((int(number),) if number else (name,) if name else escaped or plain)
        if all(isinstance(part, str) for part in parts):
            return ["".join(parts)]  # type: ignore[arg-type]
        return parts


class FilterWikipediaXML(TextTensorOperation):
    """Extracts the plain words of a page of Wikipedia's XML: letters a to z, single spaces, digits spelled out; redirects become empty.

    The steps are those of Matt Mahoney's wikifil.pl (http://mattmahoney.net/dc/textdata.html) that MindSpore implements.
    """

    def _apply(self, value: np.ndarray) -> np.ndarray:
        check_text("FilterWikipediaXML", value)
        return each(value, _words_of_page)


_DIGITS = {str(digit): f" {word} " for digit, word in enumerate("zero one two three four five six seven eight nine".split())}


def _without_tags(line: str) -> str:
    """Return a line without the text from its first "<" to its last ">"."""
    start, end = line.find("<"), line.rfind(">")
    return line[:start] + line[end + 1 :] if 0 <= start < end else line


def _words_of_page(text: str) -> str:
    if "#redirect" in text or "#REDIRECT" in text:
        return ""
    # Not by regular expressions: `<.*>` and `&[^;]*;` take quadratic time for a line that consists of "<" or "&".
    text = "\n".join([_without_tags(line) for line in text.split("\n")])
    *closed, last = text.split(";")
    text = " ".join([*(part.partition("&")[0] for part in closed), last])
    text = re.sub(r"[0-9]", lambda match: _DIGITS[match[0]], re.sub("[A-Z]", lambda match: match[0].lower(), text))
    return " ".join(re.sub(r"[^a-z]+", " ", text).split())
