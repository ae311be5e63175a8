"""Rates of a confusion matrix of binary predictions for each class, as one-hot arrays."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.arguments import check_bool
from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.train.metrics.metric import Metric, rearrange_inputs

REDUCTIONS = ("none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel")
Array = np.ndarray


def _share(part: Array, total: Array) -> Array:
    """Return `part` / `total`; NaN for 0 / 0."""
    return np.where(total > 0, part / total, np.nan)


class _Counts:
    """Numbers of true and false positives and negatives, and derived rates."""

    def __init__(self, counts: Array) -> None:
        self.tp, self.fp, self.tn, self.fn = (counts[..., index] for index in range(4))
        self.sensitivity = _share(self.tp, self.tp + self.fn)
        self.specificity = _share(self.tn, self.fp + self.tn)
        self.precision = _share(self.tp, self.tp + self.fp)
        self.negative = _share(self.tn, self.tn + self.fn)

    def threshold(self) -> Array:
        """The prevalence threshold."""
        top = np.sqrt(self.sensitivity * (1 - self.specificity)) + self.specificity - 1
        under = self.sensitivity + self.specificity - 1
        return np.where(under != 0, top / under, np.nan)

    def correlation(self) -> Array:
        """Matthews' correlation coefficient."""
        under = np.sqrt((self.tp + self.fp) * (self.tp + self.fn) * (self.tn + self.fp) * (self.tn + self.fn))
        return np.where(under != 0, (self.tp * self.tn - self.fp * self.fn) / under, np.nan)


_RATES: dict[str, tuple[Callable[[_Counts], Array], str]] = {
    "sensitivity": (lambda c: c.sensitivity, "recall hit_rate true_positive_rate tpr"),
    "specificity": (lambda c: c.specificity, "selectivity true_negative_rate tnr"),
    "precision": (lambda c: c.precision, "positive_predictive_value ppv"),
    "negative_predictive_value": (lambda c: c.negative, "npv"),
    "miss_rate": (lambda c: _share(c.fn, c.tp + c.fn), "false_negative_rate fnr"),
    "fall_out": (lambda c: _share(c.fp, c.fp + c.tn), "false_positive_rate fpr"),
    "false_discovery_rate": (lambda c: _share(c.fp, c.fp + c.tp), "fdr"),
    "false_omission_rate": (lambda c: _share(c.fn, c.fn + c.tn), "for"),
    "prevalence_threshold": (lambda c: c.threshold(), "pt"),
    "threat_score": (lambda c: _share(c.tp, c.tp + c.fn + c.fp), "critical_success_index ts csi"),
    "accuracy": (lambda c: _share(c.tp + c.tn, c.tp + c.fn + c.fp + c.tn), "acc"),
    "balanced_accuracy": (lambda c: (c.sensitivity + c.specificity) / 2, "ba"),
    "f1_score": (lambda c: _share(2 * c.tp, 2 * c.tp + c.fn + c.fp), "f1"),
    "matthews_correlation_coefficient": (lambda c: c.correlation(), "mcc"),
    "fowlkes_mallows_index": (lambda c: np.sqrt(c.precision * c.sensitivity), "fm"),
    "informedness": (lambda c: c.sensitivity + c.specificity - 1, "bookmaker_informedness bm"),
    "markedness": (lambda c: c.precision + c.negative - 1, "deltap mk"),
}
"""The formula of each rate, and its other names (https://en.wikipedia.org/wiki/Confusion_matrix)."""
_NAMES = {other: name for name, (_, others) in _RATES.items() for other in (name, *others.split())}


