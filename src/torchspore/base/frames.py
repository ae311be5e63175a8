"""The position in the user's program where something happened."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from types import FrameType


def with_slashes(filename: str) -> str:
    """Return the file name of a code object with `/` between the parts, also on Windows."""
    return filename if os.sep == "/" else filename.replace(os.sep, "/")


PACKAGE = with_slashes(with_slashes.__code__.co_filename).removesuffix("base/frames.py")
"""The folder of this package in the file names of code objects, by `with_slashes`."""
LIBRARY = with_slashes(sysconfig.get_paths()["stdlib"]) + "/"
"""The folder of the standard library, likewise."""
_FOREIGN = tuple(
    f"/site-packages/{name}/" for name in ("torch", "torch_npu", "torchgen", "functorch", "sympy", "mpmath", "numpy", "tqdm")
)
"""torch and packages that it calls; torch.fx creates progress bars of tqdm."""
_COMMANDS = ("/bin/torchspore", "/Scripts/torchspore.exe/__main__.py")
"""The file of the command that pip writes."""

_is_user_file_cache: dict[str, bool] = {}


def is_user_file(filename: str) -> bool:
    """Return whether the file of a code object belongs to the user: it is not part of torchspore, torch or the standard library.

    Other packages in site-packages count as the user's, and so does text that is typed at a prompt or passed to `-c`.
    """
    verdict = _is_user_file_cache.get(filename)
    if verdict is None:
        verdict = _classify(filename)
        _is_user_file_cache[filename] = verdict
    return verdict


def is_torchspore_file(filename: str) -> bool:
    """Return whether a code object's file belongs to torchspore."""
    return with_slashes(filename).startswith(PACKAGE)


def keep_source(script: str) -> None:
    """Keep the source of a script for tracebacks and Graph mode: its name may be relative to a folder that the program leaves."""
    lines = [] if os.path.isabs(script) else linecache.getlines(script)
    if lines:
        linecache.cache[script] = (sum(map(len, lines)), None, lines, script)              # without a time the entry is never checked


def _classify(filename: str) -> bool:
    filename = with_slashes(filename)
    if filename.startswith("<"):
        return filename.startswith(("<stdin>", "<string>", "<ipython", "<python-input"))
    if filename.startswith(PACKAGE) or filename.endswith(_COMMANDS) or any(part in filename for part in _FOREIGN):
        return False
    return not filename.startswith(LIBRARY) or "site-packages" in filename


def user_frame(skip: int = 1) -> tuple[str, int, str] | None:
    """Return (filename, line, function) of the innermost user frame, or None if there is none."""
    frame = sys._getframe(skip)
    verdicts = _is_user_file_cache
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        verdict = verdicts.get(filename)
        if verdict or (verdict is None and is_user_file(filename)):
            return filename, frame.f_lineno, code.co_name
        back = frame.f_back
        if back is None:
            return None
        frame = back
    return None


def user_frame_object(skip: int = 1) -> FrameType | None:
    """Return the innermost user frame, or None if there is none."""
    return next(user_frames(skip + 1), None)


def user_frames(skip: int = 1) -> Iterator[FrameType]:
    """Yield the user frames, innermost first."""
    frame: FrameType | None = sys._getframe(skip)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def user_line(skip: int = 1) -> str | None:
    """Return `file:line` of the innermost user frame, in the form that tools make clickable."""
    position = user_frame(skip + 1)
    return None if position is None else f"{position[0]}:{position[1]}"


def line_prefix() -> str:
    """Return the user's line as `train.py:12: `, the beginning of a message, or an empty text if no user function runs."""
    line = user_line(2)
    return "" if line is None else f"{line}: "


def relative_line(where: str) -> str:
    """Return `file:line` with a path relative to the working folder if the file is inside it."""
    path, _, line = where.rpartition(":")
    if not path:
        return where
    shorter = os.path.relpath(path)
    return f"{path if shorter.startswith('..') else shorter}:{line}"


def warn(text: str, otherwise: str = "<unknown>") -> None:
    """Warn at the user's line, or at a file called `otherwise` if no user function runs."""
    file, line, _ = user_frame() or (otherwise, 1, "")
    warnings.warn_explicit(text, UserWarning, file, line)
