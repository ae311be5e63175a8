"""Distributions and bijectors with MindSpore's methods. The formulas are those of torch.distributions where it has them."""
from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class Distribution:
    """A distribution of torch with the parameters `names`; a call may pass others. `kind` is its class in torch."""

    names: tuple[str, ...] = ()
    kind: Any = None

    def __init__(self, *values: Any, **named: Any) -> None:
        self.parameters = {name: None if value is None else as_float(value) for name, value in [*zip(self.names, values), *named.items()]}

    def with_parameters(self, values: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return torch's distribution with the parameters of one call, else those of the constructor."""
        parameters = {**self.parameters, **{name: as_float(value) for name, value in [*zip(self.names, values), *named.items()]}}
        return self.kind(*torch.broadcast_tensors(*(parameters[name] for name in self.names)), validate_args=False)

    def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, name)(*args, **kwargs)

    def log_prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the density, or of the probability."""
        return self.with_parameters(args, kwargs).log_prob(value)

    def prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The density, or the probability."""
        return torch.exp(self.log_prob(value, *args, **kwargs))

    def cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of at most `value`."""
        return self.with_parameters(args, kwargs).cdf(value)

    def log_cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the probability of at most `value`."""
        return torch.log(self.cdf(value, *args, **kwargs))

    def survival_function(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of more than `value`."""
        return 1.0 - self.cdf(value, *args, **kwargs)

    def log_survival(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the probability of more than `value`."""
        return torch.log(self.survival_function(value, *args, **kwargs))

    def mean(self, *args: Any, **kwargs: Any) -> Tensor:
        """The mean."""
        return self.with_parameters(args, kwargs).mean

    def mode(self, *args: Any, **kwargs: Any) -> Tensor:
        """The most probable value."""
        return self.with_parameters(args, kwargs).mode

    def var(self, *args: Any, **kwargs: Any) -> Tensor:
        """The variance."""
        return self.with_parameters(args, kwargs).variance

    def sd(self, *args: Any, **kwargs: Any) -> Tensor:
        """The standard deviation."""
        return torch.sqrt(self.var(*args, **kwargs))

    def entropy(self, *args: Any, **kwargs: Any) -> Tensor:
        """The entropy, in nats."""
        return self.with_parameters(args, kwargs).entropy()

    def kl_loss(self, dist: str, *args: Any) -> Tensor:
        """The divergence from this distribution to another of its kind, whose parameters come first."""
        count = len(self.names)
        return torch.distributions.kl_divergence(self.with_parameters(args[count:], {}), self.with_parameters(args[:count], {}))

    def cross_entropy(self, dist: str, *args: Any) -> Tensor:
        """The entropy of this distribution plus the divergence."""
        return self.entropy(*args[len(self.names):]) + self.kl_loss(dist, *args)

    def sample(self, shape: Any = (), *args: Any, **kwargs: Any) -> Tensor:
        """Draw numbers; the gradient flows to the parameters where torch has it."""
        distribution = self.with_parameters(args, kwargs)
        return distribution.rsample(shape) if distribution.has_rsample else distribution.sample(shape)


def as_float(value: Any) -> Tensor:
    """Return a parameter as a tensor of floats."""
    return value if isinstance(value, Tensor) and value.is_floating_point() else torch.as_tensor(value, dtype=torch.float32)


class Normal(Distribution):
    """The normal distribution."""

    names = ("mean", "sd")
    kind = torch.distributions.Normal


class Laplace(Distribution):
    """The two-sided exponential distribution."""

    names = ("mean", "sd")
    kind = torch.distributions.Laplace


class StudentT(Distribution):
    """Student's t."""

    names = ("df", "mean", "sd")
    kind = torch.distributions.StudentT


class Cauchy(Distribution):
    """The Cauchy distribution."""

    names = ("loc", "scale")
    kind = torch.distributions.Cauchy


class Gumbel(Distribution):
    """The distribution of the maximum of many values."""

    names = ("loc", "scale")
    kind = torch.distributions.Gumbel


class LogNormal(Distribution):
    """The distribution whose logarithm is normal."""

    names = ("loc", "scale")
    kind = torch.distributions.LogNormal


class Uniform(Distribution):
    """A constant density from `low` to `high`."""

    names = ("low", "high")
    kind = torch.distributions.Uniform


class Exponential(Distribution):
    """Waiting times with `rate` events per unit of time."""

    names = ("rate",)
    kind = torch.distributions.Exponential


class Gamma(Distribution):
    """The gamma distribution."""

    names = ("concentration", "rate")
    kind = torch.distributions.Gamma

    def mode(self, *args: Any, **kwargs: Any) -> Tensor:
        """The most probable value; nan for a concentration of at most 1."""
        gamma = self.with_parameters(args, kwargs)
        mode = (gamma.concentration - 1) / gamma.rate
        return torch.where(gamma.concentration > 1, mode, torch.full_like(mode, math.nan))


class Beta(Distribution):
    """The beta distribution of fractions."""

    names = ("concentration1", "concentration0")
    kind = torch.distributions.Beta


class Poisson(Distribution):
    """The number of events, with the mean `rate`."""

    names = ("rate",)
    kind = torch.distributions.Poisson

    def cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of at most `value` events."""
        share = torch.special.gammaincc(torch.clamp(torch.floor(value) + 1, 1e-6), self.with_parameters(args, kwargs).rate)
        return torch.where(value < 0, torch.zeros_like(share), share)


class Bernoulli(Distribution):
    """1 with the probability `probs`, else 0."""

    names = ("probs",)
    kind = torch.distributions.Bernoulli

    def log_prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the probability."""
        probs = self.with_parameters(args, kwargs).probs
        return value * torch.log(probs) + (1 - value) * torch.log(1 - probs)

    def cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of at most `value`."""
        none = 1 - self.with_parameters(args, kwargs).probs + 0 * value
        return torch.where(value < 0, torch.zeros_like(none), torch.where(value < 1, none, torch.ones_like(none)))

    def mode(self, *args: Any, **kwargs: Any) -> Tensor:
        """The more probable value, as int32."""
        return (self.with_parameters(args, kwargs).probs > 0.5).int()


class Geometric(Distribution):
    """The number of failures before the first success."""

    names = ("probs",)
    kind = torch.distributions.Geometric

    def cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of at most `value` failures."""
        share = 1 - torch.pow(1 - self.with_parameters(args, kwargs).probs, torch.floor(value) + 1)
        return torch.where(value < 0, torch.zeros_like(share), share)

    def mode(self, *args: Any, **kwargs: Any) -> Tensor:
        """The most probable value, 0, as int32."""
        return torch.zeros_like(self.with_parameters(args, kwargs).probs, dtype=torch.int32)


class Categorical(Distribution):
    """One of several classes."""

    names = ("probs",)
    kind = torch.distributions.Categorical

    def log_prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the probability of each class."""
        return self.with_parameters(args, kwargs).log_prob(torch.floor(value))


class Logistic(Distribution):
    """The logistic distribution, which torch lacks."""

    names = ("loc", "scale")
    kind = torch.distributions.Normal               # holds the parameters

    def standardized(self, value: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return (value - loc) / scale, and the scale."""
        both = self.with_parameters(args, kwargs)
        return (value - both.loc) / both.scale, both.scale

    def log_prob(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The logarithm of the density."""
        z, scale = self.standardized(value, args, kwargs)
        return -z + 2 * F.logsigmoid(z) - torch.log(scale)

    def cdf(self, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The probability of at most `value`."""
        return torch.sigmoid(self.standardized(value, args, kwargs)[0])

    def var(self, *args: Any, **kwargs: Any) -> Tensor:
        """The variance."""
        return self.with_parameters(args, kwargs).variance * (math.pi**2 / 3)

    def entropy(self, *args: Any, **kwargs: Any) -> Tensor:
        """The entropy, in nats."""
        return torch.log(self.with_parameters(args, kwargs).scale) + 2.0

    def kl_loss(self, dist: str, *args: Any) -> Tensor:
        """MindSpore has no divergence of logistic distributions."""
        raise NotImplementedError("kl_loss of Logistic")

    def sample(self, shape: Any = (), *args: Any, **kwargs: Any) -> Tensor:
        """Draw numbers."""
        both = self.with_parameters(args, kwargs)
        share = torch.rand(tuple(shape) + both.loc.shape, device=both.loc.device).clamp(1e-7, 1 - 1e-7)
        return both.loc + both.scale * torch.logit(share)


class Bijector:
    """A function with its inverse and the logarithms of both derivatives."""

    def __call__(self, name: str, *args: Any) -> Any:
        return getattr(self, name)(*args)


class PowerTransform(Bijector):
    """(1 + power * x)^(1 / power); for a power of 0, exp(x)."""

    def __init__(self, power: Any = 0.0) -> None:
        self.power = as_float(power)

    def either(self, none: Tensor, some: Any) -> Tensor:
        """Return `none` where the power is 0, else `some` of a power that is never 0."""
        is_zero = self.power == 0
        return torch.where(is_zero, none, some(torch.where(is_zero, torch.ones_like(self.power), self.power)))

    def forward(self, x: Tensor) -> Tensor:
        """The function."""
        return self.either(torch.exp(x), lambda power: torch.exp(torch.log1p(x * power) / power))

    def inverse(self, y: Tensor) -> Tensor:
        """The inverse function."""
        return self.either(torch.log(y), lambda power: torch.expm1(torch.log(y) * power) / power)

    def forward_log_jacobian(self, x: Tensor) -> Tensor:
        """The logarithm of the derivative."""
        return self.either(x, lambda power: (1 / power - 1) * torch.log1p(x * power))

    def inverse_log_jacobian(self, y: Tensor) -> Tensor:
        """The logarithm of the inverse function's derivative."""
        return (self.power - 1) * torch.log(y)


class ScalarAffine(Bijector):
    """scale * x + shift."""

    def __init__(self, scale: Any = 1.0, shift: Any = 0.0) -> None:
        self.scale, self.shift = as_float(scale), as_float(shift)

    def forward(self, x: Tensor) -> Tensor:
        """The function."""
        return self.scale * x + self.shift

    def inverse(self, y: Tensor) -> Tensor:
        """The inverse function."""
        return (y - self.shift) / self.scale

    def forward_log_jacobian(self, x: Tensor) -> Tensor:
        """The logarithm of the derivative."""
        return torch.log(torch.abs(self.scale)).to(x.dtype)

    def inverse_log_jacobian(self, y: Tensor) -> Tensor:
        """The logarithm of the inverse function's derivative."""
        return -self.forward_log_jacobian(y)


class SoftplusBijector(Bijector):
    """log(1 + exp(sharpness * x)) / sharpness."""

    def __init__(self, sharpness: Any = 1.0) -> None:
        self.sharpness = as_float(sharpness)

    def forward(self, x: Tensor) -> Tensor:
        """The function."""
        return -F.logsigmoid(-self.sharpness * x) / self.sharpness

    def inverse(self, y: Tensor) -> Tensor:
        """The inverse function."""
        return y + torch.log(-torch.expm1(-self.sharpness * y)) / self.sharpness

    def forward_log_jacobian(self, x: Tensor) -> Tensor:
        """The logarithm of the derivative."""
        return F.logsigmoid(self.sharpness * x)

    def inverse_log_jacobian(self, y: Tensor) -> Tensor:
        """The logarithm of the inverse function's derivative."""
        return -torch.log(-torch.expm1(-self.sharpness * y))


class GumbelCDF(Bijector):
    """exp(-exp(-(x - loc) / scale))."""

    def __init__(self, loc: Any = 0.0, scale: Any = 1.0) -> None:
        self.loc, self.scale = as_float(loc), as_float(scale)

    def forward(self, x: Tensor) -> Tensor:
        """The function."""
        return torch.exp(-torch.exp(-(x - self.loc) / self.scale))

    def inverse(self, y: Tensor) -> Tensor:
        """The inverse function."""
        return self.loc - self.scale * torch.log(-torch.log(y))

    def forward_log_jacobian(self, x: Tensor) -> Tensor:
        """The logarithm of the derivative."""
        z = (x - self.loc) / self.scale
        return -z - torch.exp(-z) - torch.log(self.scale)

    def inverse_log_jacobian(self, y: Tensor) -> Tensor:
        """The logarithm of the inverse function's derivative."""
        return torch.log(self.scale / (-torch.log(y) * y))
