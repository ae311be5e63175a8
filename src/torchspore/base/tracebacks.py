"""Tracebacks that show the user's lines: where torchspore refuses something, the way to the refusal explains nothing."""
from __future__ import annotations

import dis
import os
import re
import traceback
from collections.abc import Iterator
from types import TracebackType

from torchspore.base.frames import is_ours, is_users

WHOLE = "TORCHSPORE_TRACEBACK"
"""`TORCHSPORE_TRACEBACK=full` shows every frame."""
SHOWN = 4
_PIECE = re.compile(r"_cf_piece_\d+_")
_REFUSED = "_torchspore_refused"
_RAISES = dis.opmap["RAISE_VARARGS"]


def are_whole() -> bool:
    """Whether the user asks for every frame."""
    return os.environ.get(WHOLE) == "full"


def is_refusal(error: BaseException) -> bool:
    """Whether torchspore raised the error on purpose, by a `raise` of its own: what it came upon otherwise is a fault to be seen whole."""
    if getattr(error, _REFUSED, False):
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not is_ours(last.tb_frame.f_code.co_filename):
        return False
    return last.tb_lasti >= 0 and last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISES


def shorten(error: BaseException) -> None:
    """Leaves only the user's frames in the traceback of an error that the user's code or a refusal of ours raised."""
    if are_whole():
        return
    frames = list(_frames(error.__traceback__))
    if not frames or not (is_users(_file(frames[-1])) or is_refusal(error)):
        return
    kept = [frame for frame in frames if is_users(_file(frame))]
    # A function that runs with graph breaks and the piece of it that ran are one line of the program.
    kept = [frame for frame, inner in zip(kept, [*kept[1:], None]) if inner is None or not _is_piece_of(inner, frame)]
    shown = None
    for frame in reversed(kept):
        shown = TracebackType(shown, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    if shown is not None:
        if is_refusal(error):
            setattr(error, _REFUSED, True)
        error.__traceback__ = shown


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _file(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename


def _is_piece_of(inner: TracebackType, outer: TracebackType) -> bool:
    return _is_piece(inner) and _file(inner) == _file(outer) and any(name.startswith("_cf_") for name in outer.tb_frame.f_code.co_freevars)


def _is_piece(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_name.startswith("_cf_")


def brief(error: BaseException) -> str:
    """The text of a refusal: the user's lines, the outermost and the innermost ones, without marks below them, and the message."""
    frames = [(_file(trace), trace.tb_lineno, _name(trace), None) for trace in _frames(error.__traceback__)]
    lines = traceback.StackSummary.from_list(frames).format()
    if len(lines) > SHOWN:
        left_out = f"  … {len(lines) - SHOWN} calls more; {WHOLE}=full shows all\n"
        lines = [lines[0], left_out, *lines[1 - SHOWN:]]
    text = "".join(traceback.format_exception_only(type(error), error))
    return "".join(["Traceback (most recent call last):\n", *lines, text])


def _name(trace: TracebackType) -> str:
    """The function's name; that of the function of which a piece ran."""
    return _PIECE.sub("", trace.tb_frame.f_code.co_name)
