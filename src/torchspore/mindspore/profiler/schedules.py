"""`schedule`, which selects the steps that a profiler records, and `tensorboard_trace_handler`, which writes their traces."""
from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from torchspore.base.arguments import is_int
from torchspore.base.text import message, short


class ProfilerAction(Enum):
    """The action of a schedule for a step."""

    NONE = 0
    WARM_UP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class schedule:
    """Selects steps: after `skip_first`, `wait` idle ones, `warmup` ones, `active` recorded ones, `repeat` times (0: endlessly).

    Warm-up steps are recorded and discarded, because the first recorded step costs more than the others. A call with a step's number, from
    0, returns the ProfilerAction. Raises ValueError for negative numbers, or no active step.
    """

    def __init__(self, *, wait: int, active: int, warmup: int = 0, repeat: int = 0, skip_first: int = 0) -> None:
        for name, value, least in (
            ("wait", wait, 0), ("active", active, 1), ("warmup", warmup, 0), ("repeat", repeat, 0), ("skip_first", skip_first, 0),
        ):
            if not is_int(value) or value < least:
                raise ValueError(message(f"schedule({name}={short(value)})", f"an int from {least} on"))
        self.wait, self.active, self.warmup, self.repeat, self.skip_first = wait, active, warmup, repeat, skip_first

    def to_dict(self) -> dict[str, int]:
        """Return the numbers by name."""
        return dict(self.__dict__)

    def __call__(self, step: int) -> ProfilerAction:
        cycle, at = divmod(step - self.skip_first, self.wait + self.warmup + self.active)
        if step < self.skip_first or (self.repeat and cycle >= self.repeat) or at < self.wait:
            return ProfilerAction.NONE
        if at < self.wait + self.warmup:
            return ProfilerAction.WARM_UP
        return ProfilerAction.RECORD_AND_SAVE if at == self.wait + self.warmup + self.active - 1 else ProfilerAction.RECORD

    def is_watched(self, step: int) -> bool:
        """Return whether the step of this number, from 0, is recorded."""
        return self(step) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def ends_watch(self, step: int) -> bool:
        """Return whether a recorded step is the last one of its cycle."""
        return self(step) is ProfilerAction.RECORD_AND_SAVE


def later(function: Callable[[], None]) -> None:
    """Run a function in a separate thread, for which the program's exit waits."""
    threading.Thread(target=function, name="torchspore-profile").start()


def tensorboard_trace_handler(
    dir_name: str | None = None, worker_name: str | None = None, analyse_flag: bool = True, async_mode: bool = False,
) -> Callable[[Any], None]:
    """Returns the function that writes a ready profile into the folder `dir_name` (None: the profiler's).

    A profile's folder name starts with `worker_name`, by default the machine's name and the process number. Without `analyse_flag`
    nothing is written before `analyse`; `async_mode` writes the files in the background. Raises TypeError unless the names are strs.
    """
    for name, value in (("dir_name", dir_name), ("worker_name", worker_name)):
        if value is not None and not isinstance(value, str):
            raise TypeError(message(f"tensorboard_trace_handler({name}={short(value)})", f"a str or None, got {type(value).__name__}"))

    def ready(profiler: Any) -> None:
        if analyse_flag:
            write = profiler._writer(Path(dir_name).expanduser() if dir_name else None, worker_name)
            later(write) if async_mode else write()

    return ready
