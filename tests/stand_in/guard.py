"""The part of the device that torch asks from C++, built at first need: `guard.cpp`.

torch's guard for devices in Python calls Python while the error of a gradient is raised, which ends the process; and it has no streams.
"""
from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

from torchspore.engine.native.native_build import Source

_source = Source(Path(__file__).with_name("guard.cpp"))
_Note = ctypes.PYFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int)
_library: ctypes.PyDLL | None = None
_followers: list[object] = []


def why_not() -> str:
    """Return why there is no stand-in here; an empty text where there is one."""
    return _source.why_not()


def register() -> None:
    """Register the device in torch. Raises RuntimeError where it can not be built."""
    global _library
    if _library is None:
        path = _source.build()
        if path is None:
            raise RuntimeError(f"the stand-in accelerator can not be built: {_source.why_not() or 'the compiler fails'}")
        _library = ctypes.PyDLL(str(path))
        _library.stand_in_stream.restype = ctypes.c_int64
        _library.stand_in_set_stream.argtypes = [ctypes.c_int64]


def current_stream() -> int:
    """Return the number of this thread's stream. A gradient runs on the stream of its forward operator."""
    return _library.stand_in_stream() if _library is not None else 0


def set_current_stream(number: int) -> None:
    """Let this thread's operators run on a stream."""
    assert _library is not None
    _library.stand_in_set_stream(number)


def follow_events(note: Callable[[int, int, int], None]) -> None:
    """Let a function see the events of torch.autograd: `note(event, stream, action)`.

    Actions: 0 records the event on the stream, 1 lets the stream wait for the event, 2 releases the event.
    """
    assert _library is not None
    _followers[:] = [_Note(note)]
    _library.stand_in_follow_events(_followers[0])
