"""Draws with parameters in Tensors: large samples have their distribution, wrong arguments are refused, two ways of computing agree."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

from torchspore.engine.random import c_math, parameter_draws, philox, truncated_draws
from torchspore.engine.random.candidate_draws import candidates
from torchspore.engine.random.distributions import MersenneNumbers

truncated = ops.operations.random_ops.ParameterizedTruncatedNormal
MANY = Tensor([60000], ms.int32)


def f32(*values: float) -> Tensor:
    return Tensor(np.array(values, np.float32))


def i64(*values: int) -> Tensor:
    return Tensor(np.array(values, np.int64))


# ---- large samples


def test_gamma_has_the_mean_and_variance_of_alpha(mode: int) -> None:
    alphas = np.array([0.1, 0.5, 1, 1.5, 20], np.float32)
    drawn = ops.random_gamma(MANY, Tensor(alphas), 3).asnumpy()
    np.testing.assert_allclose(drawn.mean(0), alphas, rtol=0.03)
    np.testing.assert_allclose(drawn.var(0), alphas, rtol=0.06)


def test_poisson_has_the_shares_of_its_distribution(mode: int) -> None:
    rates = np.array([0.2, 4, 9.9, 10, 37, 1000], np.float32)
    drawn = ops.random_poisson(MANY, Tensor(rates), 3, ms.int64).asnumpy()
    np.testing.assert_allclose(drawn.mean(0), rates, rtol=0.015)
    np.testing.assert_allclose(drawn.var(0), rates, rtol=0.03)
    for column, rate in enumerate(rates.tolist()):
        counts = np.arange(int(rate - 2 * rate**0.5), int(rate + 2 * rate**0.5) + 1).clip(0)
        shares = [math.exp(count * math.log(rate) - rate - math.lgamma(count + 1)) for count in counts]
        results = [(drawn[:, column] == count).mean() for count in counts]
        np.testing.assert_allclose(results, shares, atol=0.008)


@pytest.mark.parametrize("limits", [(-1.0, 2.0), (0.5, 0.7), (2.0, 9.0), (-math.inf, 0.5), (-3.0, -2.0), (-2.0, -1.9), (-math.inf, -2.0)])
def test_normal_numbers_stay_between_their_limits(limits: tuple[float, float], mode: int) -> None:
    low, high = limits
    drawn = truncated(3, 4)(Tensor([2, 30000], ms.int32), f32(0), f32(1), f32(low), f32(high)).asnumpy()
    assert low - 1e-6 <= drawn.min() and drawn.max() <= high + 1e-6

    def below(value: float) -> float:
        return math.erfc(-value / 2**0.5) / 2

    for share in (0.1, 0.5, 0.9):
        quantile = np.quantile(drawn, share)
        assert abs((below(quantile) - below(low)) / (below(high) - below(low)) - share) < 0.01


def test_classes_have_the_shares_of_their_logits(mode: int) -> None:
    weights = np.array([[1, 2, 5, 0], [3, 3, 1, 1]], np.float32)
    with np.errstate(divide="ignore"):
        logits = Tensor(np.log(weights))
    for drawn in (ops.random_categorical(logits, 60000, 3), ops.multinomial_with_replacement(Tensor(weights), 3, 4, 60000, True)):
        for row, expected in zip(drawn.asnumpy(), weights / weights.sum(-1, keepdims=True)):
            np.testing.assert_allclose(np.bincount(row, minlength=4) / 60000, expected, atol=0.01)
    once = ops.multinomial_with_replacement(Tensor(weights), 3, 4, 4, False).asnumpy()
    assert np.sort(once, -1).tolist() == [[0, 1, 2, 3]] * 2 and once[0, 3] == 3


def test_candidates_come_as_often_as_expected(mode: int) -> None:
    true = i64(0, 3, 7).reshape(3, 1)
    for primitive in (ops.UniformCandidateSampler, ops.LogUniformCandidateSampler):
        for unique, count in ((True, 5), (False, 20)):
            sampler = primitive(1, count, unique, 10, 3)
            drawn = [[item.asnumpy() for item in sampler(true)] for _ in range(1000)]
            often = np.mean([[(classes == value).sum() for value in (0, 3, 7)] for classes, _, _ in drawn], 0)
            np.testing.assert_allclose(often, np.mean([expected[:, 0] for _, expected, _ in drawn], 0), atol=0.16)
            assert all(len(set(classes.tolist())) == count for classes, _, _ in drawn if unique)


@pytest.mark.parametrize("primitive", [ops.UniformCandidateSampler, ops.LogUniformCandidateSampler])
@pytest.mark.parametrize("few", [1, 4])
def test_an_accelerator_expects_as_many_candidates_as_the_cpu(
    primitive: Any, few: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The draws of an accelerator, computed here: it counts no tries, and draws how many there would have been."""
    from torchspore.mindspore.ops.random_draws import candidate_samplers

    true = i64(*range(few)).reshape(1, few)
    last = (True,) if primitive is ops.UniformCandidateSampler else ()
    on_cpu = primitive(few, 5, True, 9, 3, *last)
    expected = np.mean([on_cpu(true)[1].asnumpy() for _ in range(800)], 0)
    monkeypatch.setattr(candidate_samplers, "is_on_host", lambda: False)
    drawn = [[item.asnumpy() for item in primitive(few, 5, True, 9, 3 + seed, *last)(true)] for seed in range(800)]
    np.testing.assert_allclose(np.mean([counts for _, counts, _ in drawn], 0), expected, rtol=0.04)
    often = np.bincount(np.concatenate([classes for classes, _, _ in drawn]), minlength=9)
    assert (often[:few] == 0).all() == bool(last) and (often[few:] > 0).all()


