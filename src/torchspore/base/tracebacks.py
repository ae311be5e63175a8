"""Tracebacks that show only the user's lines: the frames inside torchspore do not help to understand a refusal."""
from __future__ import annotations

import dis
import itertools
import os
import re
import traceback
from collections.abc import Iterator
from types import FunctionType, TracebackType

from torchspore.base.frames import is_torchspore_file, is_user_file
from torchspore.translations import translate

FULL_VARIABLE = "TORCHSPORE_TRACEBACK"
"""`TORCHSPORE_TRACEBACK=full` shows every frame."""
SHOWN = 4
_PIECE = re.compile(r"_cf_piece_\d+_")
_REFUSED = "_torchspore_refused"
_RAISES = dis.opmap["RAISE_VARARGS"]


def shows_all_frames() -> bool:
    """Return whether the user requests every frame."""
    return os.environ.get(FULL_VARIABLE) == "full"


def is_refusal(error: BaseException) -> bool:
    """Return whether torchspore raised the error deliberately, by its own `raise`; other errors are faults, and are shown in full."""
    if getattr(error, _REFUSED, False):
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not is_torchspore_file(last.tb_frame.f_code.co_filename):
        return False
    return last.tb_lasti >= 0 and last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISES


def ends_in_user_code(error: BaseException) -> bool:
    """Return whether the innermost frame of the error is the user's."""
    frames = list(_frames(error.__traceback__))
    return bool(frames) and is_user_file(_file(frames[-1]))


def is_a_fault(error: BaseException) -> bool:
    """Return whether the error occurred inside torchspore, and not by its own `raise`."""
    frames = list(_frames(error.__traceback__))
    return bool(frames) and is_torchspore_file(_file(frames[-1])) and not is_refusal(error)


def raised_at(error: Exception, where: str) -> Exception:
    """Return the error with a traceback that shows this user line, `file:line`; unchanged if `where` does not name a line."""
    path, _, line = where.rpartition(":")
    if not line.isdigit():
        return error
    code = compile("\n" * (int(line) - 1) + "raise error", path, "exec").replace(co_name="a graph")
    try:
        FunctionType(code, {"error": error})()
    except Exception as raised:
        trace = raised.__traceback__
        raised.__traceback__ = trace.tb_next if trace is not None else None
    return error


def last_line(error: BaseException | None) -> str:
    """Return the innermost user line in the error's traceback, `file:line`, or "" if there is none."""
    lines = [f"{_file(trace)}:{trace.tb_lineno}" for trace in _frames(error.__traceback__ if error is not None else None)
             if is_user_file(_file(trace))]
    return lines[-1] if lines else ""


def shorten(error: BaseException) -> None:
    """Reduce the traceback to the user's frames if the error was raised by user code or deliberately by torchspore."""
    if shows_all_frames():
        return
    frames = list(_frames(error.__traceback__))
    if not frames or not (is_user_file(_file(frames[-1])) or is_refusal(error)):
        return
    user_frames = [frame for frame in frames if is_user_file(_file(frame))]
    # A function that runs with graph breaks and the piece of it that ran represent one line of the program.
    user_frames = [frame for frame, inner in zip(user_frames, [*user_frames[1:], None]) if inner is None or not _is_piece_of(inner, frame)]
    shown = None
    for frame in reversed(user_frames):
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
    """Return the text of a refusal: the outermost and the innermost user lines, without position markers, and the message."""
    frames = [(_file(trace), trace.tb_lineno, _name(trace), None) for trace in _frames(error.__traceback__)]
    lines = traceback.StackSummary.from_list(frames).format()
    if len(lines) > SHOWN:
        text = translate("{count} calls more; {variable}=full shows all").format(count=len(lines) - SHOWN, variable=FULL_VARIABLE)
        left_out = f"{_FOLD}{text}\n"
        lines = [lines[0], left_out, *lines[1 - SHOWN:]]
    text = "".join(traceback.format_exception_only(type(error), error))
    return "".join(["Traceback (most recent call last):\n", *lines, text])


def fold(error: BaseException) -> str | None:
    """Return an error's traceback with each run of frames outside the user's code folded into one line; None if there is nothing to fold.

    The innermost call is always shown: a bug report about torchspore needs it.
    """
    summary = traceback.TracebackException.from_exception(error)
    if any(type(part).__name__ == "ExceptionGroup" for part in (error, error.__cause__, error.__context__)):
        return None
    lines = list(_chained(summary, 0))
    return "".join(lines) if any(line.startswith(_FOLD) for line in lines) else None


_FOLD = "  … "
_LINKS = ("\nThe above exception was the direct cause of the following exception:\n\n",
          "\nDuring handling of the above exception, another exception occurred:\n\n")


def _chained(summary: traceback.TracebackException, depth: int) -> Iterator[str]:
    cause = summary.__cause__ or (None if summary.__suppress_context__ else summary.__context__)
    if cause is not None and depth < 20:
        yield from _chained(cause, depth + 1)
        yield _LINKS[0 if summary.__cause__ else 1]
    if summary.stack:
        yield "Traceback (most recent call last):\n"
        yield from _folded_stack(list(summary.stack))
    yield from summary.format_exception_only()


def _folded_stack(frames: list[traceback.FrameSummary]) -> Iterator[str]:
    for is_user_group, group in itertools.groupby(frames, lambda frame: is_user_file(frame.filename)):
        group_frames = list(group)
        last = [group_frames.pop()] if not is_user_group and group_frames[-1] is frames[-1] else []
        if is_user_group:
            yield from traceback.StackSummary.from_list(group_frames).format()
        elif group_frames:
            text = (translate("{count} calls in torchspore, torch and Python; {variable}=full shows all") if len(group_frames) > 1 else
                    translate("1 call in torchspore, torch and Python; {variable}=full shows all"))
            yield f"{_FOLD}{text.format(count=len(group_frames), variable=FULL_VARIABLE)}\n"
        if last:
            yield from traceback.StackSummary.from_list(last).format()


def _name(trace: TracebackType) -> str:
    """Return the function's name; for a piece, the name of the original function."""
    return _PIECE.sub("", trace.tb_frame.f_code.co_name)
