"""Distributions and bijectors of `nn.probability`."""
from __future__ import annotations

TABLE = """
nn.probability.distribution.Normal(mean=None, sd=None, seed=None, dtype=None, name=None) ~seed dtype name = @Normal(<, mean={mean}><, sd={sd}>)
nn.probability.distribution.Laplace(mean=None, sd=None, seed=None, dtype=None, name=None) ~seed dtype name = @Laplace(<, mean={mean}><, sd={sd}>)
nn.probability.distribution.StudentT(df=None, mean=None, sd=None, seed=None, dtype=None, name=None) ~seed dtype name = @StudentT(<, df={df}><, mean={mean}><, sd={sd}>)
nn.probability.distribution.Cauchy(loc=None, scale=None, seed=None, dtype=None, name=None) ~seed dtype name = @Cauchy(<, loc={loc}><, scale={scale}>)
nn.probability.distribution.Gumbel(loc=None, scale=None, seed=None, dtype=None, name=None) ~seed dtype name = @Gumbel(<, loc={loc}><, scale={scale}>)
nn.probability.distribution.LogNormal(loc=None, scale=None, seed=None, dtype=None, name=None) ~seed dtype name = @LogNormal(<, loc={loc}><, scale={scale}>)
nn.probability.distribution.Uniform(low=None, high=None, seed=None, dtype=None, name=None) ~seed dtype name = @Uniform(<, low={low}><, high={high}>)
nn.probability.distribution.Exponential(rate=None, seed=None, dtype=None, name=None) ~seed dtype name = @Exponential(<, rate={rate}>)
nn.probability.distribution.Gamma(concentration=None, rate=None, seed=None, dtype=None, name=None) ~seed dtype name = @Gamma(<, concentration={concentration}><, rate={rate}>)
nn.probability.distribution.Beta(concentration1=None, concentration0=None, seed=None, dtype=None, name=None) ~seed dtype name = @Beta(<, concentration1={concentration1}><, concentration0={concentration0}>)
nn.probability.distribution.Poisson(rate=None, seed=None, dtype=None, name=None) ~seed dtype name = @Poisson(<, rate={rate}>)
nn.probability.distribution.Bernoulli(probs=None, seed=None, dtype=None, name=None) ~seed dtype name = @Bernoulli(<, probs={probs}>)
nn.probability.distribution.Geometric(probs=None, seed=None, dtype=None, name=None) ~seed dtype name = @Geometric(<, probs={probs}>)
nn.probability.distribution.Categorical(probs=None, seed=None, dtype=None, name=None) ~seed dtype name = @Categorical(<, probs={probs}>)
nn.probability.distribution.Logistic(loc=None, scale=None, seed=None, dtype=None, name=None) ~seed dtype name = @Logistic(<, loc={loc}><, scale={scale}>)
nn.probability.bijector.PowerTransform(power=0.0, name=None) ~name = @PowerTransform(<, power={power}>)
nn.probability.bijector.Exp(name=None) ~name = @PowerTransform()
nn.probability.bijector.ScalarAffine(scale=1.0, shift=0.0, name=None) ~name = @ScalarAffine(<, scale={scale}><, shift={shift}>)
nn.probability.bijector.Softplus(sharpness=1.0, name=None) ~name = @SoftplusBijector(<, sharpness={sharpness}>)
nn.probability.bijector.GumbelCDF(loc=0.0, scale=1.0, name=None) ~name = @GumbelCDF(<, loc={loc}><, scale={scale}>)
"""
