"""Learning rates that depend on the global step, computed inside the training step."""
from __future__ import annotations

import math
from typing import Any

from torchspore.base.text import message
from torchspore.engine.tensors import dtypes
from torchspore.mindspore import ops
from torchspore.mindspore.nn.cell import Cell
from torchspore.mindspore.ops.declaration.kind_checks import check_kinds
from torchspore.mindspore.ops.declaration.limits import check_real

_INTEGER_ARGUMENTS = ("total_step", "step_per_epoch", "decay_epoch", "warmup_epoch", "decay_steps", "warmup_steps", "milestone")


def positive(name: str, **numbers: Any) -> None:
    """Raises TypeError for a value that is not a number, ValueError if it is not above 0."""
    for key, value in numbers.items():
        is_integer = key in _INTEGER_ARGUMENTS
        if isinstance(value, bool) or not isinstance(value, int if is_integer else (int, float)):
            raise TypeError(f"{name}({key}={value!r}): expected {'an int' if is_integer else 'a number'}, got {type(value).__name__}.")
        if value <= 0:
            raise ValueError(message(f"{name}({key}={value})", "a number above 0"))


class LearningRateSchedule(Cell):
    """The base of schedules: `construct(global_step)` returns the rate of that step."""

    def construct(self, global_step: Any) -> Any:
        """Return the rate of `global_step`; each schedule defines its own."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method construct(self, global_step).")


class _Decay(LearningRateSchedule):
    """Base class of the decays by steps: the fraction step / decay_steps, in full steps if `is_stair`."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        name = type(self).__name__
        check_real(name, above=0.0, learning_rate=learning_rate, decay_rate=decay_rate)
        positive(name, decay_steps=decay_steps)
        check_kinds(name, "bool", is_stair=is_stair)
        self.learning_rate, self.decay_rate, self.decay_steps, self.is_stair = learning_rate, decay_rate, decay_steps, is_stair

    def _fraction_(self, global_step: Any) -> Any:
        """step / decay_steps."""
        part = ops.cast(global_step, dtypes.float32) / self.decay_steps
        return ops.floor(part) if self.is_stair else part


class ExponentialDecayLR(_Decay):
    """learning_rate * decay_rate ^ (step / decay_steps)."""

    def construct(self, global_step: Any) -> Any:
        """The rate of `global_step`."""
        return self.learning_rate * ops.pow(self.decay_rate, self._fraction_(global_step))


class NaturalExpDecayLR(_Decay):
    """learning_rate * exp(-decay_rate * step), with the step in multiples of decay_steps if `is_stair`."""

    def construct(self, global_step: Any) -> Any:
        """The rate of `global_step`."""
        step = ops.cast(global_step, dtypes.float32)
        if self.is_stair:
            step = ops.floor(step / self.decay_steps) * self.decay_steps
        return self.learning_rate * ops.exp(-self.decay_rate * step)


class InverseDecayLR(_Decay):
    """learning_rate / (1 + decay_rate * step / decay_steps)."""

    def construct(self, global_step: Any) -> Any:
        """The rate of `global_step`."""
        return self.learning_rate / (1 + self.decay_rate * self._fraction_(global_step))


class CosineDecayLR(LearningRateSchedule):
    """Half a cosine from `max_lr` down to `min_lr` over `decay_steps`."""

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        check_real("CosineDecayLR", least=0.0, min_lr=min_lr)
        check_real("CosineDecayLR", above=0.0, max_lr=max_lr)
        positive("CosineDecayLR", decay_steps=decay_steps)
        if not 0 <= min_lr < max_lr:
            raise ValueError(f"CosineDecayLR(min_lr={min_lr}, max_lr={max_lr}): expected 0 <= min_lr < max_lr.")
        self.min_lr, self.max_lr, self.decay_steps = min_lr, max_lr, decay_steps

    def construct(self, global_step: Any) -> Any:
        """The rate of `global_step`."""
        step = ops.clamp(ops.cast(global_step, dtypes.float32), None, float(self.decay_steps))
        return self.min_lr + 0.5 * (self.max_lr - self.min_lr) * (1 + ops.cos(step / self.decay_steps * math.pi))


class PolynomialDecayLR(LearningRateSchedule):
    """(learning_rate - end) * (1 - step / decay_steps) ^ power + end; with `update_decay_steps`, longer periods follow."""

    def __init__(
        self, learning_rate: float, end_learning_rate: float, decay_steps: int, power: float, update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        check_real("PolynomialDecayLR", above=0.0, learning_rate=learning_rate, power=power)
        positive("PolynomialDecayLR", decay_steps=decay_steps)
        check_real("PolynomialDecayLR", least=0.0, end_learning_rate=end_learning_rate)
        check_kinds("PolynomialDecayLR", "bool", update_decay_steps=update_decay_steps)
        self.learning_rate, self.end, self.decay_steps = learning_rate, end_learning_rate, decay_steps
        self.power, self.update_decay_steps = power, update_decay_steps

    def construct(self, global_step: Any) -> Any:
        """The rate of `global_step`."""
        step, period = ops.cast(global_step, dtypes.float32), float(self.decay_steps)
        if self.update_decay_steps:
            period = period * ops.maximum(ops.ceil(step / period), 1.0)
        else:
            step = ops.clamp(step, None, period)
        return (self.learning_rate - self.end) * ops.pow(1 - step / period, self.power) + self.end


class WarmUpLR(LearningRateSchedule):
    """Linear increase to `learning_rate` within `warmup_steps`, then constant."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        positive("WarmUpLR", warmup_steps=warmup_steps)
        check_real("WarmUpLR", least=0.0, learning_rate=learning_rate)
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps

    def construct(self, global_step: Any) -> Any:
        """The rate of `global_step`."""
        step = ops.clamp(ops.cast(global_step, dtypes.float32), None, float(self.warmup_steps))
        return self.learning_rate * step / self.warmup_steps


__all__ = ["CosineDecayLR", "ExponentialDecayLR", "InverseDecayLR", "NaturalExpDecayLR", "PolynomialDecayLR", "WarmUpLR"]
