"""The native file that records each operator (watch.cpp).

A C++ compiler needs some seconds to build it, concurrently with the program; until then, and without a compiler, only Python's marks exist.
"""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchspore.blackbox.board import SIZE
from torchspore.engine.native.native_build import NO_COMPILER, Source

__all__ = ["NO_COMPILER", "build", "load", "unload", "why_not"]
_SOURCE = Source(Path(__file__).with_name("watch.cpp"))
_END_SIGNALS = Source(Path(__file__).with_name("end_signals.cpp"))


class _Build:
    """The thread that builds the library, and its waiting callers."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.waiting: Callable[[Any], None] | None = None
        """The functions that receive the library when it is built."""


_BUILD = _Build()


def why_not() -> str:
    """Return why the native watch is unavailable; empty if it exists or can be built."""
    return _SOURCE.why_not()


def load(use: Callable[[Any], None]) -> None:
    """Pass the library to `use`: at once if it exists, otherwise from a thread after it is built; never if that fails."""
    if why_not():
        return
    if _SOURCE.library().exists():
        _use(use)
        return
    _BUILD.waiting = use
    if _BUILD.thread is None:
        _BUILD.thread = threading.Thread(target=_build_and_use, name="torchspore-native", daemon=True)
        _BUILD.thread.start()


def install_end_signals(stack_signal: int, exit_signal: int, code: int) -> bool:
    """Install the handlers of end_signals.cpp. Return whether they are installed; without a compiler they cannot be built.

    The file includes no header of torch, so the first build takes a fraction of a second.
    """
    try:
        library = _END_SIGNALS.build()
    except OSError:
        return False
    return library is not None and ctypes.CDLL(str(library)).torchspore_install_end_signals(stack_signal, exit_signal, code) == 0


def unload() -> None:
    """Cancel the request for the library."""
    _BUILD.waiting = None


def build() -> bool:
    """Build the library, if it does not exist; return whether it exists."""
    return _SOURCE.build() is not None


def _build_and_use() -> None:
    try:
        if _SOURCE.build() is not None and _BUILD.waiting is not None:
            _use(_BUILD.waiting)
    except OSError:                        # no room, no rights: Python's marks go on
        return


def _use(use: Callable[[Any], None]) -> None:
    path = _SOURCE.build()
    if path is None:
        return
    library = ctypes.CDLL(str(path))
    library.torchspore_size.restype = ctypes.c_uint64
    library.torchspore_arm.argtypes = [ctypes.c_void_p, ctypes.c_int]
    if library.torchspore_size() == SIZE:
        use(library)
