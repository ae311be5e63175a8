"""Distributions of integers: Bernoulli, Categorical, Geometric, Poisson."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.engine.tensors.dtypes import float32, int32
from torchspore.mindspore import ops
from torchspore.mindspore.nn.probability.distribution.distribution import Distribution, above_zero, between

O: Any = ops


class _Probabilities(Distribution):
    """Distributions with the parameter probs."""

    _arguments_ = ("probs",)
    _counts_ = True

    def __init__(self, probs: Any = None, seed: int | None = None, dtype: Any = int32, name: str = "") -> None:
        super().__init__(seed, dtype, name or type(self).__name__, {"probs": probs})
        self.probs = self.parameters["probs"]

    def _check_(self, key: str, value: Any) -> None:
        between(self.name, key, value)


class Bernoulli(_Probabilities):
    """1 with the probability `probs`, else 0."""

    def _mean(self, probs: Any) -> Any:
        return probs

    def _mode(self, probs: Any) -> Any:
        return O.cast(probs > 0.5, self.dtype)

    def _var(self, probs: Any) -> Any:
        return probs * (1 - probs)

    def _entropy(self, probs: Any) -> Any:
        return -(probs * O.log(probs) + (1 - probs) * O.log(1 - probs))

    def _log_prob(self, value: Any, probs: Any) -> Any:
        return value * O.log(probs) + (1 - value) * O.log(1 - probs)

    def _cdf(self, value: Any, probs: Any) -> Any:
        none = 1 - probs + 0 * value
        return O.where(value < 0, O.zeros_like(none), O.where(value < 1, none, O.ones_like(none)))

    def _kl_loss(self, p: Any, q: Any) -> Any:
        p, q = p[0], q[0]
        return p * (O.log(p) - O.log(q)) + (1 - p) * (O.log(1 - p) - O.log(1 - q))

    def _sample(self, shape: Any, probs: Any) -> Any:
        return self._uniform_(shape) < probs


class Geometric(_Probabilities):
    """The number of failures before the first success, which has the probability `probs`."""

    def _mean(self, probs: Any) -> Any:
        return 1 / probs - 1

    def _mode(self, probs: Any) -> Any:
        return O.zeros_like(probs, dtype=self.dtype)

    def _var(self, probs: Any) -> Any:
        return (1 - probs) / O.square(probs)

    def _entropy(self, probs: Any) -> Any:
        return (-(1 - probs) * O.log(1 - probs) - probs * O.log(probs)) / probs

    def _prob(self, value: Any, probs: Any) -> Any:
        chance = O.exp(value * O.log(1 - probs) + O.log(probs))
        return O.where(value < 0, O.zeros_like(chance), chance)

    def _cdf(self, value: Any, probs: Any) -> Any:
        share = 1 - O.pow(1 - probs, O.floor(value) + 1)
        return O.where(value < 0, O.zeros_like(share), share)

    def _kl_loss(self, p: Any, q: Any) -> Any:
        p, q = p[0], q[0]
        return O.log(p / q) + (1 - p) / p * (O.log(1 - p) - O.log(1 - q))

    def _sample(self, shape: Any, probs: Any) -> Any:
        return O.floor(O.log(O.clamp(self._uniform_(shape), 1e-7, 1.0)) / O.log(1 - probs))


class Categorical(_Probabilities):
    """One of K classes, with the probabilities `probs` (..., K)."""

    def _check_(self, key: str, value: Any) -> None:
        if value.ndim < 1:
            raise ValueError(f"{self.name}({key}={value.tolist()}): expected a probability for each class.")
        between(self.name, key, value)
        if not np.allclose(value.sum(-1), 1, atol=1e-5):
            raise ValueError(f"{self.name}({key}={value.tolist()}): expected probabilities with the sum 1.")

    @staticmethod
    def _classes_(probs: Any) -> Any:
        return O.arange(probs.shape[-1]).astype(probs.dtype)

    def _mean(self, probs: Any) -> Any:
        return (probs * self._classes_(probs)).sum(-1, keepdims=True)

    def _mode(self, probs: Any) -> Any:
        return O.cast(O.argmax(probs, -1), self.dtype)

    def _var(self, probs: Any) -> Any:
        classes = self._classes_(probs)
        return (probs * O.square(classes)).sum(-1, keepdims=True) - O.square((probs * classes).sum(-1, keepdims=True))

    def _entropy(self, probs: Any) -> Any:
        return -(probs * O.log(probs)).sum(-1)

    def _log_prob(self, value: Any, probs: Any) -> Any:
        chosen = O.expand_dims(O.floor(value), -1) == self._classes_(probs)
        logs = O.log(probs)
        return (O.where(chosen, logs, O.zeros_like(logs))).sum(-1)

    def _cdf(self, value: Any, probs: Any) -> Any:
        counted = self._classes_(probs) <= O.expand_dims(value, -1)
        return O.where(counted, probs, O.zeros_like(probs)).sum(-1)

    def _kl_loss(self, p: Any, q: Any) -> Any:
        return (p[0] * (O.log(p[0]) - O.log(q[0]))).sum(-1)

    def sample(self, shape: Any = (), probs: Any = None) -> Any:
        """Draw classes, in `shape` before the axes of `probs` except its last."""
        (probabilities,) = self._parameters_of_call_((), {} if probs is None else {"probs": probs})
        full_shape = tuple(shape) + tuple(probabilities.shape[:-1])
        share = O.expand_dims(self._uniform_(full_shape or (1,)), -1)
        passed = O.cast(share >= O.cumsum(probabilities, -1)[..., :-1], int32)
        return O.cast(passed.sum(-1).reshape(full_shape), self.dtype)


class Poisson(Distribution):
    """The number of events, with the mean `rate`."""

    _arguments_ = ("rate",)
    _counts_ = True

    def __init__(self, rate: Any = None, seed: int | None = None, dtype: Any = float32, name: str = "Poisson") -> None:
        super().__init__(seed, dtype, name, {"rate": rate})
        self.rate = self.parameters["rate"]

    def _check_(self, key: str, value: Any) -> None:
        above_zero(self.name, key, value)

    def _mean(self, rate: Any) -> Any:
        return rate

    _var = _mean

    def _mode(self, rate: Any) -> Any:
        return O.floor(rate)

    def _log_prob(self, value: Any, rate: Any) -> Any:
        return value * O.log(rate) - O.lgamma(value + 1) - rate

    def _cdf(self, value: Any, rate: Any) -> Any:
        share = O.igammac(O.clamp(O.floor(value) + 1, 1e-6), rate)
        return O.where(value < 0, O.zeros_like(share), share)

    def _sample(self, shape: Any, rate: Any) -> Any:
        return self._poisson_(shape, rate)