class ConfusionMatrixMetric(Metric):
    """A rate such as 'sensitivity', 'ppv' or 'f1 score' of one-hot predictions (N, C, ...) against one-hot labels of the same shape.

    By default all counts are added up first, and the result is an array of one number. With `calculation_method` each sample and class has
    a separate rate, and `decrease` selects the mean or sum. Without `skip_channel` the first of several classes is ignored: 2.10 does so,
    though its documents state the opposite. Raises TypeError and ValueError for invalid arguments.
    """

    def __init__(
        self, skip_channel: bool = True, metric_name: str = "sensitivity", calculation_method: bool = False, decrease: str = "mean",
    ) -> None:
        super().__init__()
        for key, flag in (("skip_channel", skip_channel), ("calculation_method", calculation_method)):
            check_bool("ConfusionMatrixMetric", key, flag)
        self.skip_channel, self.calculation_method = skip_channel, calculation_method
        for key, value in (("metric_name", metric_name), ("decrease", decrease)):
            if not isinstance(value, str):
                raise TypeError(message(f"ConfusionMatrixMetric({key}={short(value)})", f"a str, got {type(value).__name__}"))
        if decrease not in REDUCTIONS:
            raise ValueError(message(f"ConfusionMatrixMetric(decrease={short(decrease)})", list_choices(REDUCTIONS)))
        self.metric_name, self.decrease = metric_name, decrease
        self.clear()

    def clear(self) -> None:
        self._counts: Any = np.zeros(4)
        self._values: Any = 0.0
        self._weight: Any = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Adds one batch. Raises ValueError for shapes that differ or have fewer than two axes."""
        predicted, label = self._take_(inputs)
        if predicted.shape != label.shape or predicted.ndim < 2:
            shapes = f"{list(predicted.shape)} and {list(label.shape)}"
            raise ValueError(message(f"ConfusionMatrixMetric.update of shapes {shapes}", "two of the same shape (N, C, ...)"))
        if not self.skip_channel and predicted.shape[1] > 1:
            predicted, label = predicted[:, 1:], label[:, 1:]
        predicted, label = (x.reshape(*x.shape[:2], -1).astype(np.float64) for x in (predicted, label))
        hit, size = (predicted + label == 2).sum(2), predicted.shape[2]
        missed = (predicted + label == 0).sum(2)
        positive = label.sum(2)
        counts = np.stack([hit, size - positive - missed, missed, positive - hit], -1).astype(np.float64)
        if self.calculation_method:
            self._add_(self._rate_(counts))
        else:
            self._counts = self._counts + counts.sum((0, 1))

    def eval(self) -> Any:
        """Returns the rate. Raises RuntimeError if no sample has one, NotImplementedError for an unknown name."""
        if not self.calculation_method:
            return np.atleast_1d(self._rate_(self._counts))
        if not np.any(self._weight):
            raise RuntimeError(message("ConfusionMatrixMetric.eval", "samples of which the rate can be computed"))
        with np.errstate(invalid="ignore", divide="ignore"):
            rate = self._values / self._weight
        return float(rate) if np.ndim(rate) == 0 else rate

    def _rate_(self, counts: Array) -> Array:
        name = _NAMES.get(self.metric_name.lower().replace(" ", "_"))
        if name is None:
            raise NotImplementedError(message(f"ConfusionMatrixMetric(metric_name={short(self.metric_name)})", list_choices(tuple(_RATES))))
        with np.errstate(invalid="ignore", divide="ignore"):
            return _RATES[name][0](_Counts(counts))

    def _add_(self, rates: Array) -> None:
        """Add the rates (N, C) of a batch, reduced by `decrease` and weighted by their number."""
        reduced, weight = _reduced(rates, self.decrease)
        self._values = self._values + reduced * weight
        self._weight = self._weight + weight


def _reduced(rates: Array, decrease: str) -> tuple[Array, Array]:
    """Return the reduced rates (N, C), and the number of rates in each result. NaN is ignored."""
    is_number = ~np.isnan(rates)
    rates = np.where(is_number, rates, 0.0)
    kind, _, axis = decrease.partition("_")
    if kind == "none":
        return rates, is_number.astype(float)
    if axis:
        along = 0 if axis == "batch" else 1
        count = is_number.sum(along)
        total = rates.sum(along)
        return (total / np.maximum(count, 1) if kind == "mean" else total), count.astype(float)
    if kind == "sum":
        return rates.sum(), is_number.sum()
    by_sample = rates.sum(1) / np.maximum(is_number.sum(1), 1)
    samples = is_number.any(1).sum()
    return by_sample.sum() / max(samples, 1), samples
