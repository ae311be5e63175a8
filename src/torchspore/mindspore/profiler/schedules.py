"""`schedule`, which names the steps that a profiler watches, and `tensorboard_trace_handler`, which says where their traces go."""
from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from torchspore.base.text import message, short


class ProfilerAction(Enum):
    """What a schedule says of a step."""

    NONE = 0
    WARM_UP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class schedule:
    """Which steps are watched: after `skip_first`, `wait` idle ones, `warmup` ones, `active` watched ones, `repeat` times (0: on and on).

    A step of the warm-up is watched and thrown away: the first watched step costs more than the others. Called with a step's number,
    from 0, it gives the ProfilerAction. Raises ValueError for negative numbers, or no active step.
    """

    def __init__(self, *, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> None:
        for name, value, least in (
            ("wait", wait, 0), ("active", active, 1), ("warmup", warmup, 0), ("repeat", repeat, 0), ("skip_first", skip_first, 0),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(message(f"schedule({name}={short(value)})", f"an int from {least} on"))
        self.wait, self.active, self.warmup, self.repeat, self.skip_first = wait, active, warmup, repeat, skip_first

    def to_dict(self) -> dict[str, int]:
        """The numbers by their names."""
        return dict(self.__dict__)

    def __call__(self, step: int) -> ProfilerAction:
        cycle, at = divmod(step - self.skip_first, self.wait + self.warmup + self.active)
        if step < self.skip_first or (self.repeat and cycle >= self.repeat) or at < self.wait:
            return ProfilerAction.NONE
        if at < self.wait + self.warmup:
            return ProfilerAction.WARM_UP
        return ProfilerAction.RECORD_AND_SAVE if at == self.wait + self.warmup + self.active - 1 else ProfilerAction.RECORD

    def is_watched(self, step: int) -> bool:
        """Whether the step of this number, from 0, is watched."""
        return self(step) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def ends_watch(self, step: int) -> bool:
        """Whether a watched step is the last one of its cycle."""
        return self(step) is ProfilerAction.RECORD_AND_SAVE


def later(function: Callable[[], None]) -> None:
    """Runs a function in a thread of its own, which the program's end waits for."""
    threading.Thread(target=function, name="torchspore-profile").start()


def tensorboard_trace_handler(
    dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True, async_mode: bool = False,
) -> Callable[[Any], None]:
    """What writes a profile into the folder `dir_name` (the profiler's own where None), once one is ready.

    The folder of a profile begins with `worker_name`, by default the machine's name and the number of the process. Without
    `analyse_flag` nothing is written before `analyse`; with `async_mode` the files are written beside the program. Raises TypeError for
    names that are no texts.
    """
    for name, value in (("dir_name", dir_name), ("worker_name", worker_name)):
        if value is not None and not isinstance(value, str):
            raise TypeError(message(f"tensorboard_trace_handler({name}={short(value)})", f"a str or None, got {type(value).__name__}"))

    def ready(profiler: Any) -> None:
        if analyse_flag:
            write = profiler._writer(Path(dir_name).expanduser() if dir_name else None, worker_name)
            later(write) if async_mode else write()

    return ready
