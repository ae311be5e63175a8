"""What Python notes of what it is in the middle of, for the watcher: operators in Python, steps of the data pipeline.

The native file (watch.cpp) sees torch's operators by itself; a mark is for what it can't see. Where nobody watches, a mark is one look.
"""
from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from torchspore.blackbox.board import MARK, Board

wanted = False
"""Whether a watcher reads marks."""
writes_ring = False
"""Whether marks are all that the ring is made of, where there is no native watch."""
_board: Board | None = None
_lock = threading.Lock()
_pack = struct.Struct("<Q").pack_into


class _Local(threading.local):
    place: int = 0
    board: Any = None
    depth: int = 0


_local = _Local()


def read_by(board: Board | None) -> None:
    """Marks go to this board from now on; None for nowhere."""
    global wanted, _board
    _board, wanted = board, board is not None


def begin(kind: str, name: str) -> None:
    """Says that this thread begins `name`; what is marked inside of it belongs to it. Each has its `end`."""
    own = _local
    own.depth += 1
    board = _board
    if own.depth > 1 or board is None:
        return
    if own.board is not board:
        _join(board)
    if own.place:
        memory, at = board.memory, own.place
        text = f"{kind} {name}".encode()[: MARK - 17]
        memory[at + 16 : at + 17 + len(text)] = text + b"\0"
        _pack(memory, at + 8, monotonic_ns())


def end() -> None:
    """Says that it has ended."""
    own = _local
    own.depth -= 1
    if own.depth == 0 and own.place and own.board is not None:
        _pack(own.board.memory, own.place + 8, 0)


def marked(body: Callable[..., Any], name: str, kind: str = "operator") -> Callable[..., Any]:
    """`body`, marked as `name` while it runs."""
    def run(*arguments: Any, **keywords: Any) -> Any:
        begin(kind, name)
        started = monotonic_ns()
        try:
            return body(*arguments, **keywords)
        finally:
            end()
            if writes_ring and _board is not None:
                tensors = [one for one in arguments if hasattr(one, "dtype") and hasattr(one, "shape")]
                taken = [(str(one.dtype).rpartition(".")[2], tuple(one.shape)) for one in tensors]
                _board.write(name, started, monotonic_ns(), threading.get_native_id(), taken[:4], max(0, len(taken) - 4))

    return run


def _join(board: Board) -> None:
    with _lock:
        place = board.mark_slot(threading.get_ident())
        if not place:
            board.free_marks({thread.ident or 0 for thread in threading.enumerate()})
            place = board.mark_slot(threading.get_ident())
    _local.place, _local.board = place, board
