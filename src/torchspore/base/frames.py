"""Where in the user's program something happened."""

from __future__ import annotations

import os
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

_PACKAGE = str(Path(__file__).resolve().parents[1]) + "/"
_LIBRARY = sysconfig.get_paths()["stdlib"] + "/"
_FOREIGN = tuple(f"/site-packages/{name}/" for name in ("torch", "torch_npu", "torchgen", "functorch", "sympy", "mpmath", "numpy"))

_verdicts: dict[str, bool] = {}


def is_users(filename: str) -> bool:
    """Says whether a code object's file is the user's: not ours, not torch's, not the standard library's.

    Other people's packages in site-packages count as the user's; text typed at a prompt or given by `-c` does too.
    """
    verdict = _verdicts.get(filename)
    if verdict is None:
        verdict = _judge(filename)
        _verdicts[filename] = verdict
    return verdict


def is_ours(filename: str) -> bool:
    """Says whether a code object's file is torchspore's own."""
    return filename.startswith(_PACKAGE)


def _judge(filename: str) -> bool:
    if filename.startswith("<"):
        return filename.startswith(("<stdin>", "<string>", "<ipython", "<python-input"))
    if filename.startswith(_PACKAGE) or any(part in filename for part in _FOREIGN):
        return False
    return not filename.startswith(_LIBRARY) or "site-packages" in filename


def user_frame(skip: int = 1) -> tuple[str, int, str] | None:
    """Gives (filename, line, function) of the innermost frame of the user's, or None where there is none."""
    frame = sys._getframe(skip)
    verdicts = _verdicts
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        verdict = verdicts.get(filename)
        if verdict or (verdict is None and is_users(filename)):
            return filename, frame.f_lineno, code.co_name
        back = frame.f_back
        if back is None:
            return None
        frame = back
    return None


def user_frame_object(skip: int = 1) -> FrameType | None:
    """Gives the innermost frame of the user's, or None where there is none."""
    return next(user_frames(skip + 1), None)


def user_frames(skip: int = 1) -> Iterator[FrameType]:
    """Gives the frames of the user's, innermost first."""
    frame: FrameType | None = sys._getframe(skip)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def user_line(skip: int = 1) -> str | None:
    """Gives `file:line` of the innermost frame of the user's, as tools make it clickable."""
    found = user_frame(skip + 1)
    return None if found is None else f"{found[0]}:{found[1]}"


def near(where: str) -> str:
    """`file:line` with the path from the working folder, where the file lies in it."""
    path, _, line = where.rpartition(":")
    if not path:
        return where
    shorter = os.path.relpath(path)
    return f"{path if shorter.startswith('..') else shorter}:{line}"


def warn(text: str, otherwise: str = "<unknown>") -> None:
    """Warns at the user's line, or at a file that is called `otherwise` where no user's function runs."""
    file, line, _ = user_frame() or (otherwise, 1, "")
    warnings.warn_explicit(text, UserWarning, file, line)