# ---- hits


@pytest.mark.parametrize("unique", [True, False])
def test_true_classes_are_omitted_where_there_are_enough_others(unique: bool, mode: int) -> None:
    sampler = ops.UniformCandidateSampler(2, 4, unique, 7, 3, True)
    few, many = i64(1, 2).reshape(1, 2), i64(0, 1, 2, 3).reshape(2, 2)
    for true in (few, many, few):
        drawn = {value for _ in range(20) for value in sampler(true)[0].asnumpy().tolist()}
        hits = set(true.asnumpy().ravel().tolist())
        assert drawn == (set(range(7)) if unique and true is many else set(range(7)) - hits)


# ---- without a seed, and states


UNSEEDED: dict[str, Callable[[], Any]] = {
    "gamma": lambda: ops.RandomGamma()(Tensor([20], ms.int32), f32(1.5)),
    "poisson": lambda: ops.RandomPoisson()(Tensor([90], ms.int32), f32(30)),
    "truncated": lambda: truncated()(Tensor([2, 20], ms.int32), f32(0), f32(1), f32(-1), f32(1)),
    "weighted": lambda: ops.MultinomialWithReplacement(90, True)(f32(1, 2, 3), i64(0)[0], i64(0)[0]),
    "weighted_minus_one": lambda: ops.multinomial_with_replacement(f32(1, 2, 3), -1, 0, 90, True),
    "classes": lambda: ops.random_categorical(f32(1, 2, 3).reshape(1, 3), 90),
    "classes_of_primitive": lambda: ops.RandomCategorical()(f32(1, 2, 3).reshape(1, 3), 90, 0),
    "candidates": lambda: ops.uniform_candidate_sampler(i64(1).reshape(1, 1), 1, 20, True, 1000)[0],
    "candidates_of_primitive": lambda: ops.UniformCandidateSampler(1, 20, True, 1000)(i64(1).reshape(1, 1))[0],
}


