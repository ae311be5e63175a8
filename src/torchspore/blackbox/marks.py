"""Python's notes about its current activity, for the watcher: operators in Python, steps of the data pipeline.

The native code (watch.cpp) observes torch's operators itself; marks cover the rest. Without a watcher a mark costs one check.
"""
from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchspore.blackbox.board import Board

is_enabled = False
"""True if a watcher reads marks."""
writes_ring = False
"""True if the ring contains only marks, because the native watch is not available."""
_board: Board | None = None
_lock = threading.Lock()
_pack = struct.Struct("<Q").pack_into


class _Local(threading.local):
    slot: int = 0
    board: Any = None
    depth: int = 0


_local = _Local()


def read_by(board: Board | None) -> None:
    """Direct marks to this board; None disables them."""
    global is_enabled, _board
    _board, is_enabled = board, board is not None


def begin(kind: str, name: str) -> None:
    """Note that this thread begins `name`; marks inside it belong to it. Each call has its `end`."""
    local = _local
    local.depth += 1
    board = _board
    if local.depth > 1 or board is None:
        return
    if local.board is not board:
        _claim_slot(board)
    if local.slot:
        memory, at = board.memory, local.slot
        text = f"{kind} {name}".encode()[: board.name_bytes]
        memory[at + 16 : at + 17 + len(text)] = text + b"\0"
        _pack(memory, at + 8, monotonic_ns())


def end() -> None:
    """Note that the activity of the last `begin` has ended."""
    local = _local
    local.depth -= 1
    if local.depth == 0 and local.slot and local.board is not None:
        _pack(local.board.memory, local.slot + 8, 0)


def with_mark(body: Callable[..., Any], name: str, kind: str = "operator") -> Callable[..., Any]:
    """Return `body`, marked as `name` while it runs."""
    def run(*arguments: Any, **keywords: Any) -> Any:
        begin(kind, name)
        started = monotonic_ns()
        try:
            return body(*arguments, **keywords)
        finally:
            end()
            if writes_ring and _board is not None:
                tensors = [value for value in arguments if hasattr(value, "dtype") and hasattr(value, "shape")]
                inputs = [(str(value.dtype).rpartition(".")[2], tuple(value.shape)) for value in tensors]
                _board.write(name, started, monotonic_ns(), threading.get_native_id(), inputs[:4], max(0, len(inputs) - 4))

    return run


def _claim_slot(board: Board) -> None:
    with _lock:
        slot = board.mark_slot(threading.get_ident())
        if not slot:
            board.free_marks({thread.ident or 0 for thread in threading.enumerate()})
            slot = board.mark_slot(threading.get_ident())
    _local.slot, _local.board = slot, board
