"""`Callback` and what it is told. Data pipelines have callbacks too, and load no training for them."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short


class RunContext:
    """What each method of a Callback is given: `original_args()` holds the training's state, `request_stop()` ends the training.

    Raises TypeError where it is made of anything but a dict.
    """

    def __init__(self, original_args: Any) -> None:
        if not isinstance(original_args, dict):
            raise TypeError(message(f"RunContext({short(original_args)})", f"a dict, got {type(original_args).__name__}"))
        self._original_args = original_args
        self._stop_requested = False

    def original_args(self) -> Any:
        """The state of the training."""
        return self._original_args

    def request_stop(self) -> None:
        """Ends the training after this step or epoch."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether the end was asked for."""
        return self._stop_requested


class Callback:
    """Base of what a training calls at its beginning and end, at each epoch's and at each step's.

    Overwrite `on_train_begin`, `on_train_epoch_begin`, `on_train_step_begin`, `..._end` and the same with `eval`; or the older `begin`,
    `epoch_begin`, `step_begin`, `..._end`, which are called for both. It may be used in a `with` block.
    """

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, *error: Any) -> None:
        """Is called when the training ends, however it ends."""

    def begin(self, run_context: RunContext) -> None:
        """Before the first epoch."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Before each epoch."""

    def epoch_end(self, run_context: RunContext) -> None:
        """After each epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Before each step."""

    def step_end(self, run_context: RunContext) -> None:
        """After each step."""

    def end(self, run_context: RunContext) -> None:
        """After the last epoch."""

    def on_train_begin(self, run_context: RunContext) -> None:
        """Before the first epoch of a training."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Before each epoch of a training."""
        self.epoch_begin(run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """After each epoch of a training."""
        self.epoch_end(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Before each step of a training."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """After each step of a training."""
        self.step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """After a training."""
        self.end(run_context)

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Before an evaluation."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Before the epoch of an evaluation."""
        self.epoch_begin(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """After the epoch of an evaluation."""
        self.epoch_end(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Before each step of an evaluation."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """After each step of an evaluation."""
        self.step_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """After an evaluation."""
        self.end(run_context)
