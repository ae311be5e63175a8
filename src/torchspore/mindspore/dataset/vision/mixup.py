"""Transforms that mix the images of a batch, and their labels in the same proportions."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.randomness import generator
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_number, check_type
from torchspore.mindspore.dataset.vision.images import ImageTensorOperation
from torchspore.mindspore.dataset.vision.random_transforms import check_probability
from torchspore.mindspore.dataset.vision.utils import ImageBatchFormat


def _check_batch(call: str, values: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    if len(values) != 2:
        raise RuntimeError(message(f"{call} of {len(values)} columns", "images and their labels"))
    images, labels = (np.asarray(value) for value in values)
    if images.ndim != 4 or (1 not in (images.shape[1], images.shape[3]) and 3 not in (images.shape[1], images.shape[3])):
        raise RuntimeError(message(f"{call} of images {list(images.shape)}", "a batch (N, H, W, C) or (N, C, H, W) of 1 or 3 channels"))
    if labels.ndim not in (2, 3) or len(labels) != len(images):
        hint = "put OneHot(num_classes) before the batch"
        raise RuntimeError(message(f"{call} with labels {list(labels.shape)}", f"one-hot labels ({len(images)}, classes)", hint=hint))
    if labels.dtype.kind not in "iuf":
        raise RuntimeError(message(f"{call} with labels of {labels.dtype}", "numbers"))
    return images, labels.astype(np.float32)


class MixUpBatch(ImageTensorOperation):
    """Mixes each image and label of a batch with another; the weight of the original is drawn once, from Beta(alpha, alpha)."""

    def __init__(self, alpha: float = 1.0) -> None:
        check_number("MixUpBatch", "alpha", alpha, 0, 16777216, above=True)
        self.alpha = alpha

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        images, labels = _check_batch("MixUpBatch", values)
        drawn = generator()
        share = np.float32(drawn.beta(self.alpha, self.alpha))
        others = drawn.permutation(len(images))
        mixed = images * share + images[others] * (1 - share)
        if images.dtype.kind in "iu":
            mixed = np.rint(mixed)
        return mixed.astype(images.dtype), labels * share + labels[others] * (1 - share)


class CutMixBatch(ImageTensorOperation):
    """Puts a part of another image of the batch into each image with probability `prob`; labels are mixed by the areas.

    The part's share is drawn from Beta(alpha, alpha) for each image, and its center uniformly; it is clipped at the edges.
    """

    def __init__(self, image_batch_format: ImageBatchFormat, alpha: float = 1.0, prob: float = 1.0) -> None:
        check_type("CutMixBatch", "image_batch_format", image_batch_format, ImageBatchFormat, "a member of ImageBatchFormat")
        check_number("CutMixBatch", "alpha", alpha, 0, 16777216, above=True)
        self.image_batch_format, self.alpha, self.prob = image_batch_format, alpha, check_probability("CutMixBatch", prob)

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        images, labels = _check_batch("CutMixBatch", values)
        is_nhwc = self.image_batch_format is ImageBatchFormat.NHWC
        if images.shape[3 if is_nhwc else 1] not in (1, 3):
            raise RuntimeError(message(f"CutMixBatch({self.image_batch_format.name}) of images {list(images.shape)}", "1 or 3 channels"))
        drawn = generator()
        others = drawn.permutation(len(images))
        mixed, mixed_labels = images.copy(), labels.copy()
        planes, sources = (mixed, images) if is_nhwc else (mixed.transpose(0, 2, 3, 1), images.transpose(0, 2, 3, 1))
        height, width = planes.shape[1:3]
        for index, other in enumerate(others):
            if drawn.random() > self.prob:
                continue
            top, left, bottom, right = self._part(height, width)
            planes[index, top:bottom, left:right] = sources[other, top:bottom, left:right]
            share = np.float32((bottom - top) * (right - left) / (height * width))
            mixed_labels[index] = labels[index] * (1 - share) + labels[other] * share
        return mixed, mixed_labels

    def _part(self, height: int, width: int) -> tuple[int, int, int, int]:
        drawn = generator()
        side = np.sqrt(1 - drawn.beta(self.alpha, self.alpha))
        high, wide = int(height * side), int(width * side)
        y, x = int(drawn.integers(height)), int(drawn.integers(width))
        return max(y - high // 2, 0), max(x - wide // 2, 0), min(y + high // 2, height - 1), min(x + wide // 2, width - 1)


def mix(
    images: np.ndarray, labels: np.ndarray, others: np.ndarray, other_labels: np.ndarray, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mix images and labels with others; the weight of each original is drawn from Beta(alpha, alpha) by NumPy's global stream."""
    shares = np.random.beta(alpha, alpha, len(images))
    wide = shares.reshape(-1, *[1] * (images.ndim - 1))
    label_shares = shares.reshape(-1, *[1] * (labels.ndim - 1))
    return images * wide + others * (1 - wide), labels * label_shares + other_labels * (1 - label_shares)


class MixUp(ImageTensorOperation):
    """Mixes each image and label of a batch with the next one's, or with those of the batch before (`is_single=False`).

    The weights come from NumPy's global stream, as in MindSpore: `numpy.random.seed` fixes them.
    """

    runs_in_any_order = False

    def __init__(self, batch_size: int, alpha: float, is_single: bool = True) -> None:
        check_int("MixUp", "batch_size", batch_size, 1)
        check_number("MixUp", "alpha", alpha, 0, math.inf, above=True)
        check_bool("MixUp", "is_single", is_single)
        self.batch_size, self.alpha, self.is_single = batch_size, alpha, is_single
        self._before: tuple[np.ndarray, np.ndarray] | None = None

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        if len(values) != 2:
            raise ValueError(message(f"MixUp of {len(values)} columns", "images and their labels"))
        images, labels = values
        if images.ndim != 4 or labels.ndim not in (2, 3) or len(images) != self.batch_size or len(labels) != self.batch_size:
            subject = f"MixUp({self.batch_size}) of {list(images.shape)} and {list(labels.shape)}"
            expected = f"{self.batch_size} images and as many one-hot labels"
            raise ValueError(message(subject, expected, hint=f"got {short(len(images))} images"))
        if self.is_single:
            return mix(images, labels, np.roll(images, -1, 0), np.roll(labels, -1, 0), self.alpha)
        others, other_labels = self._before or (images, labels)
        self._before = images, labels
        return mix(images, labels, others, other_labels, self.alpha)
