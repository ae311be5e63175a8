"""The compat classes of nn.probability: the functions of MindSpore's distributions and bijectors, with the same values."""
from __future__ import annotations

from typing import Any

import mindspore.nn.probability.bijector as msb
import mindspore.nn.probability.distribution as msd
import numpy as np
import pytest
import torch
from mindspore import Tensor

from torchspore.port.compat import distributions

ABOVE_ZERO = np.array([0.3, 0.7, 1.0], np.float32)
NUMBERS = np.array([-0.5, 0.4, 2.0], np.float32)
COUNTS = np.array([0.0, 1.0, 2.0], np.float32)
DENSITY = "prob log_prob".split()
CUMULATIVE = "cdf log_cdf survival_function log_survival".split()
MOMENTS = "mean var sd mode entropy".split()

DISTRIBUTIONS: list[tuple[str, tuple[Any, ...], tuple[Any, ...], Any, list[str]]] = [
    # class, its parameters, those of another, values, the functions that MindSpore has
    ("Normal", (0.5, [0.7, 1.5, 2.0]), (0.0, 1.0), NUMBERS, [*DENSITY, *CUMULATIVE, *MOMENTS, "kl_loss", "cross_entropy"]),
    ("Laplace", (0.5, 0.7), (), NUMBERS, DENSITY),
    ("StudentT", (3.0, 0.5, 0.7), (), NUMBERS, DENSITY),
    ("Cauchy", (0.5, 0.7), (0.0, 1.0), NUMBERS, [*DENSITY, *CUMULATIVE, "mode", "entropy", "kl_loss", "cross_entropy"]),
    ("Gumbel", (0.5, 0.7), (0.0, 1.0), NUMBERS, [*DENSITY, *CUMULATIVE, *MOMENTS, "kl_loss", "cross_entropy"]),
    ("LogNormal", (0.5, 0.7), (0.0, 1.0), ABOVE_ZERO, [*DENSITY, *CUMULATIVE, *MOMENTS, "kl_loss", "cross_entropy"]),
    ("Logistic", (0.5, 0.7), (), NUMBERS, [*DENSITY, *CUMULATIVE, *MOMENTS]),
    ("Uniform", (-1.0, 2.5), (-2.0, 3.0), NUMBERS, [*DENSITY, "cdf", "mean", "var", "sd", "entropy", "kl_loss", "cross_entropy"]),
    ("Exponential", (1.5,), (0.7,), ABOVE_ZERO, [*DENSITY, *CUMULATIVE, *MOMENTS, "kl_loss", "cross_entropy"]),
    ("Gamma", ([2.0, 0.5, 3.0], 1.5), (1.0, 0.7), ABOVE_ZERO, [*DENSITY, *CUMULATIVE, *MOMENTS, "kl_loss", "cross_entropy"]),
    ("Beta", (2.0, 3.0), (1.5, 0.7), np.array([0.2, 0.5, 0.9], np.float32), [*DENSITY, *MOMENTS, "kl_loss", "cross_entropy"]),
    ("Poisson", (2.5,), (), COUNTS, [*DENSITY, *CUMULATIVE, "mean", "var", "sd", "mode"]),
    ("Bernoulli", (0.3,), (0.6,), COUNTS[:2], [*DENSITY, "cdf", *MOMENTS, "kl_loss", "cross_entropy"]),
    ("Geometric", (0.3,), (0.6,), COUNTS, [*DENSITY, *CUMULATIVE, *MOMENTS, "kl_loss", "cross_entropy"]),
    ("Categorical", ([0.2, 0.3, 0.5],), ([0.5, 0.3, 0.2],), COUNTS, [*DENSITY, "entropy", "kl_loss", "cross_entropy"]),
]


@pytest.mark.parametrize(("name", "parameters", "other", "values", "functions"), DISTRIBUTIONS, ids=[row[0] for row in DISTRIBUTIONS])
def test_a_distribution(name: str, parameters: Any, other: Any, values: Any, functions: list[str]) -> None:
    original, ported = getattr(msd, name)(*parameters), getattr(distributions, name)(*parameters)
    for function in functions:
        own = (values,) if function in DENSITY + CUMULATIVE else ()
        if function in ("kl_loss", "cross_entropy"):
            expected = getattr(original, function)(name, *(Tensor(np.float32(each)) for each in other))
            result = getattr(ported, function)(name, *(torch.tensor(each) for each in other))
        else:
            expected = getattr(original, function)(*map(Tensor, own))
            result = getattr(ported, function)(*map(torch.tensor, own))
        np.testing.assert_allclose(*np.broadcast_arrays(result.numpy(), expected.asnumpy()), rtol=2e-5, atol=1e-6, err_msg=function)
    if name != "Gumbel":                     # MindSpore's needs its parameters in the constructor
        arrays = [np.array(each, np.float32) for each in parameters]
        expected = getattr(msd, name)().prob(Tensor(values), *map(Tensor, arrays))
        result = getattr(distributions, name)()("prob", torch.tensor(values), *map(torch.tensor, arrays))
        np.testing.assert_allclose(result.numpy(), expected.asnumpy(), rtol=2e-5)


@pytest.mark.parametrize(("original", "ported"), [
    (msb.PowerTransform(0.5), distributions.PowerTransform(0.5)), (msb.Exp(), distributions.PowerTransform()),
    (msb.ScalarAffine(2.0, -1.0), distributions.ScalarAffine(2.0, -1.0)), (msb.Softplus(2.0), distributions.SoftplusBijector(2.0)),
    (msb.GumbelCDF(0.5, 2.0), distributions.GumbelCDF(0.5, 2.0)),
])
def test_a_bijector(original: Any, ported: Any) -> None:
    values = np.array([0.2, 0.5, 0.9], np.float32)
    for function in ("forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian"):
        expected = getattr(original, function)(Tensor(values)).asnumpy()
        np.testing.assert_allclose(ported(function, torch.tensor(values)).numpy(), expected, rtol=1e-5, atol=1e-6, err_msg=function)
