"""Callbacks that record the results of a training or pass its events to functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.base.text import message, short
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.train.callback._callback import Callback, RunContext, state_of


class History(Callback):
    """Records the last output of the network and, in `Model.fit`, the metrics of each epoch: `history[name]` is a list,
    `epoch['epoch']` too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] = {"epoch": []}

    def begin(self, run_context: RunContext) -> None:
        """Clears the history."""
        self.epoch = {"epoch": []}

    on_eval_begin = Callback.begin

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Ignores a separate evaluation."""

    def epoch_end(self, run_context: RunContext) -> None:
        """Records this epoch's values."""
        state = state_of(self, run_context)
        self.epoch["epoch"].append(state.get("cur_epoch_num", 1))
        outputs = state.net_outputs
        values = {"net_output": _plain(outputs), **(state.metrics if "eval_results" in state else {})}
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)


def _plain(outputs: Any) -> Any:
    if isinstance(outputs, (tuple, list)):
        return type(outputs)(_plain(output) for output in outputs)
    if isinstance(outputs, Tensor):
        array = outputs.asnumpy()
        return array[()] if not array.ndim else array.copy()
    return outputs


class LambdaCallback(Callback):
    """Calls the functions with the RunContext. Raises TypeError for arguments that are not callable."""

    def __init__(
        self, on_train_epoch_begin: Callable[..., Any] | None = None, on_train_epoch_end: Callable[..., Any] | None = None,
        on_train_step_begin: Callable[..., Any] | None = None, on_train_step_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None, on_train_end: Callable[..., Any] | None = None,
        on_eval_epoch_begin: Callable[..., Any] | None = None, on_eval_epoch_end: Callable[..., Any] | None = None,
        on_eval_step_begin: Callable[..., Any] | None = None, on_eval_step_end: Callable[..., Any] | None = None,
        on_eval_begin: Callable[..., Any] | None = None, on_eval_end: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__()
        functions = {name: value for name, value in locals().items() if name.startswith("on_")}
        for name, function in functions.items():
            if function is not None and not callable(function):
                raise TypeError(message(f"LambdaCallback({name}={short(function)})", "a function of the RunContext"))
            setattr(self, name, function if function is not None else _nothing)


def _nothing(run_context: RunContext) -> None:
    """The default function of a LambdaCallback."""
