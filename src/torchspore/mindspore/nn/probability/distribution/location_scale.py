"""Distributions with location and scale: Normal and its relatives, Cauchy, Gumbel, Laplace, Logistic, Student's t."""
from __future__ import annotations

import math
from typing import Any

from torchspore.engine.tensors.dtypes import float32
from torchspore.mindspore import ops
from torchspore.mindspore.nn.probability.distribution.distribution import EULER, HALF_LOG_TWO_PI, Distribution, above_zero

O: Any = ops


class _MeanAndSpread(Distribution):
    """Distributions with the parameters mean and sd."""

    _arguments_ = ("mean", "sd")

    def __init__(self, mean: Any = None, sd: Any = None, seed: int | None = None, dtype: Any = float32, name: str = "") -> None:
        super().__init__(seed, dtype, name or type(self).__name__, {"mean": mean, "sd": sd})

    def _check_(self, key: str, value: Any) -> None:
        if key == "sd":
            above_zero(self.name, key, value)


class Normal(_MeanAndSpread):
    """The normal distribution."""

    def _mean(self, mean: Any, sd: Any) -> Any:
        return mean + 0 * sd

    _mode = _mean

    def _sd(self, mean: Any, sd: Any) -> Any:
        return sd + 0 * mean

    def _log_prob(self, value: Any, mean: Any, sd: Any) -> Any:
        return -O.square((value - mean) / sd) / 2 - HALF_LOG_TWO_PI - O.log(sd)

    def _cdf(self, value: Any, mean: Any, sd: Any) -> Any:
        return 0.5 * (1 + O.erf((value - mean) / (sd * math.sqrt(2))))

    def _entropy(self, mean: Any, sd: Any) -> Any:
        return HALF_LOG_TWO_PI + 0.5 + O.log(sd) + 0 * mean

    def _kl_loss(self, p: Any, q: Any) -> Any:
        ratio = O.log(p[1]) - O.log(q[1])
        return O.square((p[0] - q[0]) / q[1]) / 2 + O.expm1(2 * ratio) / 2 - ratio

    def _sample(self, shape: Any, mean: Any, sd: Any) -> Any:
        return mean + sd * self._normal_(shape)


class HalfNormal(_MeanAndSpread):
    """The right half of a normal distribution, with twice the density."""

    def _prob(self, value: Any, mean: Any, sd: Any) -> Any:
        density = O.exp(-O.square((value - mean) / sd) / 2) * (math.sqrt(2 / math.pi) / sd)
        return O.where(value < mean, O.zeros_like(density), density)


class Laplace(_MeanAndSpread):
    """The two-sided exponential distribution."""

    def _log_prob(self, value: Any, mean: Any, sd: Any) -> Any:
        return -O.abs(value - mean) / sd - O.log(2 * sd)


class StudentT(Distribution):
    """Student's t with `df` degrees of freedom, shifted and scaled."""

    _arguments_ = ("df", "mean", "sd")

    def __init__(
        self, df: Any = None, mean: Any = None, sd: Any = None, seed: int | None = None, dtype: Any = float32, name: str = "StudentT",
    ) -> None:
        super().__init__(seed, dtype, name, {"df": df, "mean": mean, "sd": sd})

    def _check_(self, key: str, value: Any) -> None:
        if key != "mean":
            above_zero(self.name, key, value)

    def _log_prob(self, value: Any, df: Any, mean: Any, sd: Any) -> Any:
        z = (value - mean) / sd
        scale = O.log(sd) + O.log(df * math.pi) / 2 + O.lgamma(df / 2) - O.lgamma((df + 1) / 2)
        return -(df + 1) / 2 * O.log1p(O.square(z) / df) - scale


class _LocationScale(Distribution):
    """Distributions with the parameters loc and scale."""

    _arguments_ = ("loc", "scale")

    def __init__(self, loc: Any = None, scale: Any = None, seed: int | None = None, dtype: Any = float32, name: str = "") -> None:
        super().__init__(seed, dtype, name or type(self).__name__, {"loc": loc, "scale": scale})

    def _check_(self, key: str, value: Any) -> None:
        if key == "scale":
            above_zero(self.name, key, value)

    @property
    def loc(self) -> Any:
        """The location."""
        return self.parameters["loc"]

    @property
    def scale(self) -> Any:
        """The scale."""
        return self.parameters["scale"]

    def _share_(self, shape: Any) -> Any:
        """Draw uniform numbers in (0, 1), without the ends."""
        return O.clamp(self._uniform_(shape), 1e-7, 1 - 1e-7)