@pytest.mark.parametrize("name", UNSEEDED)
def test_operators_without_a_seed_follow_set_seed(name: str, mode: int) -> None:
    runs = []
    for seed in (3, 3, 4):
        ms.set_seed(seed)
        runs.append([UNSEEDED[name]().asnumpy().tolist() for _ in range(2)])
    assert runs[0] == runs[1] != runs[2]
    assert runs[0][0] != runs[0][1]


def test_functions_without_any_seed_draw_other_numbers_each_time() -> None:
    from torchspore.engine.random import random_state

    random_state.SEED.value = None
    for draw in (lambda: ops.random_gamma(Tensor([20], ms.int32), f32(1.5)), lambda: ops.random_poisson(Tensor([90], ms.int32), f32(30))):
        assert len({draw().asnumpy().tobytes() for _ in range(3)}) == 3


def test_gamma_holds_the_generators_of_the_last_values(monkeypatch: pytest.MonkeyPatch) -> None:
    from torchspore.engine.random import operator_streams

    monkeypatch.setattr(operator_streams, "_MOST_STATES", 2)
    gamma, shape = ops.RandomGamma(3, 4), Tensor([4], ms.int32)
    drawn = [gamma(shape, f32(alpha)).asnumpy().tolist() for alpha in (1.5, 1.5, 2.5, 1.5, 3.5, 1.5, 2.5)]
    assert len({str(numbers) for numbers in drawn}) == 6 and drawn[2] == drawn[6]       # 2.5 was the oldest


def test_a_changed_seed_starts_another_generator() -> None:
    sampler, fresh = ops.UniformCandidateSampler(1, 9, True, 99, 3), ops.UniformCandidateSampler(1, 9, True, 99, 5)
    true = i64(1).reshape(1, 1)
    sampler(true)
    sampler.seed = 5
    assert sampler(true)[0].asnumpy().tolist() == fresh(true)[0].asnumpy().tolist()


# ---- what is refused


