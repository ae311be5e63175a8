"""`LossMonitor`: prints the loss."""
from __future__ import annotations

import math

import numpy as np

from torchspore.base.arguments import check_int
from torchspore.base.text import message
from torchspore.mindspore.train.callback._callback import Callback, RunContext, _handle_loss, state_of


class LossMonitor(Callback):
    """Prints the loss every `per_print_times` steps (0: never) of `Model.train` and `Model.eval`, and in `Model.fit` the metrics.

    Raises ValueError, which ends the training, if the loss is not finite.
    """

    def __init__(self, per_print_times: int = 1) -> None:
        super().__init__()
        check_int("LossMonitor", "per_print_times", per_print_times, 0)
        self._per_print_times = per_print_times
        self._last_print_time = 0

    def step_end(self, run_context: RunContext) -> None:
        """Prints the loss if it is time to."""
        state = state_of(self, run_context)
        epoch, step = state.get("cur_epoch_num", 1), (state.cur_step_num - 1) % state.batch_num + 1
        if state.cur_step_num <= self._last_print_time:  # the same LossMonitor in another training
            self._last_print_time = 0
        due = self._per_print_times != 0 and state.cur_step_num - self._last_print_time >= self._per_print_times
        # Reading the loss waits for the device; 0 avoids it.
        loss = _handle_loss(state.net_outputs) if due or self._per_print_times == 1 else None
        if isinstance(loss, float) and not math.isfinite(loss):
            hint = "a smaller learning rate, or data without NaN"
            raise ValueError(message(f"epoch: {epoch} step: {step}, loss is {loss}", "a finite loss; the training ends", hint=hint))
        if due:
            self._last_print_time = state.cur_step_num
            shown = np.float32(loss) if isinstance(loss, float) and state.get("mode") == "eval" else loss     # MindSpore's format
            print(f"epoch: {epoch} step: {step}, loss is {shown!s}", flush=True)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Prints the metrics of `Model.fit`'s evaluation after this epoch."""
        state = state_of(self, run_context)
        if "eval_results" in state:
            print(f"Eval result: epoch {state.cur_epoch_num}, metrics: {state.metrics}")
