"""Standard output that can't print every character, or whose reader has closed it, as in `torchspore context | head -1`."""
from __future__ import annotations

import io
import os
import select
import sys

BROKEN_PIPE = 141
"""The exit code that shells report for a program ended by SIGPIPE."""


def has_lost_reader() -> bool:
    """Return whether standard output is a pipe without a reader."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), select.POLLOUT)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError, AttributeError):
        return False


def discard() -> int:
    """Discard the remaining output, so that Python's exit adds no message. Return the exit code."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
    return BROKEN_PIPE


def replace_unprintable() -> None:
    """Let standard output print an escape, such as \\u2026, for a character that its encoding lacks, as standard error does."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict" and not _is_unicode(stream.encoding):
        stream.reconfigure(errors="backslashreplace")


def _is_unicode(encoding: str) -> bool:
    return encoding.lower().startswith("utf")
