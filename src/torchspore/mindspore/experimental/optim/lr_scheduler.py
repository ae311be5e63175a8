"""Schedulers: each call of `step` sets the rates of an optimizer's groups."""
from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from typing import Any

from torchspore.base.arguments import check_counts, check_int_type, check_type, is_int
from torchspore.base.text import message, short, with_type
from torchspore.mindspore import ops
from torchspore.mindspore.common.tensor import Tensor
from torchspore.mindspore.experimental.optim.argument_checks import check_factor, check_least, check_steps, read_factor
from torchspore.mindspore.experimental.optim.optimizer import Optimizer
from torchspore.mindspore.ops.declaration.limits import real_type


class LRScheduler:
    """The base: subclasses, including user-defined ones, define `get_lr`, which returns a rate for each group.

    They can read `last_epoch` (0 after the constructor), `_last_lr` (the current rates) and `base_lrs` (the initial rates). With a
    `last_epoch` argument, the constructor continues from there. Raises TypeError unless `optimizer` is one of
    `mindspore.experimental.optim`.
    """

    _changes_itself_ = True          # `step` in a graph is one of MindSpore's idioms, at each syntax level

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{name}(optimizer={type(optimizer).__name__}): expected an optimizer of mindspore.experimental.optim."
                "\n\nhint: those of mindspore.nn take a schedule as their learning_rate."
            )
        check_int_type(name, "last_epoch", last_epoch)
        if last_epoch < -1:
            raise ValueError(f"{name}(last_epoch={last_epoch}): expected an int from -1 on.")
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"].value())
            elif "initial_lr" not in group:
                raise KeyError(f"{name}(last_epoch={last_epoch}): group {number} has no 'initial_lr'.")
        self.optimizer, self.last_epoch = optimizer, last_epoch
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.groups_num = len(optimizer.param_groups)
        self._last_lr = self._rates_()
        self.step()

    def _rates_(self) -> list[Tensor]:
        return [group["lr"].value() for group in self.optimizer.param_groups]

    def get_lr(self) -> list[Any]:
        """Return the rate of each group for `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method get_lr(self).")

    def get_last_lr(self) -> list[Tensor]:
        """Return the current rates."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, or to `epoch`, and set the rates."""
        if epoch is None:
            self.last_epoch += 1
            self._set_(self.get_lr())
        else:
            if not is_int(epoch):
                raise TypeError(message(f"{type(self).__name__}.step({epoch!r:.40})", with_type("an int", epoch)))
            self.last_epoch = epoch
            # Schedules with a closed form may skip epochs.
            self._set_(self._get_closed_form_lr() if hasattr(self, "_get_closed_form_lr") else self.get_lr())

    def _set_(self, rates: list[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            ops.assign(group["lr"], rate if isinstance(rate, Tensor) else Tensor(float(rate), group["lr"].dtype))
        self._last_lr = self._rates_()


class _ClosedForm(LRScheduler):
    """A schedule with a closed form of the rate."""

    def _closed_form_(self, base: Any, epoch: int) -> Any:
        """Return the rate of a group with the initial rate `base`."""
        raise NotImplementedError

    def _get_closed_form_lr(self) -> list[Any]:
        """Return the rate of each group for `last_epoch`; a user-defined schedule may lack a closed form."""
        return [self._closed_form_(base, self.last_epoch) for base in self.base_lrs]


class StepLR(_ClosedForm):
    """The rate times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        check_steps("StepLR", "step_size", step_size)
        real_type("StepLR", "gamma", gamma)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        if self.last_epoch == 0 or not self.step_size or self.last_epoch % self.step_size:
            return self._last_lr
        return [rate * self.gamma for rate in self._last_lr]

    def _closed_form_(self, base: Any, epoch: int) -> Any:
        return base * self.gamma ** (epoch // self.step_size)


class MultiStepLR(_ClosedForm):
    """The rate times `gamma` at each of the epochs `milestones`."""

    def __init__(self, optimizer: Optimizer, milestones: Any, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if not isinstance(milestones, list) or any(not is_int(m) for m in milestones):
            raise TypeError(message(f"MultiStepLR(milestones={milestones!r:.40})", "a list of ints"))
        check_factor("MultiStepLR", gamma=gamma)
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        times = self.milestones.get(self.last_epoch, 0)
        return [rate * self.gamma**times for rate in self._last_lr] if times else self._last_lr

    def _closed_form_(self, base: Any, epoch: int) -> Any:
        return base * self.gamma ** bisect_right(sorted(self.milestones.elements()), epoch)


class ConstantLR(_ClosedForm):
    """The rate times `factor` for `total_iters` epochs, then the rate itself."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        check_steps("ConstantLR", "total_iters", total_iters)
        factor = read_factor("ConstantLR", "factor", factor)
        if factor < 0 or factor > 1:
            raise ValueError(f"ConstantLR(factor={factor}): expected a number from 0 to 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._last_lr]
        if self.last_epoch != self.total_iters:
            return self._last_lr
        return [rate * (1.0 / self.factor) for rate in self._last_lr]

    def _closed_form_(self, base: Any, epoch: int) -> Any:
        return base * (self.factor if epoch < self.total_iters else 1.0)


class LinearLR(_ClosedForm):
    """The rate times a factor that changes linearly from `start_factor` to `end_factor` within `total_iters` epochs."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1,
    ) -> None:
        check_steps("LinearLR", "total_iters", total_iters)
        start_factor = read_factor("LinearLR", "start_factor", start_factor)
        end_factor = read_factor("LinearLR", "end_factor", end_factor)
        if start_factor <= 0 or start_factor > 1:
            raise ValueError(f"LinearLR(start_factor={start_factor}): expected a number above 0 and up to 1.")
        if end_factor < 0 or end_factor > 1:
            raise ValueError(f"LinearLR(end_factor={end_factor}): expected a number from 0 to 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._last_lr]
        if self.last_epoch > self.total_iters:
            return self._last_lr
        span = self.end_factor - self.start_factor
        factor = 1 + span / (self.total_iters * self.start_factor + (self.last_epoch - 1) * span)
        return [rate * factor for rate in self._last_lr]

    def _closed_form_(self, base: Any, epoch: int) -> Any:
        return base * (self.start_factor + (self.end_factor - self.start_factor) * min(self.total_iters, epoch) / self.total_iters)


class ExponentialLR(_ClosedForm):
    """The rate times `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        real_type("ExponentialLR", "gamma", gamma)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        return self._last_lr if self.last_epoch == 0 else [rate * self.gamma for rate in self._last_lr]

    def _closed_form_(self, base: Any, epoch: int) -> Any:
        return base * self.gamma**epoch


class PolynomialLR(_ClosedForm):
    """The rate times (1 - epoch / total_iters)^power, 0 from `total_iters` on."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        check_steps("PolynomialLR", "total_iters", total_iters)
        real_type("PolynomialLR", "power", power)
        if power < 0:
            raise ValueError(message(f"PolynomialLR(power={power})", "a number from 0 on"))
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._last_lr
        factor = ((1.0 - self.last_epoch / self.total_iters) / (1.0 - (self.last_epoch - 1) / self.total_iters)) ** self.power
        return [rate * factor for rate in self._last_lr]

    def _closed_form_(self, base: Any, epoch: int) -> Any:
        return base * (1.0 - min(self.total_iters, epoch) / self.total_iters) ** self.power


class _ByFunction(LRScheduler):
    """Schedulers with one function of the epoch, or one for each group."""

    _checks_functions_ = True

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        name, count = type(self).__name__, len(getattr(optimizer, "param_groups", ()))
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        if len(functions) != count:
            raise ValueError(f"{name}(lr_lambda of {len(functions)} functions): expected {count}, one for each group.")
        if self._checks_functions_ and not all(callable(function) for function in functions):
            raise TypeError(f"{name}(lr_lambda={lr_lambda!r:.40}): expected a function, or a list of them.")
        self.lr_lambdas = functions
        super().__init__(optimizer, last_epoch)


class LambdaLR(_ByFunction):
    """The initial rate times `lr_lambda(epoch)`; a list has a function for each group."""

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        return [base * factor(self.last_epoch) for base, factor in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_ByFunction):
    """The rate times `lr_lambda(epoch)` every epoch; a list has a function for each group. The first `step` calls it."""

    _checks_functions_ = False

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        if self.last_epoch == 0:
            return self._last_lr
        return [rate * factor(self.last_epoch) for rate, factor in zip(self._last_lr, self.lr_lambdas)]


class CosineAnnealingLR(_ClosedForm):
    """Half a cosine from the rate down to `eta_min` over `T_max` epochs, and up again (Loshchilov and Hutter, 2016)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        check_type("CosineAnnealingLR", "eta_min", eta_min, (int, float, bool), "a number")
        check_steps("CosineAnnealingLR", "T_max", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        if self.last_epoch == 0:
            return self._last_lr
        if not self.T_max:
            return [math.nan] * len(self._last_lr)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            turn = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * turn for rate, base in zip(self._last_lr, self.base_lrs)]
        factor = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / (1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max))
        return [(rate - self.eta_min) * factor + self.eta_min for rate in self._last_lr]

    def _closed_form_(self, base: Any, epoch: int) -> Any:
        return (base - self.eta_min) * ((1 + math.cos(math.pi * epoch / self.T_max)) / 2) + self.eta_min


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the rate down to `eta_min` over `T_0` epochs, repeated, each time `T_mult` times as long."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1) -> None:
        T_0, T_mult = (int(count) if isinstance(count, bool) else count for count in (T_0, T_mult))
        check_counts("CosineAnnealingWarmRestarts", T_0=T_0, T_mult=T_mult)
        check_factor("CosineAnnealingWarmRestarts", eta_min=eta_min)
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i, self.T_cur = T_0, float(last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        turn = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [(base - self.eta_min) * turn + self.eta_min for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Advance to the next epoch, or to `epoch`, which may be fractional, and set the rates."""
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            if isinstance(epoch, bool) or not isinstance(epoch, (int, float)):
                raise TypeError(message(f"CosineAnnealingWarmRestarts.step({epoch!r:.40})", with_type("a number", epoch)))
            if not 0 <= epoch < math.inf:
                raise ValueError(message(f"CosineAnnealingWarmRestarts.step({short(epoch)})", "a number from 0 on"))
            self.T_i, self.T_cur = self.T_0, float(epoch)
            if self.T_mult == 1:
                self.T_cur %= self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        self._set_(self.get_lr())


class CyclicLR(LRScheduler):
    """The rate rises from `base_lr` to `max_lr` in `step_size_up` steps and falls in `step_size_down`, repeatedly (Smith, 2015).

    `mode` 'triangular2' halves the height each time, 'exp_range' shrinks it by `gamma`^step; `scale_fn` of the cycle or, with `scale_mode`
    'iterations', of the step overrides `mode`.
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[Any], float] | None = None, scale_mode: str = "cycle",
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR(mode={mode!r:.40}): expected 'triangular', 'triangular2' or 'exp_range'.")
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(f"CyclicLR(scale_mode={scale_mode!r:.40}): expected 'cycle' or 'iterations'.")
        if scale_fn is not None and not callable(scale_fn):
            raise TypeError(message(f"CyclicLR(scale_fn={scale_fn!r:.40})", "a function"))
        count = len(getattr(optimizer, "param_groups", ()))
        lows, self.max_lrs = (self._each_(name, value, count) for name, value in (("base_lr", base_lr), ("max_lr", max_lr)))
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size, self.step_ratio = float(step_size_up + down), step_size_up / (step_size_up + down)
        self.gamma, self.scale_mode = gamma, "iterations" if mode == "exp_range" and scale_fn is None else scale_mode
        self.scale_fn = scale_fn or {
            "triangular": lambda x: 1.0**x, "triangular2": lambda x: 1 / 2.0 ** (x - 1), "exp_range": lambda x: gamma**x,
        }[mode]
        if isinstance(optimizer, Optimizer) and last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows):
                ops.assign(group["lr"], Tensor(low, group["lr"].dtype))
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    @staticmethod
    def _each_(name: str, value: Any, count: int) -> list[float]:
        values = list(value) if isinstance(value, (list, tuple)) else [value] * count
        if len(values) != count:
            raise ValueError(f"CyclicLR({name} of {len(values)} rates): expected {count}, one for each group.")
        for number in values:
            check_factor("CyclicLR", **{name: number})
        return [float(number) for number in values]

    def get_lr(self) -> list[Any]:
        """Return the rate of each group."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        return [float(low) + (high - float(low)) * share * scale for low, high in zip(self.base_lrs, self.max_lrs)]


class SequentialLR:
    """Schedulers in sequence: the next one takes over at each of the epochs `milestones`."""

    _changes_itself_ = True

    def __init__(self, optimizer: Optimizer, schedulers: Any, milestones: Any, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"SequentialLR(optimizer={type(optimizer).__name__}): expected one of mindspore.experimental.optim.")
        if not isinstance(schedulers, (list, tuple)) or not schedulers or not all(hasattr(item, "optimizer") for item in schedulers):
            raise TypeError(f"SequentialLR(schedulers={short(schedulers)}): expected a list of schedulers.")
        if not isinstance(milestones, (list, tuple)) or any(not is_int(m) for m in milestones):
            raise TypeError(message(f"SequentialLR(milestones={short(milestones)})", "a list of ints"))
        if not is_int(last_epoch):
            raise TypeError(message(f"SequentialLR(last_epoch={short(last_epoch)})", with_type("an int", last_epoch)))
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError("SequentialLR(schedulers=...): expected schedulers of the same optimizer.")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR(milestones of {len(milestones)} epochs): expected one less than the {len(schedulers)} schedulers."
            )
        self._schedulers, self._milestones, self.optimizer = list(schedulers), list(milestones), optimizer
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            ops.assign(group["lr"], group["initial_lr"])
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1
        first = self._schedulers[0]
        first._last_lr = first._rates_()
        first.step()
        self._last_lr = first._last_lr

    def step(self) -> None:
        """Advance to the next epoch and set the rates."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        scheduler._last_lr = scheduler._rates_()
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler._last_lr

    def get_last_lr(self) -> list[Tensor]:
        """Return the current rates."""
        return self._last_lr


class ReduceLROnPlateau:
    """The rate times `factor` when a metric has not improved for `patience` epochs.

    `mode` sets whether 'min' or 'max' is better; an improvement is a change by more than `threshold`, relative ('rel') or absolute ('abs')
    by `threshold_mode`. After a change it pauses for `cooldown` epochs. No rate falls below `min_lr` or changes by less than `eps`.
    """

    _changes_itself_ = True

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"ReduceLROnPlateau(optimizer={type(optimizer).__name__}): expected one of mindspore.experimental.optim.")
        factor = read_factor("ReduceLROnPlateau", "factor", factor)
        if factor >= 1:
            raise ValueError(f"ReduceLROnPlateau(factor={factor}): expected a number below 1.")
        if mode not in ("min", "max"):
            raise ValueError(f"ReduceLROnPlateau(mode={mode!r:.40}): expected 'min' or 'max'.")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau(threshold_mode={threshold_mode!r:.40}): expected 'rel' or 'abs'.")
        count = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)) and len(min_lr) != count:
            raise ValueError(f"ReduceLROnPlateau(min_lr of {len(min_lr)} rates): expected {count}, one for each group.")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        check_least("ReduceLROnPlateau", "min_lr", self.min_lrs)
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = self.num_bad_epochs = self.last_epoch = 0
        self._last_lr = [group["lr"].value() for group in optimizer.param_groups]

    @property
    def in_cooldown(self) -> bool:
        """True during the pause after a change."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any) -> None:
        """Evaluate the metric of an epoch and change the rates if necessary."""
        current = float(metrics)
        self.last_epoch += 1
        if self._is_better_(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs):
                rate = group["lr"].value()
                lower = ops.maximum(rate * self.factor, least)
                ops.assign(group["lr"], ops.select(rate - lower > self.eps, lower, rate))
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [group["lr"].value() for group in self.optimizer.param_groups]

    def _is_better_(self, value: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "abs":
            return sign * value > sign * self.best + self.threshold
        return sign * value > sign * self.best * (1 + sign * self.threshold)

    def get_last_lr(self) -> list[Tensor]:
        """Return the current rates."""
        return self._last_lr


__all__ = [
    "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR",
    "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]
