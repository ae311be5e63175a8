"""Read trace files in Chrome's format, event by event, in bounded memory: torchspore's, MindSpore's and torch's.

A file is JSON: a list of events, or an object whose member `traceEvents` is one. It is read in pieces; the part after a damaged
position is dropped and reported, the part before it is used.
"""
from __future__ import annotations

import codecs
import gzip
import json
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from torchspore.translations import translate

PIECE = 1 << 20
LONGEST_EVENT = 1 << 20
"""Maximum number of characters of an event; a longer one counts as damage."""
MOST_TEXT = 4 << 30
"""Maximum number of unpacked characters read from a file: a small archive may unpack to any length."""
_BLANK = " \t\r\n,"
_LIST = '"traceEvents"'


class NotATrace(Exception):
    """The reason why a file contains no trace; its text is one sentence without the file's name."""


class Reader:
    """Yields the events of a file; afterwards `damage` describes what was wrong, '' if nothing was."""

    def __init__(self, path: Path, piece: int = PIECE) -> None:
        self._piece = piece
        self.path, self.damage, self._text, self._at, self._read = path, "", "", 0, 0
        self._letters = codecs.getincrementaldecoder("utf-8")(errors="replace")    # a character may span two pieces

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events in the order of the file. Raise NotATrace if the list is missing, or OSError."""
        decoder = json.JSONDecoder()
        with _open(self.path) as self._file:
            if not self._find_list():
                raise NotATrace(translate("it contains no list of trace events"))
            while True:
                self._skip_blanks()
                if self._peek() in ("]", ""):
                    if not self._peek():
                        self._note_damage(translate("it ends in the middle"))
                    return
                event = self._event(decoder)
                if event is None:
                    return
                if isinstance(event, dict):
                    yield event

    def _event(self, decoder: json.JSONDecoder) -> Any:
        while True:
            try:
                event, end = decoder.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                is_cut = isinstance(error, json.JSONDecodeError) and (
                    error.pos > len(self._text) - 12 or error.msg.startswith("Unterminated"))
                if is_cut and len(self._text) - self._at > LONGEST_EVENT:
                    self._note_damage(translate("an event is longer than {count:,} characters").format(count=LONGEST_EVENT))
                elif is_cut and self._more():
                    continue
                else:
                    self._note_damage(
                            translate("it ends in the middle of an event") if is_cut else translate("an event is not readable JSON"))
                return None
            self._at = end
            return event

    def _find_list(self) -> bool:
        self._more()
        self._skip_blanks()
        if self._peek() == "[":
            self._at += 1
            return True
        if self._peek() != "{":
            return False
        while True:
            at = self._text.find(_LIST, self._at)
            if at >= 0:
                self._at = at + len(_LIST)
                self._skip_blanks(": ")
                if self._peek() == "[":
                    self._at += 1
                    return True
                continue
            self._at = max(self._at, len(self._text) - len(_LIST))
            if not self._more():
                return False

    def _skip_blanks(self, more: str = "") -> None:
        blank = _BLANK + more
        while True:
            while self._at < len(self._text) and self._text[self._at] in blank:
                self._at += 1
            if self._at < len(self._text) or not self._more():
                return

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _more(self) -> bool:
        """Read the next piece, and drop the text before the current position."""
        try:
            piece = self._file.read(self._piece)
        except (OSError, EOFError, zlib.error) as error:
            self._note_damage(translate("its compressed part is damaged ({error})").format(error=type(error).__name__))
            return False
        self._read += len(piece)
        if self._read > MOST_TEXT:
            self._note_damage(translate("only its first {size} GiB are read").format(size=MOST_TEXT >> 30))
            return False
        self._text = self._text[self._at :] + self._letters.decode(piece, final=not piece)
        self._at = 0
        return bool(piece)

    def _note_damage(self, what: str) -> None:
        self.damage = self.damage or what


def _open(path: Path) -> BinaryIO:
    if not stat.S_ISREG(path.stat().st_mode):
        raise NotATrace(translate("it is not a regular file"))
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if is_packed else path.open("rb")  # type: ignore[return-value]


def number(value: Any) -> float | None:
    """Return a time or a count of an event, which MindSpore writes as text; None if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        parsed = float(value) if len(str(value)) < 64 else None
    except (ValueError, OverflowError):
        return None
    return parsed if parsed is not None and parsed - parsed == 0 and abs(parsed) < 1e18 else None
