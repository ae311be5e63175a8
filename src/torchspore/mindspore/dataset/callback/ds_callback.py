"""Callbacks of a `map`: for its epochs and steps, and for waiting for the training that reads the map."""
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
    """The position of a `map`: `cur_epoch_num`, `cur_step_num_in_epoch` and, over all epochs, `cur_step_num`; each counts from 1."""

    def __init__(self) -> None:
        self.cur_epoch_num = self.cur_step_num_in_epoch = self.cur_step_num = 0


class DSCallback:
    """Base of callbacks that `map(callbacks=...)` calls; override the methods that you need. A step is one row of the map.

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

    def _is_interested_in_(self, event: str) -> bool:
        """Return whether a subclass has overridden this method."""
        return getattr(type(self), event) is not getattr(DSCallback, event)


class WaitedDSCallback(Callback, DSCallback):
    """A callback of a `map` and of the training that reads it: before a step or an epoch, the map waits until the training reaches it.

    Pass it to `map` and to `Model.train`, and override `sync_epoch_begin` or `sync_step_begin`. With `step_size` n the map runs n steps
    ahead. Raises RuntimeError if the training does not arrive within `config.get_callback_timeout()` seconds.
    """

    def __init__(self, step_size: int = 1) -> None:
        DSCallback.__init__(self, step_size)
        self.train_run_context: Any = None
        self._changed = threading.Condition()
        self._epochs = self._steps = 0
        self._has_ended = False

    def sync_epoch_begin(self, train_run_context: Any, ds_run_context: DSRunContext) -> None:
        """Is called before each epoch of the map except the first, after the training has ended the previous one."""

    def sync_step_begin(self, train_run_context: Any, ds_run_context: DSRunContext) -> None:
        """Is called before a step of the map, after the training has ended the step `step_size` earlier."""

    def ds_epoch_begin(self, ds_run_context: DSRunContext) -> None:
        if ds_run_context.cur_epoch_num > 1 and self._overwrites_("sync_epoch_begin"):
            self._wait_(lambda: self._epochs >= ds_run_context.cur_epoch_num - 1, "epoch")
            self.sync_epoch_begin(self.train_run_context, ds_run_context)

    def ds_step_begin(self, ds_run_context: DSRunContext) -> None:
        if ds_run_context.cur_step_num > self.step_size and self._overwrites_("sync_step_begin"):
            self._wait_(lambda: self._steps >= ds_run_context.cur_step_num - self.step_size, "step")
            self.sync_step_begin(self.train_run_context, ds_run_context)

    def step_end(self, run_context: Any) -> None:
        """Informs the map that a training step has ended; an overriding method must call this one."""
        self._record_progress_(run_context, steps=1)

    def epoch_end(self, run_context: Any) -> None:
        """Informs the map that a training epoch has ended; an overriding method must call this one."""
        self._record_progress_(run_context, epochs=1)

    def end(self, run_context: Any) -> None:
        """Releases a waiting map, because no more steps follow."""
        self._has_ended = True
        self._record_progress_(run_context)

    def _overwrites_(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(WaitedDSCallback, name)

    def _is_interested_in_(self, event: str) -> bool:
        waits = {"ds_epoch_begin": "sync_epoch_begin", "ds_step_begin": "sync_step_begin"}
        is_overridden = getattr(type(self), event) is not getattr(WaitedDSCallback, event)
        return is_overridden or (event in waits and self._overwrites_(waits[event]))

    def _record_progress_(self, run_context: Any, steps: int = 0, epochs: int = 0) -> None:
        with self._changed:
            self.train_run_context = run_context
            self._steps, self._epochs = self._steps + steps, self._epochs + epochs
            self._changed.notify_all()

    def _wait_(self, is_reached: Any, unit: str) -> None:
        seconds = config.get_callback_timeout()
        end = time.monotonic() + seconds
        with self._changed:
            while not is_reached() and not self._has_ended:
                if not self._changed.wait(max(0.0, min(end - time.monotonic(), 1.0))) and time.monotonic() >= end:
                    hint = "pass it to Model.train(callbacks=...) too, or raise ds.config.set_callback_timeout"
                    error_text = f"{type(self).__name__}: the training did not end its {unit} within {seconds} s"
                    raise RuntimeError(message(error_text, "a training that also has this callback", hint=hint))


class Caller:
    """Updates the context around the rows of one pass of a map, and calls the interested callbacks."""

    def __init__(self, callbacks: list[DSCallback]) -> None:
        self._context = DSRunContext()
        self._callbacks_of = {event: [callback for callback in callbacks if callback._is_interested_in_(event)] for event in _EVENTS}
        self._call("ds_begin")

    def epoch_begin(self) -> None:
        """Run the callbacks before an epoch."""
        self._context.cur_epoch_num += 1
        self._context.cur_step_num_in_epoch = 0
        self._call("ds_epoch_begin")

    def epoch_end(self) -> None:
        """Run the callbacks after an epoch."""
        self._call("ds_epoch_end")

    def step_begin(self) -> None:
        """Run the callbacks before a row."""
        self._context.cur_step_num_in_epoch += 1
        self._context.cur_step_num += 1
        self._call("ds_step_begin")

    def step_end(self) -> None:
        """Run the callbacks after a row."""
        self._call("ds_step_end")

    def _call(self, event: str) -> None:
        from torchspore.mindspore.dataset.engine.failures import guarded

        for callback in self._callbacks_of[event]:
            if "step" not in event or (self._context.cur_step_num_in_epoch - 1) % callback.step_size == 0:
                guarded(f"map(callbacks={type(callback).__name__}).{event}", getattr(callback, event), self._context)
