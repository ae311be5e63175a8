"""mindspore.nn.probability: densities, figures, divergences of distributions; bijectors."""
from __future__ import annotations

import mindspore as ms
import mindspore.nn.probability.bijector as msb
import mindspore.nn.probability.distribution as msd
import numpy as np
from parity.case import case, raised

VALUES = np.array([0.3, 0.6, 0.9], np.float32)
COUNTS = np.array([0.0, 1.0, 1.0], np.float32)
NUMBERS = np.array([0.0, 1.0, 3.0], np.float32)
DISTRIBUTIONS = {
    "Normal": ([0.5, [1.0, 2.0, 0.5]], [0.2, 1.5], VALUES),
    "Uniform": ([0.0, [1.0, 2.0, 0.5]], [-0.5, 3.0], VALUES),
    "Bernoulli": ([[0.3, 0.6, 0.5]], [0.4], COUNTS),
    "Exponential": ([[0.5, 1.0, 2.0]], [0.7], VALUES),
    "Geometric": ([[0.3, 0.6, 0.5]], [0.4], NUMBERS),
    "Gamma": ([[2.0, 3.0, 0.5], [1.0, 2.0, 1.5]], [1.5, 0.5], VALUES),
    "Beta": ([[2.0, 3.0, 1.5], [1.5, 2.0, 2.5]], [1.5, 2.5], VALUES),
    "Categorical": ([[0.2, 0.5, 0.3]], [[0.3, 0.3, 0.4]], np.array([0, 2, 1], np.int32)),
    "Cauchy": ([0.5, [1.0, 2.0, 0.5]], [0.2, 1.5], VALUES),
    "Logistic": ([0.5, [1.0, 2.0, 0.5]], [0.2, 1.5], VALUES),
    "Gumbel": ([0.5, [1.0, 2.0, 0.5]], [0.2, 1.5], VALUES),
    "LogNormal": ([0.5, [1.0, 2.0, 0.5]], [0.2, 1.5], VALUES),
    "Poisson": ([[0.5, 1.0, 2.0]], [0.7], NUMBERS),
    "HalfNormal": ([0.0, [1.0, 2.0, 0.5]], [0.2, 1.5], VALUES),
    "Laplace": ([0.5, [1.0, 2.0, 0.5]], [0.2, 1.5], VALUES),
    "StudentT": ([3.0, 0.5, [1.0, 2.0, 0.5]], [2.0, 0.2, 1.5], VALUES),
}
OF_VALUES = "prob log_prob cdf log_cdf survival_function log_survival".split()
PLAIN = "mean mode var sd entropy".split()
OF_TWO = "kl_loss cross_entropy".split()
ELSEWHERE = frozenset(
    (
        "Beta-cdf Beta-log_cdf Beta-survival_function Beta-log_survival HalfNormal-cdf HalfNormal-log_cdf HalfNormal-survival_function "
        "HalfNormal-log_survival Laplace-cdf Laplace-log_cdf Laplace-survival_function Laplace-log_survival StudentT-cdf StudentT-log_cdf "
        "StudentT-survival_function StudentT-log_survival Uniform-mode Bernoulli-mode Cauchy-mean Cauchy-var Cauchy-sd Poisson-entropy "
        "HalfNormal-mean HalfNormal-mode HalfNormal-var HalfNormal-sd HalfNormal-entropy Laplace-mean Laplace-mode Laplace-var Laplace-sd "
        "Laplace-entropy StudentT-mean StudentT-mode StudentT-var StudentT-sd StudentT-entropy Logistic-kl_loss Logistic-cross_entropy "
        "Poisson-kl_loss Poisson-cross_entropy HalfNormal-kl_loss HalfNormal-cross_entropy Laplace-kl_loss Laplace-cross_entropy "
        "StudentT-kl_loss StudentT-cross_entropy"
    ).split(),
)
"""What a distribution has not; and the mode of Bernoulli, which MindSpore 2.10 refuses to compute."""


def pairs(figures):
    return {f"{name}-{figure}": (name, figure) for name in DISTRIBUTIONS for figure in figures if f"{name}-{figure}" not in ELSEWHERE}


