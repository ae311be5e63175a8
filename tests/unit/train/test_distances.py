"""Metrics of surfaces and curves where 2.10 differs from its documents, and what they refuse; the rest is compared with records."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mindspore import Tensor
from mindspore.train import ROC, BleuScore, HausdorffDistance, MeanSurfaceDistance, RootMeanSquareDistance, get_metric_fn

X = np.array([[1, 1, 1, 0, 0]])
Y = np.array([[1, 0, 0, 0, 0]])


def test_root_mean_square() -> None:
    metric = RootMeanSquareDistance()
    metric.update(Tensor(X), Tensor(Y), 1)
    assert metric.eval() == pytest.approx(np.sqrt((0 + 1 + 4) / 3))


def test_symmetric_surface_distance() -> None:
    metric = MeanSurfaceDistance(symmetric=True)
    metric.update(Tensor(X), Tensor(Y), 1)
    assert metric.eval() == pytest.approx((0 + 1 + 2 + 0) / 4)


def test_distances_are_those_of_all_pairs() -> None:
    from torchspore.mindspore.train.metrics import surface

    for axes in (1, 2, 3):
        of, to = np.random.RandomState(axes).randint(0, 40, (2, 70, axes))
        apart = np.abs(of[:, None] - to[None])
        pairs = {"euclidean": np.sqrt((apart**2).sum(-1)), "chessboard": apart.max(-1), "taxicab": apart.sum(-1)}
        for kind in surface.DISTANCES:
            np.testing.assert_array_equal(surface._distances(kind, of, to), pairs[kind].min(1))
            assert np.isinf(surface._distances(kind, of, to[:0])).all() and not len(surface._distances(kind, of[:0], to))


def test_surfaces_of_a_volume_take_less_than_seconds() -> None:
    coordinates = np.indices((64,) * 3) - 32
    balls = [((coordinates**2).sum(0) < (64 * share) ** 2).astype(np.float32) for share in (0.4, 0.35)]
    metric = MeanSurfaceDistance()
    begin = time.perf_counter()
    metric.update(Tensor(balls[0]), Tensor(balls[1]), 0)
    assert metric.eval() > 0.5
    assert time.perf_counter() - begin < 5                      # all pairs took half a minute


def test_they_have_names() -> None:
    for name, kind in (("bleu_score", BleuScore), ("roc", ROC), ("hausdorff_distance", HausdorffDistance)):
        assert isinstance(get_metric_fn(name), kind)


@pytest.mark.parametrize(("call", "kind"), [
    (lambda: HausdorffDistance("foo"), ValueError), (lambda: HausdorffDistance(percentile=200.0), ValueError),
    (lambda: HausdorffDistance(percentile="a"), TypeError), (lambda: HausdorffDistance(directed=1), TypeError),
    (lambda: MeanSurfaceDistance().update(Tensor(X), Tensor(Y)), ValueError),
    (lambda: MeanSurfaceDistance().update(Tensor(X), Tensor(Y[:, :2]), 1), ValueError),
    (lambda: MeanSurfaceDistance().update(Tensor(X), Tensor(Y), "a"), ValueError),
    (lambda: MeanSurfaceDistance().eval(), RuntimeError), (lambda: ROC("a"), TypeError), (lambda: ROC().eval(), RuntimeError),
    (lambda: ROC()(Tensor([1.0, 2.0]), Tensor([0, 0])), ValueError), (lambda: ROC(3)(Tensor(np.ones((2, 2))), Tensor([0, 1])), ValueError),
    (lambda: BleuScore(5), ValueError), (lambda: BleuScore(2, 3), TypeError), (lambda: BleuScore().eval(), RuntimeError),
])
def test_what_does_not_fit(call: Callable[[], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        call()
