"""The step of a pipeline that a thread is in, and its line of the user's program; the watchdog, which reports a pipeline that hangs."""
from __future__ import annotations

import sys
from types import FrameType

from torchspore.base.frames import is_torchspore_file, is_user_file
from torchspore.mindspore import log
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.engine import descriptions
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.processes import Processes
from torchspore.mindspore.dataset.engine.workers import Call
from torchspore.translations import translate


def step_of(frame: FrameType | None) -> Dataset | None:
    """Return the innermost step whose code is running or waiting."""
    step = _owner(frame, Dataset)
    return step if isinstance(step, Dataset) else None


def patience() -> float | None:
    """Return the seconds that the program waits for a row before the watchdog warns; None without a watchdog."""
    return config.get_multiprocessing_timeout_interval() if config.get_enable_watchdog() else None


def warn(reader: int, seconds: float) -> None:
    """Warn that the program has waited `seconds` for a row, with the step of the thread `reader` and its line of the user's program.

    If that step waits for another thread, the line is the other thread's. Worker processes have a separate watchdog.
    """
    threads = sys._current_frames()
    frame = threads.get(reader)
    step = step_of(frame)
    call = _owner(frame, Call)
    if isinstance(call, Call) and call.thread in threads:
        frame = threads[call.thread]
    if step is None or _owner(frame, Processes) is not None:
        return
    location = _users_line(frame)
    text = (translate("the program has waited {seconds:.0f} s for a row of {step}, which is at {line}") if location else
            translate("the program has waited {seconds:.0f} s for a row of {step}"))
    log.warning(text.format(seconds=seconds, step=descriptions.label(step), line=location))


def _owner(frame: FrameType | None, kind: type) -> object:
    """Return the innermost `self` of one of these classes."""
    while frame is not None:
        code = frame.f_code
        if code.co_varnames[:1] == ("self",) and is_torchspore_file(code.co_filename):
            owner = frame.f_locals.get("self")
            if isinstance(owner, kind):
                return owner
        frame = frame.f_back
    return None


def _users_line(frame: FrameType | None) -> str | None:
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
        frame = frame.f_back
    return None
