"""Tracebacks that show the user's lines: where torchspore refuses something, the way to the refusal explains nothing."""
from __future__ import annotations

import dis
import itertools
import os
import re
import traceback
from collections.abc import Iterator
from types import FunctionType, TracebackType

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


def is_a_fault(error: BaseException) -> bool:
    """Whether the error came up inside of torchspore, and not by a `raise` of its own."""
    frames = list(_frames(error.__traceback__))
    return bool(frames) and is_ours(_file(frames[-1])) and not is_refusal(error)


def raised_at(error: Exception, where: str) -> Exception:
    """The error with a traceback that shows this line of the user's, `file:line`; as it is where `where` names none."""
    path, _, line = where.rpartition(":")
    if not line.isdigit():
        return error
    code = compile("\n" * (int(line) - 1) + "raise error", path, "exec").replace(co_name="a graph")
    try:
        FunctionType(code, {"error": error})()
    except Exception as found:
        trace = found.__traceback__
        found.__traceback__ = trace.tb_next if trace is not None else None
    return error


def last_line(error: BaseException | None) -> str:
    """The innermost line of the user's that an error came by, `file:line`; "" where there is none."""
    lines = [f"{_file(trace)}:{trace.tb_lineno}" for trace in _frames(error.__traceback__ if error is not None else None)
             if is_users(_file(trace))]
    return lines[-1] if lines else ""


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


def folded(error: BaseException) -> str | None:
    """The traceback of an error, in which calls that are not the user's are one line; None where there are none of those to fold.

    The innermost call stays: it is what a report of a fault of torchspore's needs.
    """
    told = traceback.TracebackException.from_exception(error)
    if any(type(part).__name__ == "ExceptionGroup" for part in (error, error.__cause__, error.__context__)):
        return None
    lines = list(_chained(told, 0))
    return "".join(lines) if any(line.startswith(_FOLD) for line in lines) else None


_FOLD = "  … "
_LINKS = ("\nThe above exception was the direct cause of the following exception:\n\n",
          "\nDuring handling of the above exception, another exception occurred:\n\n")


def _chained(told: traceback.TracebackException, depth: int) -> Iterator[str]:
    before = told.__cause__ or (None if told.__suppress_context__ else told.__context__)
    if before is not None and depth < 20:
        yield from _chained(before, depth + 1)
        yield _LINKS[0 if told.__cause__ else 1]
    if told.stack:
        yield "Traceback (most recent call last):\n"
        yield from _folded_stack(list(told.stack))
    yield from told.format_exception_only()


def _folded_stack(frames: list[traceback.FrameSummary]) -> Iterator[str]:
    for own, group in itertools.groupby(frames, lambda frame: is_users(frame.filename)):
        found = list(group)
        last = [found.pop()] if not own and found[-1] is frames[-1] else []
        if own:
            yield from traceback.StackSummary.from_list(found).format()
        elif found:
            yield f"{_FOLD}{len(found)} call{'s' if len(found) > 1 else ''} in torchspore, torch and Python; {WHOLE}=full shows all\n"
        if last:
            yield from traceback.StackSummary.from_list(last).format()


def _name(trace: TracebackType) -> str:
    """The function's name; that of the function of which a piece ran."""
    return _PIECE.sub("", trace.tb_frame.f_code.co_name)
