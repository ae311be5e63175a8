"""Distributions of shares, waiting times and ranges: Uniform, Exponential, Gamma, Beta."""
from __future__ import annotations

import math
from typing import Any

from torchspore.engine.core.dtypes import float32
from torchspore.mindspore import ops
from torchspore.mindspore.nn.probability.distribution.distribution import Distribution, above_zero

O: Any = ops


class Uniform(Distribution):
    """The same density everywhere from `low` to `high`."""

    _arguments_ = ("low", "high")

    def __init__(
        self, low: Any = None, high: Any = None, seed: int | None = None, dtype: Any = float32, name: str = "Uniform",
    ) -> None:
        super().__init__(seed, dtype, name, {"low": low, "high": high})
        first, last = self.parameters["low"], self.parameters["high"]
        if first is not None and last is not None and not (first.asnumpy() < last.asnumpy()).all():
            raise ValueError(f"{name}(low={low}, high={high}): expected a low below high.")
        self.low, self.high = first, last

    def _mean(self, low: Any, high: Any) -> Any:
        return (low + high) / 2

    def _var(self, low: Any, high: Any) -> Any:
        return O.square(high - low) / 12

    def _entropy(self, low: Any, high: Any) -> Any:
        return O.log(high - low)

    def _prob(self, value: Any, low: Any, high: Any) -> Any:
        density = 1 / (high - low) + 0 * value
        return O.where(O.logical_or(value < low, value > high), O.zeros_like(density), density)

    def _cdf(self, value: Any, low: Any, high: Any) -> Any:
        return O.clamp((value - low) / (high - low), 0.0, 1.0)

    def _kl_loss(self, own: Any, other: Any) -> Any:
        inside = O.logical_and(other[0] <= own[0], own[1] <= other[1])
        gap = O.log(other[1] - other[0]) - O.log(own[1] - own[0])
        return O.where(inside, gap, O.full_like(gap, math.inf))

    def _sample(self, shape: Any, low: Any, high: Any) -> Any:
        return low + (high - low) * self._uniform_(shape)


class Exponential(Distribution):
    """Waiting times with `rate` events in a unit of time."""

    _arguments_ = ("rate",)

    def __init__(self, rate: Any = None, seed: int | None = None, dtype: Any = float32, name: str = "Exponential") -> None:
        super().__init__(seed, dtype, name, {"rate": rate})
        self.rate = self.parameters["rate"]

    def _check_(self, key: str, value: Any) -> None:
        above_zero(self.name, key, value)

    def _mean(self, rate: Any) -> Any:
        return 1 / rate

    _sd = _mean

    def _mode(self, rate: Any) -> Any:
        return O.zeros_like(rate)

    def _entropy(self, rate: Any) -> Any:
        return 1.0 - O.log(rate)

    def _prob(self, value: Any, rate: Any) -> Any:
        density = rate * O.exp(-rate * value)
        return O.where(value < 0, O.zeros_like(density), density)

    def _cdf(self, value: Any, rate: Any) -> Any:
        share = 1.0 - O.exp(-rate * value)
        return O.where(value < 0, O.zeros_like(share), share)

    def _kl_loss(self, own: Any, other: Any) -> Any:
        return O.log(own[0]) - O.log(other[0]) + other[0] / own[0] - 1

    def _sample(self, shape: Any, rate: Any) -> Any:
        return -O.log(O.clamp(self._uniform_(shape), 1e-7, 1.0)) / rate


class Gamma(Distribution):
    """The gamma distribution."""

    _arguments_ = ("concentration", "rate")

    def __init__(
        self, concentration: Any = None, rate: Any = None, seed: int | None = None, dtype: Any = float32, name: str = "Gamma",
    ) -> None:
        super().__init__(seed, dtype, name, {"concentration": concentration, "rate": rate})
        self.concentration, self.rate = self.parameters["concentration"], self.parameters["rate"]

    def _check_(self, key: str, value: Any) -> None:
        above_zero(self.name, key, value)

    def _mean(self, concentration: Any, rate: Any) -> Any:
        return concentration / rate

    def _var(self, concentration: Any, rate: Any) -> Any:
        return concentration / O.square(rate)

    def _mode(self, concentration: Any, rate: Any) -> Any:
        place = (concentration - 1) / rate
        return O.where(concentration > 1, place, O.full_like(place, math.nan))

    def _entropy(self, concentration: Any, rate: Any) -> Any:
        return concentration - O.log(rate) + O.lgamma(concentration) + (1 - concentration) * O.digamma(concentration)

    def _log_prob(self, value: Any, concentration: Any, rate: Any) -> Any:
        return (concentration - 1) * O.log(value) - rate * value - O.lgamma(concentration) + concentration * O.log(rate)

    def _cdf(self, value: Any, concentration: Any, rate: Any) -> Any:
        return O.igamma(concentration, rate * value)

    def _kl_loss(self, own: Any, other: Any) -> Any:
        steps = (own[0] - other[0]) * O.digamma(own[0]) - O.lgamma(own[0]) + O.lgamma(other[0])
        return steps + other[0] * (O.log(own[1]) - O.log(other[1])) + own[0] * (other[1] / own[1] - 1)

    def _sample(self, shape: Any, concentration: Any, rate: Any) -> Any:
        return self._gamma_(shape, concentration + 0 * rate, O.ones_like(rate)) / rate


class Beta(Distribution):
    """The beta distribution of shares, which `concentration1` pulls to 1 and `concentration0` to 0."""

    _arguments_ = ("concentration1", "concentration0")

    def __init__(
        self, concentration1: Any = None, concentration0: Any = None, seed: int | None = None, dtype: Any = float32, name: str = "Beta",
    ) -> None:
        super().__init__(seed, dtype, name, {"concentration1": concentration1, "concentration0": concentration0})
        self.concentration1, self.concentration0 = self.parameters["concentration1"], self.parameters["concentration0"]

    def _check_(self, key: str, value: Any) -> None:
        above_zero(self.name, key, value)

    @staticmethod
    def _log_beta_(one: Any, none: Any) -> Any:
        return O.lgamma(one) + O.lgamma(none) - O.lgamma(one + none)

    def _mean(self, one: Any, none: Any) -> Any:
        return one / (one + none)

    def _var(self, one: Any, none: Any) -> Any:
        total = one + none
        return one * none / (O.square(total) * (total + 1))

    def _mode(self, one: Any, none: Any) -> Any:
        place = (one - 1) / (one + none - 2)
        return O.where(O.logical_and(one > 1, none > 1), place, O.full_like(place, math.nan))

    def _entropy(self, one: Any, none: Any) -> Any:
        total = one + none
        pulls = (one - 1) * O.digamma(one) + (none - 1) * O.digamma(none)
        return self._log_beta_(one, none) - pulls + (total - 2) * O.digamma(total)

    def _log_prob(self, value: Any, one: Any, none: Any) -> Any:
        return (one - 1) * O.log(value) + (none - 1) * O.log1p(-value) - self._log_beta_(one, none)

    def _kl_loss(self, own: Any, other: Any) -> Any:
        gap = self._log_beta_(*other) - self._log_beta_(*own)
        pulls = (own[0] - other[0]) * O.digamma(own[0]) + (own[1] - other[1]) * O.digamma(own[1])
        return gap + pulls + (other[0] + other[1] - own[0] - own[1]) * O.digamma(own[0] + own[1])

    def _sample(self, shape: Any, one: Any, none: Any) -> Any:
        first, second = (self._gamma_(shape, each, O.ones_like(each)) for each in (one + 0 * none, none + 0 * one))
        return first / (first + second)
