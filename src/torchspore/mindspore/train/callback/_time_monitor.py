"""`TimeMonitor`: prints times."""
from __future__ import annotations

import time
from typing import Any

from torchspore.base.arguments import check_bool
from torchspore.mindspore.train.callback._callback import Callback, RunContext, state_of


class TimeMonitor(Callback):
    """Prints the milliseconds of each epoch and of each of its steps.

    `data_size` is the number of steps of an epoch, by default the dataset's. `data_time` adds the mean time that a step waited for its
    data.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        super().__init__()
        check_bool("TimeMonitor", "data_time", data_time)
        self.data_size = data_size
        self.data_time = data_time
        self.epoch_time = time.time()
        self._waiting_since = self.epoch_time
        self._waited = 0.0
        self._training_epoch = (self.epoch_time, 0.0)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Starts the clock of an evaluation, which `Model.fit` runs within an epoch of training."""
        self._training_epoch = (self.epoch_time, self._waited)
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Prints the line of an evaluation and resumes the training's clock."""
        self.epoch_end(run_context)
        self.epoch_time, self._waited = self._training_epoch

    def epoch_begin(self, run_context: RunContext) -> None:
        """Starts the clock."""
        self.epoch_time = self._waiting_since = time.time()
        self._waited = 0.0

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Adds the time since the last step's end to the waiting time for data."""
        self._waited += time.time() - self._waiting_since

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Records the start of the next step's waiting time for data."""
        self._waiting_since = time.time()

    def epoch_end(self, run_context: RunContext) -> None:
        """Prints the line."""
        milliseconds = (time.time() - self.epoch_time) * 1000
        state = state_of(self, run_context)
        steps: Any = self.data_size if isinstance(self.data_size, int) and self.data_size > 0 else state.batch_num
        kind = str(state.get("mode", "train")).capitalize()
        line = f"{kind} epoch time: {milliseconds:5.3f} ms, per step time: {milliseconds / max(steps, 1):5.3f} ms"
        print(line + (f" (data time: {self._waited * 1000 / max(steps, 1):5.3f} ms)" if self.data_time else ""), flush=True)
