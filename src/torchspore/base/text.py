"""The common form of every message that a user can see."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from torchspore.translations import translate

LONGEST_VALUE = 60
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")


def message(subject: str, expected: str, *, hint: str | None = None) -> str:
    """Build an error text: what was written, what was expected, a blank line, a hint.

    `subject` is the call as the user wrote it; `expected` completes the sentence "expected ...". A literal `expected` or `hint` with an
    entry in the catalogue is translated.
    """
    text = translate("{subject}: expected {expected}.").format(subject=subject, expected=_translate_expected(expected))
    return text if hint is None else with_hint(text, hint)


def _translate_expected(expected: str) -> str:
    """Translate a literal text, also one that a value follows as in `a Cell, got int`."""
    head, got, kind = expected.rpartition(", got ")
    translated = translate(expected)
    if not got or translated != expected:
        return translated
    return translate("{expected}, got {kind}").format(expected=translate(head), kind=kind)


def with_type(expected: str, value: object) -> str:
    """Add the type of the value to what was expected: `an int, got str`."""
    return translate("{expected}, got {kind}").format(expected=translate(expected), kind=type(value).__name__)


def with_hint(text: str, hint: str) -> str:
    """Append a blank line and a `hint:` line to a complete sentence; the hint ends with a period or a question mark."""
    hint = translate(hint)
    return text + _hint_label() + hint + ("" if hint.endswith((".", "?", "。", "？")) else translate("."))


def split_hint(text: str) -> tuple[str, str]:
    """Return the sentence and the hint of a message, without the `hint:` between them; the hint is "" if the message has none."""
    label = _hint_label()
    sentence, _, hint = text.partition(label if label in text else "\n\nhint: ")
    return sentence, hint


def _hint_label() -> str:
    return f"\n\n{translate('hint: ')}"


def format_call(call: str, inner: str) -> str:
    """Format what was written: `set_context(mode=1)`, and for a file `context.toml: mode=1`."""
    return f"{call}: {inner}" if "." in call else f"{call}({inner})"


def short(value: object) -> str:
    """Return the repr of a value on one line, shortened in the middle if it is longer than LONGEST_VALUE."""
    shown = re.sub(r"\s*\n\s*", " ", show_full(value))
    if len(shown) <= LONGEST_VALUE:
        return shown
    half = LONGEST_VALUE // 2 - 2
    return f"{shown[:half]} .. {shown[-half:]}"


def show_full(value: object) -> str:
    """Return the repr of a value, or its type if repr fails, so that building a message never fails."""
    try:
        return without_addresses(repr(value))
    except Exception:  # a __repr__ of the user's, deeply nested lists, an int with more digits than Python writes
        if isinstance(value, int):
            return translate("an int of {count} bits").format(count=value.bit_length())
        return translate("<{kind} that can't be shown>").format(kind=type(value).__name__)


def without_addresses(text: str) -> str:
    """Remove the ` at 0x7f..` of default reprs: it does not help the reader and differs between runs."""
    return _ADDRESS.sub("", text)


def list_choices(words: Iterable[object]) -> str:
    """Format choices as a sentence does: `'a'`, `'a' or 'b'`, `'a', 'b' or 'c'`."""
    return join_choices([repr(word) for word in words])


def join_choices(words: Sequence[str]) -> str:
    """Join words as a sentence does: `a`, `a or b`, `a, b or c`."""
    return words[0] if len(words) == 1 else translate(", ").join(words[:-1]) + translate(" or ") + words[-1]


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, with its period."""
    for stop in ("。", ". "):
        head, separator, _ = text.partition(stop)
        if separator:
            return head + stop.strip()
    return text


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def format_bytes(count: int) -> str:
    """Format a number of bytes for users."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"


def consecutive_spans(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and the last number of each run of consecutive numbers: 0, 1, 2, 5 are (0, 2) and (5, 5)."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return spans
