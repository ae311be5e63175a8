"""Affine maps and perspectives with fixed parameters, and random perspectives."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.operation import is_pil
from torchspore.mindspore.dataset.core.randomness import generator, happens
from torchspore.mindspore.dataset.core.validator_helpers import check_number, check_type
from torchspore.mindspore.dataset.vision import geometry
from torchspore.mindspore.dataset.vision.color import pillow
from torchspore.mindspore.dataset.vision.images import ImageTensorOperation, OnDevice, check_image
from torchspore.mindspore.dataset.vision.random_adjustments import affine
from torchspore.mindspore.dataset.vision.random_transforms import check_probability
from torchspore.mindspore.dataset.vision.utils import Inter


class Affine(OnDevice, ImageTensorOperation):
    """Rotates clockwise by `degrees`, shifts by fractions of width and height, scales and shears by degrees, about the image's middle."""

    _of_truths = "bool"

    def __init__(
        self, degrees: float, translate: Any, scale: float, shear: Any, resample: Inter = Inter.NEAREST, fill_value: Any = 0
    ) -> None:
        check_number("Affine", "degrees", degrees, -180, 180)
        self.translate = _pair("translate", translate, 1)
        check_number("Affine", "scale", scale, 0, 16777216, above=True)
        self.shear = _pair("shear", (shear, 0.0) if isinstance(shear, (int, float)) else shear, 180)
        geometry.check_inter("Affine", resample, "resample")
        self.degrees, self.scale, self.resample = degrees, scale, resample
        self.fill_value = geometry.check_fill("Affine", fill_value)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("Affine", value)
        shift = self.translate[0] * value.shape[1], self.translate[1] * value.shape[0]
        return affine(value, self.degrees, shift, self.scale, self.shear, self.resample, self.fill_value)


def _pair(argument: str, values: Any, limit: float) -> tuple[float, float]:
    check_type("Affine", argument, values, (list, tuple), "two numbers")
    if len(values) != 2:
        raise TypeError(message(f"Affine({argument}={short(values)})", "two numbers"))
    for value in values:
        check_number("Affine", argument, value, -limit, limit)
    return values[0], values[1]


def _corners(argument: str, points: Any) -> np.ndarray:
    subject = f"Perspective({argument}={short(points)})"
    if not isinstance(points, (list, tuple)) or any(not isinstance(point, (list, tuple)) for point in points):
        raise TypeError(message(subject, "four points (x, y)"))
    if len(points) != 4 or any(len(point) != 2 for point in points):
        raise TypeError(message(subject, "four points (x, y)"))
    for point in points:
        for coordinate in point:
            check_type("Perspective", argument, coordinate, int, "points of ints")
    return np.array(points, np.float32)


class Perspective(OnDevice, ImageTensorOperation):
    """Maps the quadrilateral `start_points` to `end_points`: (x, y) of the upper left, upper right, lower right, lower left corner."""

    _of_truths = "uint8"

    def __init__(self, start_points: Any, end_points: Any, interpolation: Inter = Inter.BILINEAR) -> None:
        self.start_points, self.end_points = _corners("start_points", start_points), _corners("end_points", end_points)
        geometry.check_inter("Perspective", interpolation)
        self.interpolation = interpolation
        self._maps: dict[tuple[int, int], Any] = {}  # for each size of images so far: a data set has one, or few

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        return pillow().perspective(image, self.start_points, self.end_points, self.interpolation)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("Perspective", value)
        size = value.shape[0], value.shape[1]
        pixel_maps = self._maps.get(size) or self._pixel_maps(size)
        return geometry.remap(value, *pixel_maps, self.interpolation, 0)

    def _pixel_maps(self, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray | None]:
        import cv2

        inverse = np.linalg.inv(cv2.getPerspectiveTransform(self.start_points, self.end_points))
        pixel_maps = _perspective_pixels(inverse, size[1], size[0], self.interpolation)
        if len(self._maps) < 8:
            self._maps[size] = pixel_maps
        return pixel_maps


def _perspective_pixels(inverse: np.ndarray, width: int, height: int, interpolation: Inter) -> tuple[np.ndarray, np.ndarray | None]:
    """Return each pixel's source, in the fixed-point numbers of OpenCV 4's warpPerspective; see `geometry._source_pixels`."""
    step = 1 if interpolation is Inter.NEAREST else 32
    rows, columns = np.arange(height)[:, None], np.arange(width)[None]
    x, y, depth = (coefficients[0] * columns + coefficients[1] * rows + coefficients[2] for coefficients in inverse)
    scale = np.divide(step, depth, out=np.zeros_like(depth), where=depth != 0)
    x, y = (np.rint(np.clip(coordinate * scale, -(2**31), 2**31 - 1)).astype(np.int64) for coordinate in (x, y))
    if step == 1:
        return np.clip(np.stack([x, y], -1), -32768, 32767).astype(np.int16), None
    pixels = np.clip(np.stack([x >> 5, y >> 5], -1), -32768, 32767).astype(np.int16)
    return pixels, ((y & 31) * 32 + (x & 31)).astype(np.uint16)


class RandomPerspective(ImageTensorOperation):
    """With probability `prob`, moves each corner of a PIL image inwards by a random fraction, up to `distortion_scale` of half a side."""

    def __init__(self, distortion_scale: float = 0.5, prob: float = 0.5, interpolation: Inter = Inter.BICUBIC) -> None:
        check_type("RandomPerspective", "distortion_scale", distortion_scale, float, "a float")
        check_type("RandomPerspective", "prob", prob, float, "a float")
        check_number("RandomPerspective", "distortion_scale", distortion_scale, 0, 1)
        self.distortion_scale, self.prob = distortion_scale, check_probability("RandomPerspective", prob)
        geometry.check_inter("RandomPerspective", interpolation)
        self.interpolation = interpolation

    def _choose(self, values: tuple[Any, ...]) -> Any:
        for value in values:
            if not is_pil(value):
                raise ValueError(message(f"RandomPerspective of {type(value).__name__}", "a PIL image", hint="put ToPIL() first"))
        if not happens(self.prob):
            return None
        return perspective_points(values[0], self.distortion_scale)

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        return image if chosen is None else pillow().perspective(image, *chosen, self.interpolation)


def perspective_points(image: Any, distortion_scale: float) -> tuple[list[Any], list[Any]]:
    """Return the corners of a PIL image, and their destinations."""
    width, height = image.width, image.height
    across, down = int(distortion_scale * (width // 2)) + 1, int(distortion_scale * (height // 2)) + 1
    drawn = generator()
    left, right, lower_right, lower_left = (
        (int(x), int(y)) for x, y in zip(drawn.integers(0, across, 4), drawn.integers(0, down, 4))
    )
    ends = [
        left, (width - 1 - right[0], right[1]), (width - 1 - lower_right[0], height - 1 - lower_right[1]),
        (lower_left[0], height - 1 - lower_left[1]),
    ]
    return [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)], ends