shape, row = Tensor([3], ms.int32), f32(1, 2, 3).reshape(1, 3)
true = i64(1).reshape(1, 1)
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "gamma of ints": (lambda: ops.random_gamma(shape, i64(1)), TypeError, "alpha of Int64: expected Float16, Float32 or Float64"),
    "gamma below 0": (lambda: ops.random_gamma(shape, f32(1, -1)), ValueError, "alpha: expected numbers from 0 on"),
    "gamma primitive below 0": (lambda: ops.RandomGamma(3)(shape, f32(-1)), ValueError, "alpha: expected numbers from 0 on"),
    "gamma without rows": (
        lambda: ops.random_gamma(Tensor([0, 2], ms.int32), f32(1)), ValueError, r"shape=\[0, 2\]: expected ints from 1 on"),
    "gamma of a matrix": (
        lambda: ops.random_gamma(Tensor([[2]], ms.int32), f32(1)), ValueError, "expected one dimension of shape, got 2"),
    "gamma seed": (lambda: ops.random_gamma(shape, f32(1), -1), ValueError, "seed=-1: expected an int from 0 on"),
    "poisson below 0": (lambda: ops.random_poisson(shape, f32(-1)), ValueError, "rate: expected finite numbers from 0 on"),
    "poisson NaN": (lambda: ops.random_poisson(shape, f32(math.nan)), ValueError, "rate: expected finite numbers from 0 on"),
    "poisson infinity": (lambda: ops.RandomPoisson(3)(shape, f32(math.inf)), ValueError, "rate: expected finite numbers from 0 on"),
    "poisson dtype": (lambda: ops.random_poisson(shape, f32(1), dtype=ms.int8), TypeError, "dtype of Int8: expected one of Int64, Int32, "),
    "poisson bool": (lambda: ops.random_poisson(shape, Tensor([True])), TypeError, "rate of Bool: expected one of Int64, Int32, "),
    "poisson shape": (lambda: ops.random_poisson(Tensor([-1], ms.int32), f32(1)), ValueError, r"shape=\[-1\]: expected ints from 0 on"),
    "normal of one size": (
        lambda: truncated(3)(shape, f32(0), f32(1), f32(0), f32(1)), ValueError, r"shape=\[3\]: expected at least two sizes"),
    "normal deviation": (
        lambda: truncated(3)(Tensor([2, 2]), f32(0), f32(0), f32(0), f32(1)), ValueError, "stdevs: expected numbers above 0"),
    "normal swapped": (
        lambda: truncated(3)(Tensor([2, 2]), f32(0), f32(1), f32(1), f32(0)), ValueError, "expected numbers as mean, and min up to max"),
    "normal NaN": (
        lambda: truncated(3)(Tensor([2, 2]), f32(math.nan), f32(1), f32(0), f32(1)), ValueError,
        "expected numbers as mean, and min up to max"),
    "normal shape": (
        lambda: truncated(3)(Tensor([3, 2]), f32(0, 1), f32(1), f32(0), f32(1)), ValueError,
        r"mean of shape \(2,\): expected \(\) or \(3,\)"),
    "normal dtypes": (
        lambda: truncated(3)(Tensor([3, 2]), f32(0), f32(1), f32(0), Tensor([1.0], ms.float64)), TypeError,
        "max of Float64: expected Float32, the dtype of mean"),
    "normal out of reach": (
        lambda: truncated(3)(Tensor([1, 2]), *(Tensor([value], ms.float16) for value in (0, 1, 300, 900))), RuntimeError,
        "min and max: not one of 1000 numbers in a row was between them"),
    "weights of ints": (lambda: ops.multinomial_with_replacement(i64(1, 2), 3, 4, 2), TypeError, "x of Int64: expected Float16"),
    "weights below 0": (
        lambda: ops.multinomial_with_replacement(f32(1, -2), 3, 4, 2), ValueError, "x: expected finite numbers from 0 on, and one above 0"),
    "weights of 0": (
        lambda: ops.multinomial_with_replacement(f32(0, 0), 3, 4, 2), ValueError, "x: expected finite numbers from 0 on, and one above 0"),
    "weights NaN": (
        lambda: ops.multinomial_with_replacement(f32(1, math.nan), 3, 4, 2), ValueError, "x: expected finite numbers from 0 on"),
    "weights of three dimensions": (
        lambda: ops.multinomial_with_replacement(f32(1).reshape(1, 1, 1), 3, 4, 1), ValueError,
        r"x of shape \(1, 1, 1\): expected one or two dimensions"),
    "weights too many": (
        lambda: ops.multinomial_with_replacement(f32(1, 2), 3, 4, 3), ValueError,
        "numsamples=3: expected at most 2, the number of weights, without replacement"),
    "weights none": (lambda: ops.multinomial_with_replacement(f32(1, 2), 3, 4, 0), ValueError, "numsamples=0: expected an int from 1 on"),
    "weights seed": (lambda: ops.multinomial_with_replacement(f32(1, 2), "a", 4, 1), TypeError, "seed='a': expected an int, got str"),
    "weights offset": (
        lambda: ops.multinomial_with_replacement(f32(1, 2), 3, f32(4), 1), TypeError,
        r"expected one int as offset, got a Tensor of shape \(1,\) and Float32"),
    "classes of ints": (lambda: ops.random_categorical(i64(1, 2).reshape(1, 2), 3), TypeError, "logits of Int64: expected Float16"),
    "classes of a vector": (lambda: ops.random_categorical(f32(1, 2), 3), ValueError, r"logits of shape \(2,\): expected two dimensions"),
    "classes NaN": (
        lambda: ops.random_categorical(f32(1, math.nan).reshape(1, 2), 3), ValueError, "logits: expected numbers below infinity, and"),
    "classes infinity": (
        lambda: ops.random_categorical(f32(1, math.inf).reshape(1, 2), 3), ValueError, "logits: expected numbers below infinity, and"),
    "classes without one": (
        lambda: ops.random_categorical(f32(-math.inf, -math.inf).reshape(1, 2), 3), ValueError, "and a finite one in each row"),
    "classes none": (lambda: ops.random_categorical(row, 0), ValueError, "num_sample=0: expected an int from 1 on"),
    "classes dtype": (
        lambda: ops.random_categorical(row, 3, 4, ms.float32), TypeError, "dtype=Float32: expected one of Int16, Int32, Int64"),
    "classes seed": (lambda: ops.random_categorical(row, 3, 1.5), TypeError, "seed=1.5: expected an int, got float"),
    "candidates of int32": (
        lambda: ops.log_uniform_candidate_sampler(true.astype(ms.int32)), TypeError, "true_classes of Int32: expected Int64"),
    "candidates of floats": (
        lambda: ops.uniform_candidate_sampler(f32(1).reshape(1, 1), 1, 2, True, 5), TypeError,
        "true_classes of Float32: expected Int32 or Int64"),
    "candidates of a vector": (
        lambda: ops.log_uniform_candidate_sampler(i64(1)), ValueError, r"true_classes of shape \(1,\): expected two dimensions"),
    "candidates in a row": (
        lambda: ops.uniform_candidate_sampler(true, 2, 2, True, 5), ValueError, "expected 2 true classes in a row, got 1"),
    "candidates none": (lambda: ops.uniform_candidate_sampler(true, 1, 0, True, 5), ValueError, "num_sampled=0: expected an int from 1 on"),
    "candidates too many": (
        lambda: ops.log_uniform_candidate_sampler(true, 1, 6, True, 5), ValueError,
        "num_sampled=6: expected at most range_max, 5"),
    "candidates below 0": (
        lambda: ops.log_uniform_candidate_sampler(-true), ValueError, "true_classes: expected ints from 0 on"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(name: str, mode: int) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


# ---- two ways of computing


@pytest.mark.parametrize("rate", [0.0, 0.3, 5.0, 9.99, 10.0, 10.5, 33.3, 1e3, 1e7])
def test_few_and_many_counts_are_drawn_alike(rate: float) -> None:
    single, many = MersenneNumbers(12345), MersenneNumbers(12345)
    draw, draw_many = (
        (parameter_draws._small_count, parameter_draws._small_counts) if rate < 10
        else (parameter_draws._large_count, parameter_draws._large_counts)
    )
    assert [draw(single, rate) for _ in range(3000)] == list(draw_many(many, rate, 3000))
    assert single.end() == many.end()


@pytest.mark.parametrize("limits", [(-1.0, 2.0), (0.5, 0.7), (2.0, 9.0), (-math.inf, 0.5)])
def test_rows_with_the_same_parameters_are_drawn_together(limits: tuple[float, float], monkeypatch: pytest.MonkeyPatch) -> None:
    for size, count in ((1, 3000), (3, 1000), (2500, 2)):
        parameters = [np.array([value]) for value in (0.0, 1.0, *limits)]
        together, end = truncated_draws.truncated_normal_between(77, parameters, (count, size), ())
        single, state = [], 77
        for _ in range(count):
            numbers, state = truncated_draws.truncated_normal_between(state, parameters, (1, size), ())
            single.append(numbers[0])
        assert together.tobytes() == np.array(single).tobytes() and end == state
        with monkeypatch.context() as patch:
            patch.setattr(truncated_draws, "_BLOCK", 16)
            longer, end_of_longer = truncated_draws.truncated_normal_between(77, parameters, (count, size), ())
        assert longer.tobytes() == together.tobytes() and end_of_longer == end


def test_limits_far_away_are_computed_in_float64() -> None:
    far = truncated(3, 4)(Tensor([1, 4]), *(Tensor([value], ms.float64) for value in (0, 1, -1e3, 1e3))).asnumpy()
    near = truncated(3, 4)(Tensor([1, 4]), *(Tensor([value], ms.float64) for value in (0, 1, -40, 40))).asnumpy()
    assert far.tobytes() == near.tobytes()


def test_numbers_of_mersenne_go_on_from_the_state() -> None:
    numbers = MersenneNumbers(7)
    expected = numbers.ahead(5000).copy()
    numbers.advance(1234)
    assert numbers.ahead(3000).tolist() == expected[1234:4234].tolist()
    numbers.advance(66)
    state = numbers.end()
    for second in (MersenneNumbers(state), MersenneNumbers(7 + 2 * 1300 * 2**32)):
        assert second.ahead(100).tolist() == expected[1300:1400].tolist()


def test_parts_of_a_gamma_sample_depend_on_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    start, alpha = philox.state_of((3, 4), 0), [np.linspace(0, 5, 11)]
    samples, end = parameter_draws._gamma(start, alpha, (50,), ())
    monkeypatch.setattr(parameter_draws, "_CHUNK", 37)
    parts, end_of_parts = parameter_draws._gamma(start, alpha, (50,), ())
    assert samples.tobytes() == parts.tobytes() and end == end_of_parts


def test_words_that_a_call_leaves_come_first_in_the_next() -> None:
    state, drawn = philox.state_of((3, 4), 0), []
    for count in (1, 2, 5, 3, 7, 1, 1, 1, 12, 2):
        words, state = parameter_draws._next_words(state, count)
        drawn += words.tolist()
    assert drawn == philox.words(3, 4, 0, 9)[:35].tolist()


def test_a_number_of_zero_draws_no_weight_of_zero() -> None:
    weights = np.array([0.0, 2.0, 0.0, 3.0, 0.0])
    assert parameter_draws._with_replacement(weights, np.array([0.0, 0.4, 0.41, 1.0])).tolist() == [1, 1, 3, 3]


def test_wide_ranges_are_reached() -> None:
    values, _ = candidates(5, [np.array([[1]]), np.array(3)], (2000,), (False, 2**45, False))
    assert 0 <= values[:-1].min() < 2**37 and 2**45 - 2**37 < values[:-1].max() < 2**45


@pytest.mark.parametrize("name", ["log", "exp"])
def test_functions_of_the_c_library_are_close_to_numpys(name: str) -> None:
    values = np.linspace(0.001, 8, 500)
    expected = getattr(np, name)(values)
    for dtype, tolerance in ((np.float64, 1e-15), (np.float32, 1e-6), (np.float16, 1e-2)):
        np.testing.assert_allclose(getattr(c_math, name)(values.astype(dtype)), expected, rtol=tolerance, atol=tolerance)
        with np.errstate(all="raise"):
            assert c_math.log(np.array([0, 1], dtype)).tolist() == [-math.inf, 0]
            assert c_math.exp(np.array([-math.inf, -900, 0, 900, math.inf], dtype)).tolist() == [0, 0, 1, math.inf, math.inf]
            assert np.isnan(c_math.exp(np.array([math.nan], dtype))).all()


@pytest.mark.parametrize("span", [1e-3, 1.0, 90.0, 150.0])
def test_exponentials_of_float32_are_those_of_the_c_library(span: float) -> None:
    values = np.random.RandomState(0).uniform(-span, min(span, 88), 30000).astype(np.float32)
    function = c_math._library_function("expf", c_math.ctypes.c_float, math.exp)
    expected = np.array([function(value) for value in values.tolist()], np.float32)
    assert c_math.exp_float32(values).tobytes() == expected.tobytes()


def test_functions_of_the_c_library_have_a_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [c_math.log1p_float32(0.25), c_math.expm1_float32(-0.5), c_math.lgamma(7.5)]
    monkeypatch.setattr(c_math.ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    c_math._library_function.cache_clear()
    try:
        np.testing.assert_allclose([c_math.log1p_float32(0.25), c_math.expm1_float32(-0.5), c_math.lgamma(7.5)], results, rtol=1e-6)
    finally:
        c_math._library_function.cache_clear()
