"""Image transforms that move pixels: sizes, crops, borders, flips, rotations."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.operation import is_pil
from torchspore.mindspore.dataset.core.validator_helpers import (
    FLOAT_MAX_INTEGER,
    as_number,
    check_bool,
    check_int,
    check_number,
    check_type,
    with_sentence,
)
from torchspore.mindspore.dataset.vision.color import pillow
from torchspore.mindspore.dataset.vision.images import ImageTensorOperation, OnDevice, check_image, check_size, to_pil
from torchspore.mindspore.dataset.vision.utils import Border, Inter


def check_inter(call: str, interpolation: Any, name: str = "interpolation") -> None:
    """Raises TypeError unless the value is an Inter."""
    check_type(call, name, interpolation, Inter, "a member of Inter", hint="write Inter.BILINEAR")


def resize(image: Any, size: tuple[int, int], interpolation: Inter, call: str = "Resize") -> Any:
    """Resize an image to `size` (height, width). Arrays go through OpenCV, PIL images through PIL, as in MindSpore's pipeline."""
    height, width = size
    if is_pil(image):
        from PIL import Image

        kinds = {Inter.NEAREST: 0, Inter.ANTIALIAS: 1, Inter.BILINEAR: 2, Inter.BICUBIC: 3, Inter.AREA: 4, Inter.PILCUBIC: 3}
        return image.resize((width, height), Image.Resampling(kinds[interpolation]))
    check_image(call, image)
    if interpolation is Inter.ANTIALIAS:
        raise TypeError(
            message(f"{call}(interpolation=Inter.ANTIALIAS) of an array", "a PIL image", hint="put ToPIL() first, or Decode(to_pil=True)")
        )
    if interpolation is Inter.PILCUBIC:
        if image.dtype != np.uint8:
            raise RuntimeError(message(f"{call}(interpolation=Inter.PILCUBIC) of {image.dtype}", "uint8"))
        return np.asarray(resize(to_pil(image), size, Inter.PILCUBIC)).reshape(height, width, *image.shape[2:])
    import cv2

    kinds = {Inter.NEAREST: cv2.INTER_NEAREST, Inter.BILINEAR: cv2.INTER_LINEAR, Inter.BICUBIC: cv2.INTER_CUBIC, Inter.AREA: cv2.INTER_AREA}
    if image.shape[:2] == (height, width):
        return image.copy()
    try:
        resized = cv2.resize(image, (width, height), interpolation=kinds[interpolation])
    except cv2.error:
        raise RuntimeError(message(f"{call} of {image.dtype} {list(image.shape)}", "uint8, int16, uint16, float32 or float64")) from None
    return resized.reshape(height, width, *image.shape[2:])


class Resize(OnDevice, ImageTensorOperation):
    """Resizes to `size`: (height, width), or one int for the shorter side. Raises TypeError and ValueError for invalid sizes."""

    _of_truths = "bool"

    _takes_stacks = True

    def __init__(self, size: Any, interpolation: Inter = Inter.BILINEAR) -> None:
        check_size("Resize", as_number(size))
        check_inter("Resize", interpolation)
        self.size, self.interpolation = size, interpolation

    def _transform_single(self, value: Any, chosen: Any) -> Any:
        return resize(value, self._target(value), self.interpolation)

    def _apply_stack(self, values: np.ndarray) -> np.ndarray:
        size = self._target(values[0])
        return np.stack([resize(value, size, self.interpolation) for value in values])

    def _target(self, value: Any) -> tuple[int, int]:
        if not isinstance(self.size, int):
            return self.size[0], self.size[1]
        if not is_pil(value):
            check_image("Resize", value)
        height, width = (value.height, value.width) if is_pil(value) else value.shape[:2]
        if height < width:
            return self.size, int(self.size * width / height)
        return int(self.size * height / width), self.size


def crop(image: np.ndarray, top: int, left: int, height: int, width: int) -> np.ndarray:
    """Return a part of an image."""
    return np.ascontiguousarray(image[top : top + height, left : left + width])


