"""Which step of a pipeline a thread is in, and at which line of the user's; the watchdog, which tells it of a pipeline that hangs."""
from __future__ import annotations

import sys
from types import FrameType

from torchspore.base.frames import is_ours, is_users
from torchspore.mindspore import log
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.engine import described
from torchspore.mindspore.dataset.engine.dataset import Dataset
from torchspore.mindspore.dataset.engine.processes import Processes
from torchspore.mindspore.dataset.engine.workers import Call


def step_of(frame: FrameType | None) -> Dataset | None:
    """The innermost step whose code is running or waiting."""
    found = _owner(frame, Dataset)
    return found if isinstance(found, Dataset) else None


def patience() -> float | None:
    """Seconds that the program waits for a row before the watchdog is asked; None where there is none."""
    return config.get_multiprocessing_timeout_interval() if config.get_enable_watchdog() else None


def tell(reader: int, seconds: float) -> None:
    """Warns that the program has waited `seconds` for a row: which step the thread `reader` is in, and at which line of the user's.

    Where that step waits for another thread, the line is the other one's. Worker processes have a watchdog of their own.
    """
    threads = sys._current_frames()
    frame = threads.get(reader)
    step = step_of(frame)
    call = _owner(frame, Call)
    if isinstance(call, Call) and call.thread in threads:
        frame = threads[call.thread]
    if step is None or _owner(frame, Processes) is not None:
        return
    place = _users_line(frame)
    where = f", which is at {place}" if place else ""
    log.warning(f"the program has waited {seconds:.0f} s for a row of {described.label(step)}{where}")


def _owner(frame: FrameType | None, kind: type) -> object:
    """The innermost `self` of a kind of ours."""
    while frame is not None:
        code = frame.f_code
        if code.co_varnames[:1] == ("self",) and is_ours(code.co_filename):
            owner = frame.f_locals.get("self")
            if isinstance(owner, kind):
                return owner
        frame = frame.f_back
    return None


def _users_line(frame: FrameType | None) -> str | None:
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
        frame = frame.f_back
    return None
