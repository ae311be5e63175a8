"""Callbacks of a `map`: told of its epochs and steps, and those that wait for the training that reads it."""
from __future__ import annotations

import threading
import time
from typing import Any

from torchspore.base.text import message
from torchspore.mindspore.common._callback import Callback
from torchspore.mindspore.dataset.core import config
from torchspore.mindspore.dataset.core.validator_helpers import check_int

_EVENTS = ("ds_begin", "ds_epoch_begin", "ds_epoch_end", "ds_step_begin", "ds_step_end")


class DSRunContext:
    """Where a `map` stands: `cur_epoch_num`, `cur_step_num_in_epoch` and `cur_step_num` of all epochs, from 1 once the first has begun."""

    def __init__(self) -> None:
        self.cur_epoch_num = self.cur_step_num_in_epoch = self.cur_step_num = 0


class DSCallback:
    """Base of callbacks that `map(callbacks=...)` calls; overwrite the methods that are wanted. A step is one row of the map.

    With `step_size` n, the step methods are called for the first step of an epoch and for every n-th after it.
    """

    def __init__(self, step_size: int = 1) -> None:
        check_int(type(self).__name__, "step_size", step_size, 1)
        self.step_size = step_size

    def ds_begin(self, ds_run_context: DSRunContext) -> None:
        """Is called once, before the first epoch."""

    def ds_epoch_begin(self, ds_run_context: DSRunContext) -> None:
        """Is called before each epoch."""

    def ds_epoch_end(self, ds_run_context: DSRunContext) -> None:
        """Is called after each epoch."""

    def ds_step_begin(self, ds_run_context: DSRunContext) -> None:
        """Is called before a step."""

    def ds_step_end(self, ds_run_context: DSRunContext) -> None:
        """Is called after a step."""

    def _wants_(self, event: str) -> bool:
        """Whether a subclass has overwritten this method."""
        return getattr(type(self), event) is not getattr(DSCallback, event)


class WaitedDSCallback(Callback, DSCallback):
    """A callback of a `map` and of the training that reads it: the map waits, before a step or an epoch, for the training to reach it.

    Give it to `map` and to `Model.train`, and overwrite `sync_epoch_begin` or `sync_step_begin`. With `step_size` n the map runs n steps
    ahead. Raises RuntimeError where the training does not come within `config.get_callback_timeout()` seconds.
    """

    def __init__(self, step_size: int = 1) -> None:
        DSCallback.__init__(self, step_size)
        self.train_run_context: Any = None
        self._changed = threading.Condition()
        self._epochs = self._steps = 0
        self._has_ended = False

    def sync_epoch_begin(self, train_run_context: Any, ds_run_context: DSRunContext) -> None:
        """Is called before each epoch of the map but the first, once the training has ended the one before."""

    def sync_step_begin(self, train_run_context: Any, ds_run_context: DSRunContext) -> None:
        """Is called before a step of the map, once the training has ended the one `step_size` before."""

    def ds_epoch_begin(self, ds_run_context: DSRunContext) -> None:
        if ds_run_context.cur_epoch_num > 1 and self._overwrites_("sync_epoch_begin"):
            self._wait_(lambda: self._epochs >= ds_run_context.cur_epoch_num - 1, "epoch")
            self.sync_epoch_begin(self.train_run_context, ds_run_context)

    def ds_step_begin(self, ds_run_context: DSRunContext) -> None:
        if ds_run_context.cur_step_num > self.step_size and self._overwrites_("sync_step_begin"):
            self._wait_(lambda: self._steps >= ds_run_context.cur_step_num - self.step_size, "step")
            self.sync_step_begin(self.train_run_context, ds_run_context)

    def step_end(self, run_context: Any) -> None:
        """Tells the map that a step of the training has ended; a subclass that overwrites it calls it."""
        self._tell_(run_context, steps=1)

    def epoch_end(self, run_context: Any) -> None:
        """Tells the map that an epoch of the training has ended; a subclass that overwrites it calls it."""
        self._tell_(run_context, epochs=1)

    def end(self, run_context: Any) -> None:
        """Lets a map that waits go on: no step comes any more."""
        self._has_ended = True
        self._tell_(run_context)

    def _overwrites_(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(WaitedDSCallback, name)

    def _wants_(self, event: str) -> bool:
        waits = {"ds_epoch_begin": "sync_epoch_begin", "ds_step_begin": "sync_step_begin"}
        own = getattr(type(self), event) is not getattr(WaitedDSCallback, event)
        return own or (event in waits and self._overwrites_(waits[event]))

    def _tell_(self, run_context: Any, steps: int = 0, epochs: int = 0) -> None:
        with self._changed:
            self.train_run_context = run_context
            self._steps, self._epochs = self._steps + steps, self._epochs + epochs
            self._changed.notify_all()

    def _wait_(self, is_reached: Any, what: str) -> None:
        seconds = config.get_callback_timeout()
        end = time.monotonic() + seconds
        with self._changed:
            while not is_reached() and not self._has_ended:
                if not self._changed.wait(max(0.0, min(end - time.monotonic(), 1.0))) and time.monotonic() >= end:
                    hint = "give it to Model.train(callbacks=...) too, or raise ds.config.set_callback_timeout"
                    said = f"{type(self).__name__}: the training did not end its {what} within {seconds} s"
                    raise RuntimeError(message(said, "a training with this callback", hint=hint))


class Caller:
    """What one pass of a map does around its rows: keeps the context, and calls the callbacks that want it."""

    def __init__(self, callbacks: list[DSCallback]) -> None:
        self._context = DSRunContext()
        self._wanted = {event: [one for one in callbacks if one._wants_(event)] for event in _EVENTS}
        self._call("ds_begin")

    def epoch_begin(self) -> None:
        """Before an epoch."""
        self._context.cur_epoch_num += 1
        self._context.cur_step_num_in_epoch = 0
        self._call("ds_epoch_begin")

    def epoch_end(self) -> None:
        """After an epoch."""
        self._call("ds_epoch_end")

    def step_begin(self) -> None:
        """Before a row."""
        self._context.cur_step_num_in_epoch += 1
        self._context.cur_step_num += 1
        self._call("ds_step_begin")

    def step_end(self) -> None:
        """After a row."""
        self._call("ds_step_end")

    def _call(self, event: str) -> None:
        from torchspore.mindspore.dataset.engine.failures import guarded

        for callback in self._wanted[event]:
            if "step" not in event or (self._context.cur_step_num_in_epoch - 1) % callback.step_size == 0:
                guarded(f"map(callbacks={type(callback).__name__}).{event}", getattr(callback, event), self._context)
