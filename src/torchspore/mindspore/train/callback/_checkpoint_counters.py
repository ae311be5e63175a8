"""The counters of `ascend_config` that ModelCheckpoint and the context share: `need_ckpt`, `save_checkpoint_steps`, ..."""
from __future__ import annotations

from typing import Any

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.context.store import STORE

_NAMES = ("need_ckpt", "save_checkpoint_steps", "cur_step_num", "last_triggered_step")
_LARGEST = 2**31 - 1


class Counters:
    """The counters of one ModelCheckpoint. A value in the context that differs from the published one was set by the program.

    Several ModelCheckpoints may take part in a training; the context shows the first one's counters.
    """

    def __init__(self) -> None:
        self._published: dict[str, Any] = {}

    def begin(self, steps: int | None) -> None:
        """Publish the counters of a new training; `steps` is what CheckpointConfig says, None or 0 if it saves by time."""
        count = steps if steps and steps <= _LARGEST else 1
        self._published = dict.fromkeys(_NAMES)
        self._publish(need_ckpt=True, save_checkpoint_steps=count, cur_step_num=0, last_triggered_step=0)
        for name in _NAMES:
            effects.report(name, Outcome.applied("ModelCheckpoint and the context share it"))

    def begin_step(self, step: int) -> None:
        """Publish the number of the step that begins."""
        self._publish(cur_step_num=step)

    def end(self) -> None:
        """Publish that the training has ended; the other counters keep their last values."""
        self._publish(need_ckpt=False)
        self._published = {}

    def saved(self, step: int) -> None:
        """Publish the step after which a file was written."""
        self._publish(last_triggered_step=step)

    def is_suspended(self) -> bool:
        """Return whether the program has set `need_ckpt` to False."""
        return self._changed("need_ckpt", True) is False

    def current_step(self, step: int) -> int:
        """Return the number of the current step; `step` unless a callback has changed it since the step began."""
        changed = self._changed("cur_step_num", step)
        self._publish(cur_step_num=step)
        return int(changed)

    def steps(self, steps: int | None) -> int | None:
        """Return after how many steps to save; `steps` unless the program has changed it."""
        changed = self._changed("save_checkpoint_steps", steps)
        return None if changed is None else int(changed)

    def last_step(self, step: int) -> int:
        """Return the step after which the last file was written; `step` unless the program has changed it."""
        return int(self._changed("last_triggered_step", step))

    def _changed(self, name: str, value: Any) -> Any:
        """Return the context's value if the program has set it since it was published, otherwise `value`."""
        if name not in self._published:
            return value
        active = STORE.get(name)
        return active if active != self._published[name] else value

    def _publish(self, **values: Any) -> None:
        if not self._published:                    # another ModelCheckpoint is the first of this training
            return
        self._published.update(values)
        STORE.count(values)


def counters_of(callbacks: Any) -> Counters | None:
    """Return the counters of the first ModelCheckpoint in a list of callbacks; None without one."""
    for callback in callbacks or ():
        counters = getattr(callback, "_counters_", None)
        if isinstance(counters, Counters):
            return counters
    return None
