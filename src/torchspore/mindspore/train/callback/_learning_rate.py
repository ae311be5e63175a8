"""Callbacks that change the learning rate or end the training, depending on its results."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.arguments import check_bool, check_int, check_type
from torchspore.base.text import list_choices, message, short
from torchspore.distributed.data_parallel import decision_agreement
from torchspore.mindspore.common import dtype as mstype
from torchspore.mindspore.common.parameter import Parameter
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.train.callback._callback import Callback, RunContext, state_of
from torchspore.mindspore.train.serialization import load_param_into_net


def rate_of(optimizer: Any, call: str) -> Parameter:
    """Return the single learning rate of an optimizer. Raises ValueError if it has several or a schedule."""
    rate = getattr(optimizer, "learning_rate", None)
    if not isinstance(rate, Parameter) or tuple(rate.shape) != ():
        raise ValueError(message(call, "an optimizer with one constant learning rate"))
    return rate


def shortest(rate: Any) -> float:
    """Return the shortest decimal number that rounds to a float32: 0.1, not 0.10000000149."""
    return float(str(np.float32(rate.asnumpy())))


class LearningRateScheduler(Callback):
    """Sets the learning rate after each step to `learning_rate_function(rate, number of the step from 1)`."""

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        super().__init__()
        if not callable(learning_rate_function):
            raise TypeError(message(f"LearningRateScheduler({short(learning_rate_function)})", "a function of (rate, step)"))
        self.learning_rate_function = learning_rate_function

    def step_end(self, run_context: RunContext) -> None:
        """Sets the next rate."""
        state = state_of(self, run_context)
        rate = rate_of(state.optimizer, "LearningRateScheduler")
        new = self.learning_rate_function(shortest(rate), state.cur_step_num)
        if isinstance(new, (str, bytes)) or new is None:
            raise TypeError(message(f"LearningRateScheduler: the function gave {short(new)}", "a number"))
        rate.set_data(Tensor(float(new), mstype.float32))


class _Monitor(Callback):
    """Base of the callbacks that monitor one of the evaluation's results in `Model.fit`."""

    def __init__(self, monitor: str, mode: str, verbose: bool) -> None:
        super().__init__()
        name = type(self).__name__
        check_type(name, "monitor", monitor, str, "the name of a metric, or 'eval_loss'")
        check_bool(name, "verbose", verbose)
        if mode not in ("auto", "min", "max"):
            raise ValueError(message(f"{name}(mode={short(mode)})", list_choices(["auto", "min", "max"])))
        self.monitor, self.mode, self.verbose = monitor, mode, verbose
        larger = mode == "max" or (mode == "auto" and "acc" in monitor.lower())
        self._sign_ = 1.0 if larger else -1.0
        self.best = -np.inf * self._sign_

    def _improves_(self, value: float, on: float, by: float) -> bool:
        return (value - on) * self._sign_ > by

    def _current_(self, run_context: RunContext) -> float | None:
        """Return the monitored value, None after an epoch without an evaluation. Warn once if the evaluation does not have it."""
        results = state_of(self, run_context).get("eval_results")
        if not results:
            return None
        value = results.get(self.monitor)
        if value is None:
            if not getattr(self, "_has_warned", False):
                from torchspore.mindspore import log

                self._has_warned = True
                log.warning("%s(monitor=%r): the evaluation has only %s", type(self).__name__, self.monitor, ", ".join(results))
            return None
        return float(np.mean(value))