class Cauchy(_LocationScale):
    """The Cauchy distribution, which has no mean and no variance."""

    def _mode(self, loc: Any, scale: Any) -> Any:
        return loc + 0 * scale

    def _mean(self, loc: Any, scale: Any) -> Any:
        raise ValueError(f"Cauchy(loc of shape {loc.shape}, scale of shape {scale.shape}): it has no mean and no variance.")

    _var = _sd = _mean

    def _entropy(self, loc: Any, scale: Any) -> Any:
        return math.log(4 * math.pi) + O.log(scale) + 0 * loc

    def _log_prob(self, value: Any, loc: Any, scale: Any) -> Any:
        return -math.log(math.pi) - O.log(scale) - O.log1p(O.square((value - loc) / scale))

    def _cdf(self, value: Any, loc: Any, scale: Any) -> Any:
        return O.atan((value - loc) / scale) / math.pi + 0.5

    def _kl_loss(self, p: Any, q: Any) -> Any:
        squared_distance = O.square(p[1] + q[1]) + O.square(p[0] - q[0])
        return O.log(squared_distance) - O.log(4 * p[1] * q[1])

    def _sample(self, shape: Any, loc: Any, scale: Any) -> Any:
        return loc + scale * O.tan(math.pi * (self._share_(shape) - 0.5))


class Logistic(_LocationScale):
    """The logistic distribution."""

    def _mean(self, loc: Any, scale: Any) -> Any:
        return loc + 0 * scale

    _mode = _mean

    def _sd(self, loc: Any, scale: Any) -> Any:
        return scale * (math.pi / math.sqrt(3)) + 0 * loc

    def _entropy(self, loc: Any, scale: Any) -> Any:
        return O.log(scale) + 2.0 + 0 * loc

    def _log_prob(self, value: Any, loc: Any, scale: Any) -> Any:
        z = (value - loc) / scale
        return -z + 2 * O.logsigmoid(z) - O.log(scale)

    def _cdf(self, value: Any, loc: Any, scale: Any) -> Any:
        return O.sigmoid((value - loc) / scale)

    def _sample(self, shape: Any, loc: Any, scale: Any) -> Any:
        share = self._share_(shape)
        return loc + scale * (O.log(share) - O.log1p(-share))


class Gumbel(_LocationScale):
    """The distribution of the maximum of many values."""

    def __init__(self, loc: Any, scale: Any, seed: int | None = 0, dtype: Any = float32, name: str = "Gumbel") -> None:
        super().__init__(loc, scale, seed, dtype, name)

    def _mean(self, loc: Any, scale: Any) -> Any:
        return loc + scale * EULER

    def _mode(self, loc: Any, scale: Any) -> Any:
        return loc + 0 * scale

    def _sd(self, loc: Any, scale: Any) -> Any:
        return scale * (math.pi / math.sqrt(6)) + 0 * loc

    def _entropy(self, loc: Any, scale: Any) -> Any:
        return 1.0 + O.log(scale) + EULER + 0 * loc

    def _log_prob(self, value: Any, loc: Any, scale: Any) -> Any:
        z = (value - loc) / scale
        return -(z + O.exp(-z)) - O.log(scale)

    def _cdf(self, value: Any, loc: Any, scale: Any) -> Any:
        return O.exp(-O.exp(-(value - loc) / scale))

    def _kl_loss(self, p: Any, q: Any) -> Any:
        ratio, way = p[1] / q[1], (p[0] - q[0]) / q[1]
        return O.log(q[1]) - O.log(p[1]) + EULER * (ratio - 1) + O.expm1(O.lgamma(ratio + 1) - way) + way

    def _sample(self, shape: Any, loc: Any, scale: Any) -> Any:
        return loc - scale * O.log(-O.log(self._share_(shape)))


class LogNormal(_LocationScale):
    """The distribution whose logarithm is normal with mean `loc` and standard deviation `scale`."""

    def __init__(self, loc: Any = None, scale: Any = None, seed: int | None = 0, dtype: Any = float32, name: str = "LogNormal") -> None:
        super().__init__(loc, scale, seed, dtype, name)

    def _mean(self, loc: Any, scale: Any) -> Any:
        return O.exp(loc + O.square(scale) / 2)

    def _mode(self, loc: Any, scale: Any) -> Any:
        return O.exp(loc - O.square(scale))

    def _var(self, loc: Any, scale: Any) -> Any:
        return O.expm1(O.square(scale)) * O.exp(2 * loc + O.square(scale))

    def _entropy(self, loc: Any, scale: Any) -> Any:
        return loc + 0.5 + O.log(scale) + HALF_LOG_TWO_PI

    def _log_prob(self, value: Any, loc: Any, scale: Any) -> Any:
        log_value = O.log(value)
        return -O.square((log_value - loc) / scale) / 2 - HALF_LOG_TWO_PI - O.log(scale) - log_value

    def _cdf(self, value: Any, loc: Any, scale: Any) -> Any:
        return 0.5 * (1 + O.erf((O.log(value) - loc) / (scale * math.sqrt(2))))

    _kl_loss = Normal._kl_loss

    def _sample(self, shape: Any, loc: Any, scale: Any) -> Any:
        return O.exp(loc + scale * self._normal_(shape))
