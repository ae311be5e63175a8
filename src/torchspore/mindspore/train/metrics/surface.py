"""Metrics of segmentations: distances between the predicted and the true surfaces."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.arguments import check_bool
from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.train.metrics.metric import Metric, rearrange_inputs

_ORDERS = {"euclidean": 2.0, "chessboard": np.inf, "taxicab": 1.0}
"""The order of the norm of each distance."""
DISTANCES = tuple(_ORDERS)


def _edges(mask: np.ndarray) -> np.ndarray:
    """Return the positions (n, axes) of a mask with a neighbour outside it along an axis; positions outside the array count as outside."""
    padded = np.pad(mask, 1)
    inside = padded.copy()
    for axis in range(mask.ndim):
        inside &= np.roll(padded, 1, axis) & np.roll(padded, -1, axis)
    return np.argwhere(mask & ~inside[(slice(1, -1),) * mask.ndim])


def _tree() -> Any:
    from scipy.spatial import cKDTree

    return cKDTree


def _distances(kind: str, of: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Return the distance from each position in `of` to the nearest one in `to`; infinite if there is none."""
    if not len(to) or not len(of):
        return np.full(len(of), np.inf)
    return np.asarray(_tree()(to).query(of, p=_ORDERS[kind])[0], np.float64)


class _Surfaces(Metric):
    """Base of the metrics: two arrays of labels, in which one label is compared."""

    def __init__(self, distance_metric: str) -> None:
        super().__init__()
        if distance_metric not in DISTANCES:
            raise ValueError(message(f"{type(self).__name__}(distance_metric={short(distance_metric)})", list_choices(DISTANCES)))
        self.distance_metric = distance_metric
        _tree()                                                      # a slow import (0.4 s), started before the first update
        self.clear()

    def clear(self) -> None:
        self._surfaces: tuple[np.ndarray, np.ndarray] | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Takes predicted and true labels, arrays of one shape, and the label to compare; the last call counts.

        Raises ValueError for other counts, shapes and labels, TypeError for anything but arrays.
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
        self._surfaces = _edges(masks[0]), _edges(masks[1])

    def _surface_distances_(self, back: bool = False) -> np.ndarray:
        """Return the distances from the predicted surface to the true one, or back."""
        self._need_(self._surfaces is not None)
        assert self._surfaces is not None
        source, target = self._surfaces[::-1] if back else self._surfaces
        return _distances(self.distance_metric, source, target)


class HausdorffDistance(_Surfaces):
    """The largest distance from a position on one surface to the other surface, in both directions, or with `directed` in one.

    `percentile`, from 0 to 100, replaces the largest distance by that percentile. `crop` does not affect the distance.
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
        """Returns the distance, in steps of the array."""
        largest = self._largest_(self._surface_distances_())
        return largest if self.directed else max(largest, self._largest_(self._surface_distances_(back=True)))

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
        distances = self._surface_distances_()
        return np.concatenate([distances, self._surface_distances_(back=True)]) if self.symmetric else distances


class MeanSurfaceDistance(_Mean):
    """The mean distance from the predicted surface to the true one; with `symmetric` over both directions."""

    def eval(self) -> float:
        """Returns the mean, in steps of the array; infinite if one surface is missing."""
        distances = self._all_()
        return float(distances.mean()) if len(distances) else float("inf")


class RootMeanSquareDistance(_Mean):
    """The root of the mean square distance from the predicted surface to the true one; with `symmetric` over both directions."""

    def eval(self) -> float:
        """Returns the root mean square, in steps of the array; infinite if one surface is missing."""
        distances = self._all_()
        return float(np.sqrt((distances * distances).mean())) if len(distances) else float("inf")
