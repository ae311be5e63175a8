"""Errors that code writes in English, as `raise ValueError(f"expected an input of {count} axes, got shape {shape}.")`.

Where such an error leaves the front end, `translate_refusal` finds the template of the catalogue that fits its text. Templates begin with
`expected ` and have no period; the values are their numbered fields. A text without a template stays English.
"""
from __future__ import annotations

import functools
import re
import string
from collections.abc import Mapping

from torchspore.translations import messages_of_language

EXPECTED = "expected "
GOT = ", got "
HINT = "\n\nhint: "
_CHOICES = re.compile(r"'[^']*'(?:, '[^']*')*(?: or '[^']*')?")
_PROSE = re.compile(r"(?:^|\s)[a-z]{2,}\s|\s[a-z]{2,}(?:\s|$)")
"""Matches words of a sentence; the value of a field has none."""
_SENTENCE = re.compile(r"(?P<subject>(?:.*?: )?)expected (?P<expected>.+?)\.(?P<rest>\s.*)?", re.S)


def translate_refusal(text: str) -> str:
    """Return an error text in the user's language: `subject: expected ..., got ....`, and its hint."""
    messages = messages_of_language()
    sentence, hint_label, hint = text.partition(HINT)
    match = _SENTENCE.fullmatch(sentence) if messages else None
    expected = match and _translate_expected(match["expected"], messages)
    if not match or not expected:
        return text
    subject = f"{match['subject'][:-2]}：" if match["subject"] else ""
    head = f"{subject}{expected}{messages.get('.', '.')}{match['rest'] or ''}"
    if not hint_label:
        return head
    body = _translate_filled(hint.removesuffix("."), messages)
    return f"{head}\n\n{messages.get('hint: ', 'hint: ')}{body or hint.removesuffix('.')}{messages.get('.', '.')}"


def _translate_expected(expected: str, messages: Mapping[str, str]) -> str | None:
    """Translate what follows `expected`, with the word; None without a template for it."""
    head, got, actual = expected.partition(GOT)
    translated = _translate_filled(EXPECTED + head, messages)
    if translated is None:
        noun = messages.get(head)
        if noun is None and _CHOICES.fullmatch(head):
            noun = head.replace(", ", messages.get(", ", ", ")).replace(" or ", messages.get(" or ", " or "))
        if noun is None:
            return None
        translated = messages.get(EXPECTED + "{0}", EXPECTED + "{0}").replace("{0}", noun)
    if not got:
        return translated
    actual = _translate_filled(actual, messages) or actual
    return messages.get("{expected}, got {kind}", expected).replace("{expected}", translated).replace("{kind}", actual)


def _translate_filled(text: str, messages: Mapping[str, str]) -> str | None:
    """Translate a text whose values are inserted, by the template with the longest literal text that fits."""
    if text in messages:
        return messages[text]
    for template, pattern in _templates(messages):
        match = pattern.fullmatch(text)
        if match and not any(map(_PROSE.search, match.groups())):
            return string.Formatter().vformat(messages[template], match.groups(), {})
    return None


def _templates(messages: Mapping[str, str]) -> list[tuple[str, re.Pattern[str]]]:
    return _templates_of(tuple(text for text in messages if _is_template(text)))


def _is_template(text: str) -> bool:
    """Return whether a text of the catalogue is part of a sentence with fields that are numbered in their order."""
    if "{0}" not in text or text.endswith(".") or text == EXPECTED + "{0}":
        return False
    fields = [field for _, field, *_ in string.Formatter().parse(text) if field is not None]
    return fields == list(map(str, range(len(fields))))


@functools.lru_cache(1)
def _templates_of(texts: tuple[str, ...]) -> list[tuple[str, re.Pattern[str]]]:
    """Return the pattern of each template, those with more literal text first."""
    literal = {text: [part for part, *_ in string.Formatter().parse(text)] for text in texts}
    ordered = sorted(texts, key=lambda text: -sum(map(len, literal[text])))
    return [(text, _pattern(text)) for text in ordered]


def _pattern(template: str) -> re.Pattern[str]:
    """Return the pattern for the texts of a template; its fields are numbered in their order."""
    parts = [re.escape(part) + ("(.+?)" if field is not None else "") for part, field, *_ in string.Formatter().parse(template)]
    return re.compile("".join(parts), re.S)
