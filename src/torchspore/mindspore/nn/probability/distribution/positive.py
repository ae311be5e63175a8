"""Distributions of fractions, waiting times and ranges: Uniform, Exponential, Gamma, Beta."""
from __future__ import annotations

import math
from typing import Any

from torchspore.engine.tensors.dtypes import float32
from torchspore.mindspore import ops
from torchspore.mindspore.nn.probability.distribution.distribution import Distribution, above_zero

O: Any = ops


class Uniform(Distribution):
    """A constant density from `low` to `high`."""

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

    def _kl_loss(self, p: Any, q: Any) -> Any:
        inside = O.logical_and(q[0] <= p[0], p[1] <= q[1])
        gap = O.log(q[1] - q[0]) - O.log(p[1] - p[0])
        return O.where(inside, gap, O.full_like(gap, math.inf))

    def _sample(self, shape: Any, low: Any, high: Any) -> Any:
        return low + (high - low) * self._uniform_(shape)


class Exponential(Distribution):
    """Waiting times between events with `rate` events per unit of time."""

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

    def _kl_loss(self, p: Any, q: Any) -> Any:
        return O.log(p[0]) - O.log(q[0]) + q[0] / p[0] - 1

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
        mode = (concentration - 1) / rate
        return O.where(concentration > 1, mode, O.full_like(mode, math.nan))

    def _entropy(self, concentration: Any, rate: Any) -> Any:
        return concentration - O.log(rate) + O.lgamma(concentration) + (1 - concentration) * O.digamma(concentration)

    def _log_prob(self, value: Any, concentration: Any, rate: Any) -> Any:
        return (concentration - 1) * O.log(value) - rate * value - O.lgamma(concentration) + concentration * O.log(rate)

    def _cdf(self, value: Any, concentration: Any, rate: Any) -> Any:
        return O.igamma(concentration, rate * value)

    def _kl_loss(self, p: Any, q: Any) -> Any:
        steps = (p[0] - q[0]) * O.digamma(p[0]) - O.lgamma(p[0]) + O.lgamma(q[0])
        return steps + q[0] * (O.log(p[1]) - O.log(q[1])) + p[0] * (q[1] / p[1] - 1)

    def _sample(self, shape: Any, concentration: Any, rate: Any) -> Any:
        return self._gamma_(shape, concentration + 0 * rate, O.ones_like(rate)) / rate


class Beta(Distribution):
    """The beta distribution of fractions: `concentration1` pulls to 1, `concentration0` to 0."""

    _arguments_ = ("concentration1", "concentration0")

    def __init__(
        self, concentration1: Any = None, concentration0: Any = None, seed: int | None = None, dtype: Any = float32, name: str = "Beta",
    ) -> None:
        super().__init__(seed, dtype, name, {"concentration1": concentration1, "concentration0": concentration0})
        self.concentration1, self.concentration0 = self.parameters["concentration1"], self.parameters["concentration0"]

    def _check_(self, key: str, value: Any) -> None:
        above_zero(self.name, key, value)

    @staticmethod
    def _log_beta_(alpha: Any, beta: Any) -> Any:
        return O.lgamma(alpha) + O.lgamma(beta) - O.lgamma(alpha + beta)

    def _mean(self, alpha: Any, beta: Any) -> Any:
        return alpha / (alpha + beta)

    def _var(self, alpha: Any, beta: Any) -> Any:
        total = alpha + beta
        return alpha * beta / (O.square(total) * (total + 1))

    def _mode(self, alpha: Any, beta: Any) -> Any:
        mode = (alpha - 1) / (alpha + beta - 2)
        return O.where(O.logical_and(alpha > 1, beta > 1), mode, O.full_like(mode, math.nan))

    def _entropy(self, alpha: Any, beta: Any) -> Any:
        total = alpha + beta
        pulls = (alpha - 1) * O.digamma(alpha) + (beta - 1) * O.digamma(beta)
        return self._log_beta_(alpha, beta) - pulls + (total - 2) * O.digamma(total)

    def _log_prob(self, value: Any, alpha: Any, beta: Any) -> Any:
        return (alpha - 1) * O.log(value) + (beta - 1) * O.log1p(-value) - self._log_beta_(alpha, beta)

    def _kl_loss(self, p: Any, q: Any) -> Any:
        gap = self._log_beta_(*q) - self._log_beta_(*p)
        pulls = (p[0] - q[0]) * O.digamma(p[0]) + (p[1] - q[1]) * O.digamma(p[1])
        return gap + pulls + (q[0] + q[1] - p[0] - p[1]) * O.digamma(p[0] + p[1])

    def _sample(self, shape: Any, alpha: Any, beta: Any) -> Any:
        concentrations = (alpha + 0 * beta, beta + 0 * alpha)
        first, second = (self._gamma_(shape, concentration, O.ones_like(concentration)) for concentration in concentrations)
        return first / (first + second)
