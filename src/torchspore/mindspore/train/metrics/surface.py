"""Metrics of segmentations: distances between the surfaces of what was predicted and what is there."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.train.checks import check_bool
from torchspore.mindspore.train.metrics.metric import Metric, rearrange_inputs

_ORDERS = {"euclidean": 2.0, "chessboard": np.inf, "taxicab": 1.0}
"""The order of the norm of each distance."""
DISTANCES = tuple(_ORDERS)


def _edges(mask: np.ndarray) -> np.ndarray:
    """The places (n, axes) of a mask that have a neighbour along an axis outside of it; beyond the border there is nothing."""
    padded = np.pad(mask, 1)
    inside = padded.copy()
    for axis in range(mask.ndim):
        inside &= np.roll(padded, 1, axis) & np.roll(padded, -1, axis)
    return np.argwhere(mask & ~inside[(slice(1, -1),) * mask.ndim])


def _tree() -> Any:
    from scipy.spatial import cKDTree

    return cKDTree


def _distances(kind: str, of: np.ndarray, to: np.ndarray) -> np.ndarray:
    """The distance from each place in `of` to the nearest one in `to`; infinite where there is none."""
    if not len(to) or not len(of):
        return np.full(len(of), np.inf)
    return np.asarray(_tree()(to).query(of, p=_ORDERS[kind])[0], np.float64)


class _Surfaces(Metric):
    """What the metrics share: two arrays of labels, of which one label is looked at."""

    def __init__(self, distance_metric: str) -> None:
        super().__init__()
        if distance_metric not in DISTANCES:
            raise ValueError(message(f"{type(self).__name__}(distance_metric={short(distance_metric)})", list_choices(DISTANCES)))
        self.distance_metric = distance_metric
        _tree()                                                      # its import takes 0.4 s, which the first update need not wait for
        self.clear()

    def clear(self) -> None:
        self._places: tuple[np.ndarray, np.ndarray] | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Takes predicted and true labels, arrays of one shape, and the label that is looked at; the last call counts.

        Raises ValueError for other counts, shapes and labels, TypeError for what is no array.
        """
        call = f"{type(self).__name__}.update"
        if len(inputs) != 3:
            raise ValueError(message(f"{call} of {len(inputs)} values", "predicted labels, true labels and a label"))
        predicted, label = self._convert_data(inputs[0]), self._convert_data(inputs[1])
        if isinstance(inputs[2], bool) or not isinstance(inputs[2], (int, float)):
            raise ValueError(message(f"{call}(..., {short(inputs[2])})", f"a number as the label, got {type(inputs[2]).__name__}"))
        if not predicted.size or predicted.shape != label.shape:
            raise ValueError(message(f"{call} of shapes {list(predicted.shape)} and {list(label.shape)}", "one shape"))
        masks = predicted == inputs[2], label == inputs[2]
        if not masks[0].any() and not masks[1].any():
            raise ValueError(message(f"{call}(..., {inputs[2]})", "a label that is among the predicted or the true ones"))
        self._places = _edges(masks[0]), _edges(masks[1])

    def _apart_(self, back: bool = False) -> np.ndarray:
        """From the predicted surface to the true one, or back."""
        self._need_(self._places is not None)
        assert self._places is not None
        one, other = self._places[::-1] if back else self._places
        return _distances(self.distance_metric, one, other)


class HausdorffDistance(_Surfaces):
    """The largest distance from a place on one surface to the other surface, in both directions, or with `directed` in one.

    With `percentile`, from 0 to 100, that percentile of the distances in place of the largest. `crop` makes no difference to the distance.
    """

    def __init__(
        self, distance_metric: str = "euclidean", percentile: float | None = None, directed: bool = False, crop: bool = True,
    ) -> None:
        super().__init__(distance_metric)
        if percentile is not None and not isinstance(percentile, float):
            raise TypeError(message(f"HausdorffDistance(percentile={short(percentile)})", f"a float, got {type(percentile).__name__}"))
        if percentile is not None and not 0 <= percentile <= 100:
            raise ValueError(message(f"HausdorffDistance(percentile={percentile})", "a float from 0 to 100"))
        check_bool("HausdorffDistance", "directed", directed)
        check_bool("HausdorffDistance", "crop", crop)
        self.percentile, self.directed, self.crop = percentile, directed, crop

    def eval(self) -> float:
        """The distance, in steps of the array."""
        found = self._largest_(self._apart_())
        return found if self.directed else max(found, self._largest_(self._apart_(back=True)))

    def _largest_(self, distances: np.ndarray) -> float:
        if not len(distances):
            return float("inf")
        if self.percentile is None or not np.isfinite(distances).all():
            return float(distances.max())
        return float(np.percentile(distances, self.percentile))


class _Mean(_Surfaces):
    """A mean over the distances from the predicted surface to the true one, or with `symmetric` over those of both directions."""

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean") -> None:
        super().__init__(distance_metric)
        check_bool(type(self).__name__, "symmetric", symmetric)
        self.symmetric = symmetric

    def _all_(self) -> np.ndarray:
        there = self._apart_()
        return np.concatenate([there, self._apart_(back=True)]) if self.symmetric else there


class MeanSurfaceDistance(_Mean):
    """The mean distance from the predicted surface to the true one; with `symmetric` over both directions."""

    def eval(self) -> float:
        """The mean, in steps of the array; infinite where one surface is not there."""
        found = self._all_()
        return float(found.mean()) if len(found) else float("inf")


class RootMeanSquareDistance(_Mean):
    """The root of the mean square distance from the predicted surface to the true one; with `symmetric` over both directions."""

    def eval(self) -> float:
        """The root mean square, in steps of the array; infinite where one surface is not there."""
        found = self._all_()
        return float(np.sqrt((found * found).mean())) if len(found) else float("inf")