class CenterCrop(ImageTensorOperation):
    """Crops the middle of an image to `size` (height, width); pads a smaller image with black."""

    _takes_stacks = True
    _gives_picture = True

    def __init__(self, size: Any) -> None:
        self.size = check_size("CenterCrop", size)

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        return pillow().center_crop(image, self.size)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("CenterCrop", value)
        height, width = self.size
        missing = max(height - value.shape[0], 0), max(width - value.shape[1], 0)
        if any(missing):
            top, left = -(-missing[0] // 2), -(-missing[1] // 2)
            value = pad(value, (left, top, missing[1] - left, missing[0] - top), 0, Border.CONSTANT)
        return crop(value, (value.shape[0] - height) // 2, (value.shape[1] - width) // 2, height, width)


class Crop(OnDevice, ImageTensorOperation):
    """Crops a part of `size` (height, width) whose upper left corner is at `coordinates` (top, left)."""

    def __init__(self, coordinates: Any, size: Any) -> None:
        check_type("Crop", "coordinates", coordinates, (list, tuple), "(top, left)")
        if len(coordinates) != 2:
            raise TypeError(message(f"Crop(coordinates={short(coordinates)})", "(top, left)"))
        for coordinate in coordinates:
            check_int("Crop", "coordinates", coordinate, 0)
        self.coordinates, self.size = tuple(coordinates), check_size("Crop", size)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("Crop", value)
        top, left = self.coordinates
        if top + self.size[0] > value.shape[0] or left + self.size[1] > value.shape[1]:
            raise RuntimeError(
                message(f"Crop({self.coordinates}, {self.size}) of an image {value.shape[0]}x{value.shape[1]}", "a part inside it")
            )
        return crop(value, top, left, *self.size)


def check_padding(call: str, padding: Any) -> tuple[int, int, int, int]:
    """Return a padding as (left, top, right, bottom): one int, (left and right, top and bottom), or all four."""
    check_type(call, "padding", padding, (int, list, tuple), "an int, two or four of them")
    sides = [padding] * 4 if isinstance(padding, int) else list(padding)
    if len(sides) == 2:
        sides = [sides[0], sides[1], sides[0], sides[1]]
    if len(sides) != 4:
        text = message(f"{call}(padding={short(padding)})", "an int, two or four of them")
        raise ValueError(with_sentence(text, "The size of the padding list or tuple should be 2 or 4."))
    for side in sides:
        check_int(call, "padding", side, 0)
    return sides[0], sides[1], sides[2], sides[3]


def check_fill(call: str, fill_value: Any) -> Any:
    """Return a fill value: one int in [0, 255], or one for each of three channels."""
    values = list(fill_value) if isinstance(fill_value, tuple) else [fill_value]
    if not isinstance(fill_value, (int, tuple)) or (isinstance(fill_value, tuple) and len(values) != 3):
        text = message(f"{call}(fill_value={short(fill_value)})", "an int or a tuple of three")
        raise TypeError(f"{text} fill_value should be a single integer or a 3-tuple.")
    for number in values:
        check_int(call, "fill_value", number, 0, 255)
    return values[0] if len(values) == 1 else values


def pad(image: np.ndarray, sides: tuple[int, int, int, int], fill: Any, mode: Border) -> np.ndarray:
    """Pad an image by (left, top, right, bottom) pixels."""
    left, top, right, bottom = sides
    widths = ((top, bottom), (left, right), *([(0, 0)] * (image.ndim - 2)))
    if mode is not Border.CONSTANT:
        return np.pad(image, widths, mode=mode.value)
    if not isinstance(fill, list):
        return np.pad(image, widths, constant_values=fill)
    result = np.empty((image.shape[0] + top + bottom, image.shape[1] + left + right, *image.shape[2:]), image.dtype)
    result[...] = np.asarray(fill, image.dtype) if image.ndim == 3 and image.shape[2] == 3 else fill[0]
    result[top : top + image.shape[0], left : left + image.shape[1]] = image
    return result


class Pad(OnDevice, ImageTensorOperation):
    """Adds `padding` pixels: one int, (left and right, top and bottom), or (left, top, right, bottom)."""

    _of_truths = "uint8"

    _gives_picture = True

    def __init__(self, padding: Any, fill_value: Any = 0, padding_mode: Border = Border.CONSTANT) -> None:
        self.padding, self.fill_value = check_padding("Pad", padding), check_fill("Pad", fill_value)
        check_type("Pad", "padding_mode", padding_mode, Border, "a member of Border")
        self.padding_mode = padding_mode

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("Pad", value)
        return pad(value, self.padding, self.fill_value, self.padding_mode)


def flip(image: np.ndarray, axis: int) -> np.ndarray:
    """Flip the rows (axis 0) or columns (axis 1) of an image."""
    import cv2

    if image.dtype.char in "BbHhifd" and image.size and (image.ndim == 2 or image.shape[2] <= _MOST_CHANNELS):
        return cv2.flip(image, axis).reshape(image.shape)
    return np.ascontiguousarray(np.flip(image, axis))


_MOST_CHANNELS = 4
"""Maximum size of an image for OpenCV."""


class HorizontalFlip(OnDevice, ImageTensorOperation):
    """Swaps left and right."""

    _takes_stacks = True

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("HorizontalFlip", value)
        return flip(value, 1)


class VerticalFlip(OnDevice, ImageTensorOperation):
    """Swaps top and bottom."""

    _takes_stacks = True

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("VerticalFlip", value)
        return flip(value, 0)


def rotate(image: np.ndarray, degrees: float, resample: Inter, expand: bool, center: Any, fill: Any) -> np.ndarray:
    """Rotate an image counter-clockwise about `center` (x, y), by default its middle."""
    import cv2

    height, width = image.shape[:2]
    middle = ((width - 1) / 2, (height - 1) / 2) if center is None else center
    matrix = cv2.getRotationMatrix2D(middle, degrees, 1.0)
    if expand:
        cosine, sine = abs(matrix[0, 0]), abs(matrix[0, 1])
        wide, high = height * sine + width * cosine, height * cosine + width * sine
        matrix[:, 2] += wide / 2 - width / 2, high / 2 - height / 2
        width, height = round(wide), round(high)
    return warp(image, matrix, width, height, resample, fill)


def warp(image: np.ndarray, matrix: np.ndarray, width: int, height: int, resample: Inter, fill: Any) -> np.ndarray:
    """Return an image of `width` x `height` with the pixel p of `image` at `matrix` (2, 3) times (p, 1)."""
    import cv2

    pixels, part = _source_pixels(cv2.invertAffineTransform(matrix), width, height, resample)
    return remap(image, pixels, part, resample, fill)


def remap(image: np.ndarray, pixels: np.ndarray, part: np.ndarray | None, resample: Inter, fill: Any) -> np.ndarray:
    """Return the pixels at these positions, see `_source_pixels`."""
    import cv2

    kinds = {Inter.NEAREST: cv2.INTER_NEAREST, Inter.BILINEAR: cv2.INTER_LINEAR, Inter.BICUBIC: cv2.INTER_CUBIC}
    filled = [float(number) for number in (fill if isinstance(fill, (list, tuple)) else [fill] * 3)]
    remapped = cv2.remap(image, pixels, part, kinds.get(resample, cv2.INTER_LINEAR), borderMode=cv2.BORDER_CONSTANT, borderValue=filled)
    return remapped.reshape(*pixels.shape[:2], *image.shape[2:])


def _source_pixels(inverse: np.ndarray, width: int, height: int, resample: Inter) -> tuple[np.ndarray, np.ndarray | None]:
    """Return, for each pixel of the result, its source pixel (x, y) in the image, and the position within it in 32 x 32 steps.

    These are the fixed-point numbers of OpenCV 4's warpAffine, which MindSpore uses; OpenCV 5 rounds in another way.
    """
    scale = 1024
    step = 1 if resample is Inter.NEAREST else 32
    rows, columns = np.arange(height)[:, None], np.arange(width)[None]
    coordinates = []
    for along, down, start in inverse:
        base = np.rint((down * rows + start) * scale).astype(np.int64) + scale // step // 2
        coordinates.append((base + np.rint(along * columns * scale).astype(np.int64)) >> (10 if step == 1 else 5))
    x, y = coordinates
    if step == 1:
        return np.stack([x, y], -1).astype(np.int16), None
    return np.stack([x >> 5, y >> 5], -1).astype(np.int16), ((y & 31) * 32 + (x & 31)).astype(np.uint16)


def check_center(call: str, center: Any) -> None:
    """Raises ValueError unless `center` is None or two numbers, TypeError for members that are not numbers."""
    if center is None:
        return
    if not isinstance(center, tuple) or len(center) != 2:
        text = message(f"{call}(center={short(center)})", "(x, y)")
        raise ValueError(with_sentence(text, "Value center needs to be a 2-tuple."))
    for coordinate in center:
        check_type(call, "center", coordinate, (int, float), "a number")


class Rotate(OnDevice, ImageTensorOperation):
    """Rotates an image by `degrees` counter-clockwise; `expand` enlarges the result to contain the full image."""

    _of_truths = "bool"

    _takes_stacks = True

    def __init__(
        self, degrees: float, resample: Inter = Inter.NEAREST, expand: bool = False, center: Any = None, fill_value: Any = 0
    ) -> None:
        check_number("Rotate", "degrees", degrees, -FLOAT_MAX_INTEGER, FLOAT_MAX_INTEGER)
        check_inter("Rotate", resample, "resample")
        check_bool("Rotate", "expand", expand)
        check_center("Rotate", center)
        self.degrees, self.resample, self.expand, self.center = degrees, resample, expand, center
        self.fill_value = check_fill("Rotate", fill_value)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("Rotate", value)
        return rotate(value, self.degrees, self.resample, self.expand, self.center, self.fill_value)
