"""Image transforms with bounding boxes: each takes an image and rows of (x, y, width, height, ...), as float32."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.core.randomness import generator, happens
from torchspore.mindspore.dataset.core.validator_helpers import check_number
from torchspore.mindspore.dataset.vision import geometry
from torchspore.mindspore.dataset.vision.images import ImageTensorOperation, check_image, height_width
from torchspore.mindspore.dataset.vision.random_transforms import RandomCrop, RandomResizedCrop, check_probability
from torchspore.mindspore.dataset.vision.utils import Inter


def check_boxes(call: str, values: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the image and a copy of its boxes. Raises RuntimeError for other values, and for a box that is not inside the image."""
    if len(values) != 2:
        raise RuntimeError(message(f"{call} of {len(values)} columns", "an image and its bounding boxes"))
    image, boxes = (np.asarray(value) for value in values)
    check_image(call, image)
    if boxes.ndim != 2 or boxes.shape[1] < 4 or boxes.dtype.kind != "f":
        raise RuntimeError(message(f"{call} with boxes {boxes.dtype} {list(boxes.shape)}", "rows of floats (x, y, width, height, ...)"))
    height, width = image.shape[:2]
    x, y, wide, high = boxes[:, :4].T
    if (boxes[:, :4] < 0).any() or (x + wide > width).any() or (y + high > height).any():
        raise RuntimeError(message(f"{call} with boxes {short(boxes[:, :4].tolist())}", f"boxes inside the image {height}x{width}"))
    return image, boxes.astype(np.float32)


class _WithBoxes(ImageTensorOperation):
    """Base: `_move(image, boxes)` returns the new image and the boxes, which it may modify."""

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        return self._move(*check_boxes(type(self).__name__, values))

    def _move(self, image: np.ndarray, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError


class RandomHorizontalFlipWithBBox(_WithBoxes):
    """Swaps left and right of an image and its boxes with probability `prob`."""

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_probability("RandomHorizontalFlipWithBBox", prob)

    def _move(self, image: np.ndarray, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not happens(self.prob):
            return image, boxes
        boxes[:, 0] = image.shape[1] - boxes[:, 0] - boxes[:, 2]
        return np.ascontiguousarray(image[:, ::-1]), boxes


class RandomVerticalFlipWithBBox(_WithBoxes):
    """Swaps top and bottom of an image and its boxes with probability `prob`."""

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_probability("RandomVerticalFlipWithBBox", prob)

    def _move(self, image: np.ndarray, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not happens(self.prob):
            return image, boxes
        boxes[:, 1] = image.shape[0] - boxes[:, 1] - boxes[:, 3]
        return np.ascontiguousarray(image[::-1]), boxes


def _scaled(image: np.ndarray, resized: np.ndarray, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scale = np.array([resized.shape[1] / image.shape[1], resized.shape[0] / image.shape[0]], np.float32)
    boxes[:, :4] *= np.tile(scale, 2)
    return resized, boxes


class ResizeWithBBox(_WithBoxes):
    """Resizes an image and its boxes to `size`: (height, width), or one int for the shorter side."""

    def __init__(self, size: Any, interpolation: Inter = Inter.BILINEAR) -> None:
        self._resize = geometry.Resize(size, interpolation)

    def _move(self, image: np.ndarray, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _scaled(image, self._resize._transform_single(image, None), boxes)


class RandomResizeWithBBox(_WithBoxes):
    """Resizes an image, with a randomly chosen interpolation, and its boxes."""

    def __init__(self, size: Any) -> None:
        kinds = (Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC, Inter.AREA)
        self._resizes = [geometry.Resize(size, kind) for kind in kinds]

    def _move(self, image: np.ndarray, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _scaled(image, self._resizes[int(generator().integers(len(self._resizes)))]._transform_single(image, None), boxes)


def _cut(boxes: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """Return the boxes that overlap a part of the image, clipped to it; one empty box if there is none."""
    start = np.maximum(boxes[:, :2], (left, top))
    end = np.minimum(boxes[:, :2] + boxes[:, 2:4], (left + width, top + height))
    seen = ((end - start) > 0).all(1)
    if not seen.any():
        return np.zeros((1, boxes.shape[1]), np.float32)
    visible = boxes[seen].copy()
    visible[:, :2], visible[:, 2:4] = (start - (left, top))[seen], (end - start)[seen]
    return visible


class RandomCropWithBBox(RandomCrop):
    """`RandomCrop` of an image and its boxes; boxes outside the part are dropped."""

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        image, boxes = check_boxes("RandomCropWithBBox", values)
        padded, (above, before) = self._padded(image)
        chosen = self._choose(values)
        height, width = self.size
        boxes[:, :2] += (before, above)
        top = int(chosen[0] * (padded.shape[0] - height + 1))
        left = int(chosen[1] * (padded.shape[1] - width + 1))
        return geometry.crop(padded, top, left, height, width), _cut(boxes, top, left, height, width)


class RandomResizedCropWithBBox(RandomResizedCrop):
    """`RandomResizedCrop` of an image and its boxes; boxes outside the part are dropped."""

    _call = "RandomResizedCropWithBBox"

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        image, boxes = check_boxes(self._call, values)
        part = self._part(*height_width(image))
        cropped = geometry.crop(image, *part)
        return _scaled(cropped, geometry.resize(cropped, self.size, self.interpolation, self._call), _cut(boxes, *part))


class BoundingBoxAugment(_WithBoxes):
    """Applies `transform` inside a random share `ratio` of the boxes."""

    def __init__(self, transform: Any, ratio: float = 0.3) -> None:
        if not isinstance(transform, TensorOperation):
            raise TypeError(message(f"BoundingBoxAugment({short(transform)})", f"an image transform, got {type(transform).__name__}"))
        check_number("BoundingBoxAugment", "ratio", ratio, 0, 1)
        self.transform, self.ratio = transform, ratio

    def _move(self, image: np.ndarray, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count = int(len(boxes) * self.ratio)
        image = image.copy()
        for index in generator().permutation(len(boxes))[:count]:
            x, y, width, height = (int(number) for number in boxes[index, :4])
            part = image[y : y + height, x : x + width]
            if part.size:
                changed = self.transform(np.ascontiguousarray(part))
                part[...] = geometry.resize(changed, part.shape[:2], Inter.BILINEAR, "BoundingBoxAugment")
        return image, boxes
