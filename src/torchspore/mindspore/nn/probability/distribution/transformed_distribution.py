"""A distribution transformed by a bijector."""
from __future__ import annotations

from typing import Any

from torchspore.base.text import message
from torchspore.mindspore.nn.probability.bijector import Bijector
from torchspore.mindspore.nn.probability.distribution.distribution import Distribution


class TransformedDistribution(Distribution):
    """The distribution of bijector.forward(x) for x of `distribution`; its functions take the parameters of `distribution`."""

    _counts_ = True

    def __init__(self, bijector: Any, distribution: Any, seed: int | None = None, name: str = "transformed_distribution") -> None:
        if not isinstance(bijector, Bijector) or not isinstance(distribution, Distribution):
            raise TypeError(message(f"{name}({type(bijector).__name__}, {type(distribution).__name__})", "a Bijector and a Distribution"))
        super().__init__(seed, distribution.dtype, name, {})
        self.bijector, self.distribution = bijector, distribution
        self.is_linear_transformation = bijector.is_constant_jacobian
        self._arguments_, self.parameters = distribution._arguments_, distribution.parameters
        self.batch_shape = self.broadcast_shape = distribution.batch_shape
        self.is_scalar_batch = distribution.is_scalar_batch

    def _log_prob(self, value: Any, *parameters: Any) -> Any:
        return self.distribution.log_prob(self.bijector.inverse(value), *parameters) + self.bijector.inverse_log_jacobian(value)

    def _cdf(self, value: Any, *parameters: Any) -> Any:
        return self.distribution.cdf(self.bijector.inverse(value), *parameters)

    def _mean(self, *parameters: Any) -> Any:
        if not self.is_linear_transformation:
            raise ValueError(message(f"{self.name}.mean", "a bijector whose jacobian is constant"))
        return self.bijector.forward(self.distribution.mean(*parameters))

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        """Draw numbers of the distribution and transform them."""
        return self.bijector.forward(self.distribution.sample(*args, **kwargs))
