"""`Callback` and its `RunContext`. Data pipelines have callbacks too, and do not import the training code for them."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message, short


class RunContext:
    """The argument of each method of a Callback: `original_args()` has the training's state, `request_stop()` ends the training.

    Raises TypeError unless it is created from a dict.
    """

    def __init__(self, original_args: Any) -> None:
        if not isinstance(original_args, dict):
            raise TypeError(message(f"RunContext({short(original_args)})", f"a dict, got {type(original_args).__name__}"))
        self._original_args = original_args
        self._stop_requested = False

    def original_args(self) -> Any:
        """Return the state of the training."""
        return self._original_args

    def request_stop(self) -> None:
        """End the training after this step or epoch."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Return whether the end was requested."""
        return self._stop_requested


class Callback:
    """Base class of callbacks: a training calls them at its beginning and end, and for each epoch and step.

    Override `on_train_begin`, `on_train_epoch_begin`, `on_train_step_begin`, `..._end` and the same with `eval`; or the older `begin`,
    `epoch_begin`, `step_begin`, `..._end`, which are called for both. It may be used in a `with` block.
    """

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, *error: Any) -> None:
        """Called when the training ends, also after an error."""

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
