"""The requests that a test sends to `workers/server.py`, and the answers."""
from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass, field
from typing import Any, BinaryIO


@dataclass
class Job:
    """A function of a test file, to be run by `count` ranks with these arguments."""

    file: str
    function: str
    count: int
    arguments: tuple[Any, ...] = ()
    seconds: float = 60.0
    variables: dict[str, str] = field(default_factory=dict)


@dataclass
class Ended:
    """What came of one rank: `value`, or the error by its type's name, its text and its traceback; or a signal, or the time-out."""

    value: Any = None
    error: str | None = None
    text: str = ""
    traceback: str = ""
    code: int = 0
    is_late: bool = False
    out: str = ""
    seconds: float = 0.0


def write(pipe: BinaryIO, value: Any) -> None:
    """Writes a value with its length."""
    data = pickle.dumps(value)
    pipe.write(struct.pack("<q", len(data)) + data)
    pipe.flush()


def read(pipe: BinaryIO) -> Any:
    """Reads a value; raises EOFError at the end."""
    head = pipe.read(8)
    if len(head) < 8:
        raise EOFError
    return pickle.loads(pipe.read(struct.unpack("<q", head)[0]))
