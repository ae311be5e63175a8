"""Transforms of Pillow images by Pillow's functions, whose pixels sometimes differ from OpenCV's by one."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

from torchspore.mindspore.dataset.vision.utils import Border, Inter

RESAMPLING = {
    Inter.NEAREST: Image.Resampling.NEAREST, Inter.ANTIALIAS: Image.Resampling.LANCZOS, Inter.BILINEAR: Image.Resampling.BILINEAR,
    Inter.BICUBIC: Image.Resampling.BICUBIC, Inter.AREA: Image.Resampling.BOX, Inter.PILCUBIC: Image.Resampling.BICUBIC,
}


def fill_of(image: Any, fill: Any) -> Any:
    """Return the fill value for this image: one number, or a tuple with one for each band."""
    bands = len(image.getbands())
    if isinstance(fill, (list, tuple)):
        return tuple(fill) if bands == len(fill) else fill[0]
    return (fill,) * bands if bands > 1 else fill


def brightness(image: Any, factor: float) -> Any:
    """Adjust brightness: black for 0, the image for 1, brighter above."""
    return ImageEnhance.Brightness(image).enhance(factor)


def contrast(image: Any, factor: float) -> Any:
    """Adjust contrast: grey for 0, the image for 1, more contrast above."""
    return ImageEnhance.Contrast(image).enhance(factor)


def saturation(image: Any, factor: float) -> Any:
    """Adjust saturation: grey for 0, the image for 1, more colour above."""
    return ImageEnhance.Color(image).enhance(factor)


def sharpness(image: Any, factor: float) -> Any:
    """Adjust sharpness: blurred for 0, the image for 1, sharper above."""
    return ImageEnhance.Sharpness(image).enhance(factor)


def hue(image: Any, factor: float) -> Any:
    """Rotate the hue by `factor` of a full turn; an image without colour stays unchanged."""
    if image.mode in ("L", "1", "I", "F"):
        return image
    hues, *others = image.convert("HSV").split()
    rotated = Image.fromarray(np.asarray(hues) + np.uint8(int(factor * 255) % 256))
    return Image.merge("HSV", (rotated, *others)).convert(image.mode)


def gamma(image: Any, power: float, gain: float) -> Any:
    """Compute `255 * gain * (image / 255) ** power`."""
    table = [(255 + 1 - 1e-3) * gain * (step / 255.0) ** power for step in range(256)]
    return image.point(table * len(image.getbands()))


def auto_contrast(image: Any, cutoff: float, ignore: Any) -> Any:
    """Stretch the brightness of each band."""
    return ImageOps.autocontrast(image, cutoff, ignore or None)


def crop(image: Any, top: int, left: int, height: int, width: int) -> Any:
    """Crop a part of the image; black outside it."""
    return image.crop((left, top, left + width, top + height))


def center_crop(image: Any, size: tuple[int, int]) -> Any:
    """Crop the middle."""
    height, width = size
    return crop(image, round((image.height - height) / 2), round((image.width - width) / 2), height, width)


def pad(image: Any, sides: tuple[int, int, int, int], fill: Any, mode: Border) -> Any:
    """Pad an image by (left, top, right, bottom) pixels."""
    if mode is Border.CONSTANT:
        return ImageOps.expand(image, sides, fill_of(image, fill))
    left, top, right, bottom = sides
    pixels = np.asarray(image)
    widths = ((top, bottom), (left, right), *([(0, 0)] * (pixels.ndim - 2)))
    return Image.fromarray(np.pad(pixels, widths, mode=mode.value))


def rotate(image: Any, degrees: float, resample: Inter, expand: bool, center: Any, fill: Any) -> Any:
    """Rotate counter-clockwise."""
    return image.rotate(degrees, RESAMPLING[resample], expand, center, fillcolor=fill_of(image, fill))


def affine(
    image: Any, degrees: float, shift: tuple[float, float], scale: float, shear: tuple[float, float], resample: Inter, fill: Any
) -> Any:
    """Rotate clockwise by `degrees`, shift by pixels, scale, and shear by degrees, about the middle."""
    angle, x, y = (math.radians(number) for number in (degrees, *shear))
    middle = image.width * 0.5 + 0.5, image.height * 0.5 + 0.5
    # The source position of each pixel of the result: the inverse of rotation and shear, in Pillow's format.
    linear = np.array([
        [math.cos(angle - y) / math.cos(y), -math.cos(angle - y) * math.tan(x) / math.cos(y) - math.sin(angle)],
        [math.sin(angle - y) / math.cos(y), -math.sin(angle - y) * math.tan(x) / math.cos(y) + math.cos(angle)],
    ])
    inverse = np.array([[linear[1, 1], -linear[0, 1]], [-linear[1, 0], linear[0, 0]]]) / scale
    start = np.array(middle) - inverse @ (np.array(middle) + shift)
    matrix = (*inverse[0], start[0], *inverse[1], start[1])
    return image.transform(image.size, Image.Transform.AFFINE, matrix, RESAMPLING[resample], fillcolor=fill_of(image, fill))


def perspective(image: Any, start_points: Any, end_points: Any, interpolation: Inter) -> Any:
    """Map the quadrilateral `start_points` to `end_points`, each four (x, y)."""
    rows = []
    for (x, y), (u, v) in zip(end_points, start_points):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    matrix = np.linalg.lstsq(np.array(rows, float), np.array(start_points, float).reshape(8), rcond=None)[0]
    return image.transform(image.size, Image.Transform.PERSPECTIVE, matrix.tolist(), RESAMPLING[interpolation])


def grayscale(image: Any, channels: int) -> Any:
    """Convert to grey, in one band or three equal ones."""
    grey = image.convert("L")
    return grey if channels == 1 else Image.merge("RGB", (grey,) * 3)
