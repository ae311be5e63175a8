"""mindspore.nn.probability: draws, names inside Cells, whole numbers of figures against SciPy's formulas done by NumPy."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import mindspore.nn.probability.bijector as msb
import mindspore.nn.probability.distribution as msd
import numpy as np
import pytest

DRAWN = {
    "Normal": (1.0, 2.0), "Uniform": (1.0, 3.0), "Bernoulli": (0.3,), "Exponential": (2.0,), "Geometric": (0.4,), "Gamma": (2.0, 1.5),
    "Beta": (2.0, 3.0), "Categorical": ([0.2, 0.5, 0.3],), "Logistic": (1.0, 0.5), "Gumbel": (1.0, 0.5), "LogNormal": (0.1, 0.3),
    "Poisson": (3.0,),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_have_the_mean_and_the_width(name: str) -> None:
    ms.set_seed(5)
    distribution = getattr(msd, name)(*DRAWN[name])
    drawn = distribution.sample((20000,))
    assert drawn.shape == (20000,) and drawn.dtype == distribution.dtype
    width = float(distribution.sd().asnumpy().reshape(()))
    assert abs(drawn.asnumpy().mean() - float(distribution.mean().asnumpy().reshape(()))) < 0.04 * max(width, 1)
    assert abs(drawn.asnumpy().std() - width) < 0.06 * max(width, 1)


def test_two_draws_differ_and_a_seed_repeats_them() -> None:
    first, second = msd.Normal(0.0, 1.0, seed=4), msd.Normal(0.0, 1.0, seed=4)
    array, two = first.sample((5,)).asnumpy(), first.sample((5,)).asnumpy()
    assert (array != two).all() and (second.sample((5,)).asnumpy() == array).all()


def test_the_middle_of_what_cauchy_draws() -> None:
    ms.set_seed(2)
    assert abs(np.median(msd.Cauchy(1.0, 0.5).sample((20000,)).asnumpy()) - 1.0) < 0.05


def test_shapes_of_draws() -> None:
    assert msd.Normal([0.0, 1.0], 1.0).sample((3,)).shape == (3, 2) and msd.Normal(0.0, 1.0).sample().shape == ()
    assert msd.Categorical([[0.2, 0.8], [0.5, 0.5]]).sample((4,)).shape == (4, 2)
    assert msd.Bernoulli(0.5).mode().asnumpy() == 0 and msd.Bernoulli(0.7).mode().asnumpy() == 1
    assert msd.TransformedDistribution(msb.Exp(), msd.Normal(0.0, 1.0)).sample((3,)).shape == (3,)


def test_a_cell_calls_a_distribution_by_the_name_of_the_figure() -> None:
    class Net(ms.nn.Cell):
        def __init__(self):
            super().__init__()
            self.normal = msd.Normal(0.0, 1.0)

        def construct(self, x):
            return self.normal("log_prob", x) + self.normal.entropy()

    for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
        ms.set_context(mode=mode)
        x = ms.Tensor(np.array([0.5, -1.0], np.float32))
        np.testing.assert_allclose(Net()(x).asnumpy(), 0.5 - np.array([0.125, 0.5]), rtol=1e-5)
        np.testing.assert_allclose(ms.grad(lambda v: Net()(v).sum())(x).asnumpy(), [-0.5, 1.0], rtol=1e-5)
    ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_bijector_makes_a_distribution_of_another() -> None:
    moved = msb.ScalarAffine(2.0, 1.0)(msd.Normal(0.0, 1.0))
    assert moved.mean().asnumpy() == 1.0
    x = ms.Tensor(np.array([0.5], np.float32))
    np.testing.assert_allclose(moved.prob(x).asnumpy(), msd.Normal(1.0, 2.0).prob(x).asnumpy(), rtol=1e-5)
    assert msb.Bijector().is_injective and msb.Exp()("forward", x).asnumpy() == np.exp(np.float32(0.5))
    assert msd.Distribution(0, ms.float32, "mine", {}).get_dist_type() == "Distribution"


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: msd.Normal(0.0, 1.0, dtype=ms.int32), TypeError),
    (lambda: msd.Normal(0.0, 1.0, seed=1.5), TypeError),
    (lambda: msd.Normal(0.0, 1.0)("colour"), ValueError),
    (lambda: msd.Normal(0.0, 1.0).prob(1.0), TypeError),
    (lambda: msd.Normal(0.0, 1.0).sample(3), TypeError),
    (lambda: msd.TransformedDistribution(3, msd.Normal(0.0, 1.0)), TypeError),
    (lambda: msd.TransformedDistribution(msb.Exp(), msd.Normal(0.0, 1.0)).mean(), ValueError),
    (lambda: msb.Exp()("backward"), ValueError),
    (lambda: msb.GumbelCDF(0.0, -1.0), ValueError),
    (lambda: msb.Bijector().forward(ms.Tensor(1.0)), NotImplementedError),
])
def test_what_does_not_fit_is_refused(call, kind) -> None:
    with pytest.raises(kind):
        call()


@pytest.mark.parametrize("call", [
    lambda: msd.Normal(0.0, 1.0, name=1.0), lambda: msd.Gamma([0.0], [1.0], name=1.0), lambda: msb.Exp(name=0.1),
    lambda: msb.Invert(msb.Exp(), name=0.1), lambda: msd.Categorical([0.1], name=1.0), lambda: msd.Categorical([0.1], dtype=ms.bool_),
    lambda: msd.Poisson([0.1], dtype=ms.bool_),
])
def test_names_and_dtypes_are_checked_before_the_parameters(call: Any) -> None:
    with pytest.raises(TypeError):
        call()
