"""The one form of every message a user can meet."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST_VALUE = 60
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+(?=>)")


def message(what: str, expected: str, *, hint: str | None = None) -> str:
    """Builds the house error text: what was written, what was expected, a blank line, a hint.

    `what` names the call as the user wrote it, `expected` completes the sentence "expected ...".
    """
    text = f"{what}: expected {expected}."
    return text if hint is None else with_hint(text, hint)


def with_hint(text: str, hint: str) -> str:
    """Adds the blank line and the `hint:` line to a message that is already a sentence; a period or a question mark ends it."""
    return f"{text}\n\nhint: {hint}" + ("" if hint.endswith((".", "?")) else ".")


def called(call: str, inner: str) -> str:
    """Shows what was written: `set_context(mode=1)`, and for a file `context.toml: mode=1`."""
    return f"{call}: {inner}" if "." in call else f"{call}({inner})"


def short(value: object) -> str:
    """Shows a value as Python writes it, on one line, cut in the middle where it would fill that."""
    shown = re.sub(r"\s*\n\s*", " ", shown_whole(value))
    if len(shown) <= LONGEST_VALUE:
        return shown
    half = LONGEST_VALUE // 2 - 2
    return f"{shown[:half]} .. {shown[-half:]}"


def shown_whole(value: object) -> str:
    """A value as Python writes it; one that Python can't write is told by its type: a message never fails."""
    try:
        return without_addresses(repr(value))
    except Exception:  # a user's own __repr__, lists in lists in lists, an int of more digits than Python writes
        if isinstance(value, int):
            return f"an int of {value.bit_length()} bits"
        return f"<{type(value).__name__} that can't be shown>"


def without_addresses(text: str) -> str:
    """A text without the ` at 0x7f..` of objects that show no more of themselves: it tells nobody anything and is another in each run."""
    return _ADDRESS.sub("", text)


def one_of(words: Iterable[object]) -> str:
    """Lists choices as a person would: `'a'`, `'a' or 'b'`, `'a', 'b' or 'c'`."""
    shown = [repr(word) for word in words]
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " or " + shown[-1]


def first_sentence(text: str) -> str:
    """Gives the first sentence of a text, with its period."""
    head, stop, _ = text.partition(". ")
    return head + "." if stop else text


_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def in_bytes(count: int) -> str:
    """A number of bytes for people."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"
