"""`mindspore.nn.probability.distribution`: distributions with their densities, moments and random numbers."""
from torchspore.mindspore.nn.probability.distribution.discrete import Bernoulli, Categorical, Geometric, Poisson
from torchspore.mindspore.nn.probability.distribution.distribution import Distribution
from torchspore.mindspore.nn.probability.distribution.location_scale import (
    Cauchy,
    Gumbel,
    HalfNormal,
    Laplace,
    Logistic,
    LogNormal,
    Normal,
    StudentT,
)
from torchspore.mindspore.nn.probability.distribution.positive import Beta, Exponential, Gamma, Uniform
from torchspore.mindspore.nn.probability.distribution.transformed_distribution import TransformedDistribution

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Cauchy", "Distribution", "Exponential", "Gamma", "Geometric", "Gumbel", "HalfNormal", "Laplace",
    "LogNormal", "Logistic", "Normal", "Poisson", "StudentT", "TransformedDistribution", "Uniform",
]
