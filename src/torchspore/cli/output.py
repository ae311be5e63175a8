"""Standard output whose reader has gone, as in `torchspore context | head -1`: the command ends without a message."""
from __future__ import annotations

import os
import select
import sys

BROKEN_PIPE = 141
"""The exit code of a program that SIGPIPE ends, as shells report it."""


def has_lost_reader() -> bool:
    """Return whether standard output is a pipe that nobody reads any more."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), select.POLLOUT)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError, AttributeError):
        return False


def discard() -> int:
    """Send what is still printed to nowhere, so that Python's end adds no message. Return the exit code."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
    return BROKEN_PIPE
