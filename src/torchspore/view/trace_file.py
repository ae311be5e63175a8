"""Reads trace files in Chrome's form, event by event, in bounded memory: torchspore's, MindSpore's and torch's own.

A file is JSON: a list of events, or an object whose member `traceEvents` is one. It is read in pieces; what follows a damaged place is
given up and told, what stands before it is kept.
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

PIECE = 1 << 20
LONGEST_EVENT = 1 << 20
"""Characters that one event may take; a longer one is damage."""
MOST_TEXT = 4 << 30
"""Characters that are read of a file, unpacked: a small archive may unpack to any length."""
_BLANK = " \t\r\n,"
_LIST = '"traceEvents"'


class NotATrace(Exception):
    """Why a file holds no trace; its text is one sentence without the file's name."""


class Reader:
    """Gives the events of a file; afterwards `damage` says what was found wrong, '' where nothing was."""

    def __init__(self, path: Path, piece: int = PIECE) -> None:
        self._piece = piece
        self.path, self.damage, self._text, self._at, self._read = path, "", "", 0, 0
        self._letters = codecs.getincrementaldecoder("utf-8")(errors="replace")    # a letter may lie across the border of two pieces

    def events(self) -> Iterator[dict[str, Any]]:
        """The events in the order of the file. Raises NotATrace where there is none at all, OSError."""
        decoder = json.JSONDecoder()
        with _opened(self.path) as self._file:
            if not self._find_list():
                raise NotATrace("it holds no list of trace events")
            while True:
                self._skip_blanks()
                if self._peek() in ("]", ""):
                    if not self._peek():
                        self._damaged("it ends in the middle")
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
                    self._damaged(f"an event is longer than {LONGEST_EVENT:,} characters")
                elif is_cut and self._more():
                    continue
                else:
                    self._damaged("it ends in the middle of an event" if is_cut else "an event is no JSON that can be read")
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
        """Reads on; what lies behind is dropped."""
        try:
            piece = self._file.read(self._piece)
        except (OSError, EOFError, zlib.error) as error:
            self._damaged(f"its compressed part is damaged ({type(error).__name__})")
            return False
        self._read += len(piece)
        if self._read > MOST_TEXT:
            self._damaged(f"only its first {MOST_TEXT >> 30} GiB are read")
            return False
        self._text = self._text[self._at :] + self._letters.decode(piece, final=not piece)
        self._at = 0
        return bool(piece)

    def _damaged(self, what: str) -> None:
        self.damage = self.damage or what


def _opened(path: Path) -> BinaryIO:
    if not stat.S_ISREG(path.stat().st_mode):
        raise NotATrace("it is no plain file")
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if is_packed else path.open("rb")  # type: ignore[return-value]


def number(value: Any) -> float | None:
    """A time or a count of an event, which MindSpore writes as text; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value) if len(str(value)) < 64 else None
    except (ValueError, OverflowError):
        return None
    return found if found is not None and found - found == 0 and abs(found) < 1e18 else None
