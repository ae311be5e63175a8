"""Random operators: the range, the moments and the dtype of what they draw, and what seeds promise."""
from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

MANY = (40, 500)


def f32(*values: float) -> Tensor:
    return Tensor(np.array(values if len(values) > 1 else values[0], np.float32))


# how it is made; mean and standard deviation; least and most; dtype
DRAWN: dict[str, tuple[Any, float | None, float | None, float, float, Any]] = {
    "UniformReal": (lambda: ops.UniformReal()(MANY), 0.5, 12**-0.5, 0, 1, np.float32),
    "UniformInt": (lambda: ops.UniformInt()(MANY, Tensor(2, ms.int32), Tensor(7, ms.int32)), 4, 2**0.5, 2, 6, np.int32),
    "StandardNormal": (lambda: ops.StandardNormal()(MANY), 0, 1, -7, 7, np.float32),
    "standard_normal": (lambda: ops.standard_normal(MANY), 0, 1, -7, 7, np.float32),
    "StandardLaplace": (lambda: ops.StandardLaplace()(MANY), 0, 2**0.5, -30, 30, np.float32),
    "standard_laplace": (lambda: ops.standard_laplace(MANY), 0, 2**0.5, -30, 30, np.float32),
    "laplace": (lambda: ops.laplace(MANY, f32(3), f32(0.5)), 3, 0.5**0.5, -30, 30, np.float32),
    "Gamma": (lambda: ops.Gamma()(MANY, f32(4), f32(2)), 2, 1, 0, 30, np.float32),
    "gamma": (lambda: ops.gamma(MANY, f32(4), f32(2)), 2, 1, 0, 30, np.float32),
    "RandomGamma": (lambda: ops.RandomGamma()(Tensor(MANY), f32(4, 4)), 4, 2, 0, 50, np.float32),
    "random_gamma": (lambda: ops.random_gamma(Tensor(MANY), f32(4)), 4, 2, 0, 50, np.float32),
    "Poisson": (lambda: ops.Poisson()(MANY, f32(3)), 3, 3**0.5, 0, 30, np.int32),
    "poisson": (lambda: ops.poisson(MANY, f32(3)), 3, 3**0.5, 0, 30, np.int32),
    "RandomPoisson": (lambda: ops.RandomPoisson()(Tensor(MANY), f32(3)), 3, 3**0.5, 0, 30, np.int64),
    "random_poisson": (lambda: ops.random_poisson(Tensor(MANY), f32(3, 3)), 3, 3**0.5, 0, 30, np.float32),
    "TruncatedNormal": (lambda: ops.TruncatedNormal()(Tensor(MANY)), 0, 0.8796, -2, 2, np.float32),
    "ParameterizedTruncatedNormal": (
        lambda: ops.ParameterizedTruncatedNormal()(Tensor(MANY), *(Tensor([v], ms.float32) for v in (1.0, 2.0, -3.0, 5.0))),
        1, 2 * 0.8796, -3, 5, np.float32,
    ),
    "Bernoulli": (lambda: ops.Bernoulli()(ops.ones(MANY), 0.25), 0.25, 0.1875**0.5, 0, 1, np.float32),
    "Cauchy": (lambda: ops.clamp(ops.Cauchy(list(MANY), 2.0, 0.5)(), 1.5, 2.5), 2, None, 1.5, 2.5, np.float32),
    "LogNormalReverse": (lambda: ops.log(ops.LogNormalReverse(1.0, 0.5)(ops.ones(MANY))), 1, 0.5, -5, 6, np.float32),
    "randint_like": (lambda: ops.randint_like(ops.ones(MANY, ms.int32), 2, 7), 4, 2**0.5, 2, 6, np.int32),
    "Multinomial": (lambda: ops.Multinomial()(f32(1, 3), 20000), 0.75, 0.1875**0.5, 0, 1, np.int32),
    "MultinomialWithReplacement": (
        lambda: ops.MultinomialWithReplacement(20000, True)(f32(1, 3), Tensor(0), Tensor(0)), 0.75, 0.1875**0.5, 0, 1, np.int64,
    ),
    "multinomial_with_replacement": (
        lambda: ops.multinomial_with_replacement(f32(1, 3), 0, 0, 20000, True), 0.75, 0.1875**0.5, 0, 1, np.int64,
    ),
    "RandomCategorical": (
        lambda: ops.RandomCategorical()(Tensor(np.log([[1.0, 3.0]]).astype(np.float32)), 20000, 0), 0.75, 0.1875**0.5, 0, 1, np.int64,
    ),
    "random_categorical": (
        lambda: ops.random_categorical(Tensor(np.log([[1.0, 3.0]]).astype(np.float32)), 20000), 0.75, 0.1875**0.5, 0, 1, np.int64,
    ),
    "NonDeterministicInts": (lambda: ops.NonDeterministicInts(ms.int32)(Tensor(MANY)), None, None, -(2**31), 2**31, np.int32),
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn(name: str, mode: int) -> None:
    make, mean, spread, least, most, dtype = DRAWN[name]
    ms.set_seed(3)
    array = make().asnumpy()
    assert array.dtype == dtype and array.size >= 20000
    assert array.min() >= least and array.max() <= most
    if mean is not None:
        assert abs(array.mean() - mean) < 0.05 * max(1, abs(mean))
    if spread is not None:
        assert abs(array.std() - spread) < 0.05 * max(1, spread)


def test_an_object_with_a_seed_draws_on(mode: int) -> None:
    """As in MindSpore: the second call gives other numbers, another object of the same seed the same ones."""
    entry, other = ops.StandardNormal(seed=3), ops.StandardNormal(seed=3)
    first, second = entry((4,)).asnumpy(), entry((4,)).asnumpy()
    assert not (first == second).all()
    assert (other((4,)).asnumpy() == first).all() and (other((4,)).asnumpy() == second).all()
    assert not (ops.StandardNormal(seed=3, seed2=1)((4,)).asnumpy() == first).all()


def test_a_graph_draws_on() -> None:
    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.draw = ops.UniformReal(seed=5)

        def construct(self, x: Tensor) -> Tensor:
            return x + self.draw((4,))

    expected = ops.UniformReal(seed=5)
    expected_values = [expected((4,)).asnumpy() for _ in range(3)]
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net = Net()
        arrays = [net(ops.zeros((4,))).asnumpy() for _ in range(3)]
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    np.testing.assert_array_equal(arrays, expected_values)


def test_orders() -> None:
    x = Tensor(np.arange(10, dtype=np.int32))
    for drawn in (ops.shuffle(x), ops.RandomShuffle()(x), ops.RandpermV2()(10), ops.Randperm(10)(Tensor([10], ms.int32))):
        assert sorted(drawn.asnumpy().tolist()) == list(range(10))
    assert ops.Randperm(5, pad=-1)(Tensor([3], ms.int32)).asnumpy()[3:].tolist() == [-1, -1]
    assert (ops.RandomShuffle(seed=2)(x).asnumpy() == ops.RandomShuffle(seed=2)(x).asnumpy()).all()


def test_choice_with_mask() -> None:
    mask = np.array([[True, False, True], [False, True, True]])
    for choose in (ops.RandomChoiceWithMask(3), ops.RandomChoiceWithMask(6), lambda m: ops.choice_with_mask(m, 3)):
        rows, real = (tensor.asnumpy() for tensor in choose(Tensor(mask)))
        assert rows.dtype == np.int32 and real.sum() == min(len(real), 4)
        chosen = [tuple(row) for row, ok in zip(rows, real) if ok]
        assert len(set(chosen)) == len(chosen) and all(mask[row] for row in chosen)
        assert not rows[~real].any()


def test_candidates() -> None:
    true = Tensor([[1], [3]])
    for sample in (
        ops.LogUniformCandidateSampler(1, 4, True, 6), ops.UniformCandidateSampler(1, 4, True, 6),
        lambda t: ops.log_uniform_candidate_sampler(t, 1, 4, True, 6), lambda t: ops.uniform_candidate_sampler(t, 1, 4, True, 6),
    ):
        drawn, of_true, of_drawn = (tensor.asnumpy() for tensor in sample(true))
        assert len(set(drawn.tolist())) == 4 and drawn.max() < 6
        assert of_true.shape == (2, 1) and of_drawn.shape == (4,) and 0 < of_drawn.min() <= of_drawn.max() <= 1.43
    without = ops.UniformCandidateSampler(1, 4, True, 6, remove_accidental_hits=True)(true)[0].asnumpy()
    assert not {1, 3} & set(without.tolist())
    with pytest.raises(ValueError, match="num_sampled=9: expected at most range_max, 6"):
        ops.UniformCandidateSampler(1, 9, True, 6)(true)


def test_seeds_are_ints() -> None:
    with pytest.raises(ValueError, match="seed2=-1: expected an int from 0 on"):
        ops.UniformReal(seed=1, seed2=-1)
    with pytest.raises(TypeError, match=r"UniformReal\(seed='a'\): expected an int from 0 on, got str"):
        ops.UniformReal(seed="a")((2,))
