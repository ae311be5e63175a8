"""Metrics of surfaces and curves where 2.10 differs from its documents, and what they refuse; the rest is compared with records."""
from __future__ import annotations

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


def test_many_places_are_taken_in_pieces() -> None:
    from torchspore.mindspore.train.metrics import surface

    of, to = np.argwhere(np.random.RandomState(0).randint(0, 2, (2, 12, 12)))[:, 1:][:140].reshape(2, 70, 2)
    for kind in surface.DISTANCES:
        np.testing.assert_array_equal(surface._distances(kind, of, to, piece=50), surface._distances(kind, of, to))


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