class EarlyStopping(_Monitor):
    """Ends the training once `monitor` has not improved, by at least `min_delta`, for `patience` evaluations.

    `mode` is 'min', 'max' or 'auto' (max for names with 'acc'). With `baseline` the counting restarts only when a result beats it.
    `restore_best_weights` restores the values of the best evaluation.
    """

    def __init__(
        self, monitor: str = "eval_loss", min_delta: float = 0, patience: int = 0, verbose: bool = False, mode: str = "auto",
        baseline: float | None = None, restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, mode, verbose)
        check_type("EarlyStopping", "min_delta", min_delta, (int, float), "a number")
        check_int("EarlyStopping", "patience", patience, 0)
        check_bool("EarlyStopping", "restore_best_weights", restore_best_weights)
        if baseline is not None:
            check_type("EarlyStopping", "baseline", baseline, (int, float), "a number")
        self.min_delta, self.patience, self.baseline = abs(min_delta), patience, baseline
        self.restore_best_weights = restore_best_weights
        self.wait = self.stopped_epoch = 0
        self._best_weights_: dict[str, Any] = {}

    def on_train_begin(self, run_context: RunContext) -> None:
        """Resets the state."""
        self.wait = self.stopped_epoch = 0
        self.best = -np.inf * self._sign_
        self._best_weights_ = {}

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Checks the value, and ends the training if it has not improved for too long."""
        current = self._current_(run_context)
        if current is None:
            return
        state = state_of(self, run_context)
        if self._improves_(current, self.best, self.min_delta):
            self.best = current
            if self.restore_best_weights:
                self._best_weights_ = {
                    parameter.name: copy.deepcopy(parameter) for _, parameter in state.train_network.parameters_and_names()
                }
            if self.baseline is None or self._improves_(current, self.baseline, self.min_delta):
                self.wait = 0
        else:
            self.wait += 1
        ends = self.wait >= self.patience
        decision = f"{'ends' if ends else 'goes on with'} the training after epoch {state.cur_epoch_num}"
        decision_agreement.check_agreement("EarlyStopping", decision)
        if not ends:
            return
        self.stopped_epoch = state.cur_epoch_num
        run_context.request_stop()
        if self._best_weights_:
            if self.verbose:
                print("Restoring model weights from the end of the best epoch.", flush=True)
            load_param_into_net(state.train_network, self._best_weights_)

    def on_train_end(self, run_context: RunContext) -> None:
        """Logs the epoch in which the training was ended."""
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping", flush=True)


class ReduceLROnPlateau(_Monitor):
    """Multiplies the learning rate by `factor`, down to `min_lr`, once `monitor` has not improved for `patience` evaluations.

    After a change, `cooldown` evaluations pass before counting restarts.
    """

    def __init__(
        self, monitor: str = "eval_loss", factor: float = 0.1, patience: int = 10, verbose: bool = False, mode: str = "auto",
        min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0,
    ) -> None:
        super().__init__(monitor, mode, verbose)
        call = "ReduceLROnPlateau"
        check_type(call, "factor", factor, (int, float), "a number")
        if not 0 < factor < 1:
            raise ValueError(message(f"{call}(factor={factor})", "a number above 0 and below 1"))
        check_int(call, "patience", patience, 0)
        check_int(call, "cooldown", cooldown, 0)
        for name, value in (("min_delta", min_delta), ("min_lr", min_lr)):
            check_type(call, name, value, (int, float), "a number")
        self.factor, self.patience, self.cooldown, self.min_lr, self.min_delta = factor, patience, cooldown, min_lr, abs(min_delta)
        self.wait = self.cooldown_counter = 0

    def on_train_begin(self, run_context: RunContext) -> None:
        """Resets the state."""
        self.wait = self.cooldown_counter = 0
        self.best = -np.inf * self._sign_

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Checks the value, and lowers the rate if it has not improved for too long."""
        current = self._current_(run_context)
        if current is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._improves_(current, self.best, self.min_delta):
            self.best, self.wait = current, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            if self.wait >= self.patience:
                self._lower_(state_of(self, run_context))
                return
        self._decided_(state_of(self, run_context), None)

    def _lower_(self, state: Any) -> None:
        rate = rate_of(state.optimizer, "ReduceLROnPlateau")
        old = shortest(rate)
        if old <= self.min_lr:
            self._decided_(state, None)
            return
        new = max(old * self.factor, self.min_lr)
        self._decided_(state, new)
        rate.set_data(Tensor(new, mstype.float32))
        if self.verbose:
            print(f"Epoch {state.cur_epoch_num:05d}: ReduceLROnPlateau reducing learning rate to {shortest(rate)}.", flush=True)
        self.cooldown_counter, self.wait = self.cooldown, 0

    def _decided_(self, state: Any, rate: float | None) -> None:
        action = "leaves the learning rate" if rate is None else f"sets the learning rate to {rate:g}"
        decision_agreement.check_agreement("ReduceLROnPlateau", f"{action} after epoch {state.cur_epoch_num}")