def build(name):
    return getattr(msd, name)(*DISTRIBUTIONS[name][0])


@case(over=pairs(OF_VALUES), rtol=1e-4, atol=1e-5)
def at(item):
    name, figure = item
    return {"output": getattr(build(name), figure)(ms.Tensor(DISTRIBUTIONS[name][2])).asnumpy()}


@case(over=pairs(PLAIN), rtol=1e-4, atol=1e-5)
def figure(item):
    name, figure = item
    return {"output": getattr(build(name), figure)().asnumpy()}


@case(over=pairs(OF_TWO), rtol=1e-4, atol=1e-5)
def between(item):
    name, figure = item
    others = [ms.Tensor(np.array(value, np.float32)) for value in DISTRIBUTIONS[name][1]]
    return {"output": getattr(build(name), figure)(name, *others).asnumpy()}


TESTED_NAMES = [name for name in DISTRIBUTIONS if f"{name}-log_prob" not in ELSEWHERE]


@case(over=TESTED_NAMES, rtol=1e-4, atol=1e-5)
def given_at_the_call(name):
    parameters = [ms.Tensor(np.array(value, np.float32)) for value in DISTRIBUTIONS[name][0]]
    distribution = getattr(msd, name)(*parameters) if name == "Gumbel" else getattr(msd, name)()
    return {"output": distribution.log_prob(ms.Tensor(DISTRIBUTIONS[name][2]), *(() if name == "Gumbel" else parameters)).asnumpy()}


@case(over=sorted(ELSEWHERE - {"Bernoulli-mode"}))
def has_not(label):
    name, figure = label.split("-")
    value = [ms.Tensor(DISTRIBUTIONS[name][2])] if figure in OF_VALUES else []
    others = [name, *(ms.Tensor(np.array(value, np.float32)) for value in DISTRIBUTIONS[name][1])] if figure in OF_TWO else []
    return {"raised": raised(lambda: getattr(build(name), figure)(*value, *others))}


BIJECTORS = {
    "Exp": lambda: msb.Exp(), "PowerTransform": lambda: msb.PowerTransform(2.0), "Softplus": lambda: msb.Softplus(1.5),
    "ScalarAffine": lambda: msb.ScalarAffine(2.0, 1.0), "GumbelCDF": lambda: msb.GumbelCDF(0.5, 2.0),
    "Invert": lambda: msb.Invert(msb.ScalarAffine(2.0, 1.0)),
}
WAYS = "forward inverse forward_log_jacobian inverse_log_jacobian".split()


@case(over={f"{name}-{way}": (name, way) for name in BIJECTORS for way in WAYS}, rtol=1e-4, atol=1e-5)
def bijector(item):
    name, way = item
    return {"output": getattr(BIJECTORS[name](), way)(ms.Tensor(VALUES)).asnumpy()}


@case(over="prob log_prob cdf".split(), rtol=1e-4, atol=1e-5)
def transformed(way):
    distribution = msd.TransformedDistribution(msb.Exp(), msd.Normal(0.0, 1.0))
    return {"output": getattr(distribution, way)(ms.Tensor(VALUES)).asnumpy()}


REFUSED = {
    "normal_width": lambda: msd.Normal(0.0, -1.0),
    "bernoulli_share": lambda: msd.Bernoulli(1.5),
    "categorical_sum": lambda: msd.Categorical([0.5, 0.2]),
    "uniform_order": lambda: msd.Uniform(2.0, 1.0),
    "normal_nothing": lambda: msd.Normal().mean(),
    "kl_other": lambda: msd.Normal(0.0, 1.0).kl_loss("Uniform", ms.Tensor(0.0), ms.Tensor(1.0)),
    "kl_number": lambda: msd.Normal(0.0, 1.0).kl_loss(3, ms.Tensor(0.0), ms.Tensor(1.0)),
    "normal_text": lambda: msd.Normal("a", 1.0),
    "power_below": lambda: msb.PowerTransform(-1.0),
    "invert_number": lambda: msb.Invert(3),
}


@case(over=REFUSED)
def refused(call):
    return {"raised": raised(call)}
