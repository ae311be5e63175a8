"""What transforms do to an image of Pillow: with Pillow's own functions, whose pixels differ from OpenCV's by a step here and there."""
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
    """A fill value for this image: one number, or a tuple with one for each band."""
    bands = len(image.getbands())
    if isinstance(fill, (list, tuple)):
        return tuple(fill) if bands == len(fill) else fill[0]
    return (fill,) * bands if bands > 1 else fill


def brightness(image: Any, factor: float) -> Any:
    """Black for 0, the image for 1, brighter above."""
    return ImageEnhance.Brightness(image).enhance(factor)


def contrast(image: Any, factor: float) -> Any:
    """Grey for 0, the image for 1, more contrast above."""
    return ImageEnhance.Contrast(image).enhance(factor)


def saturation(image: Any, factor: float) -> Any:
    """Without colour for 0, the image for 1, more colour above."""
    return ImageEnhance.Color(image).enhance(factor)


def sharpness(image: Any, factor: float) -> Any:
    """Blurred for 0, the image for 1, sharper above."""
    return ImageEnhance.Sharpness(image).enhance(factor)


def hue(image: Any, factor: float) -> Any:
    """Turns the colour circle by `factor` of a full turn; an image without colour stays."""
    if image.mode in ("L", "1", "I", "F"):
        return image
    hues, *others = image.convert("HSV").split()
    turned = Image.fromarray(np.asarray(hues) + np.uint8(int(factor * 255) % 256))
    return Image.merge("HSV", (turned, *others)).convert(image.mode)


def gamma(image: Any, power: float, gain: float) -> Any:
    """`255 * gain * (image / 255) ** power`."""
    table = [(255 + 1 - 1e-3) * gain * (step / 255.0) ** power for step in range(256)]
    return image.point(table * len(image.getbands()))


def auto_contrast(image: Any, cutoff: float, ignore: Any) -> Any:
    """Stretches the brightness of each band."""
    return ImageOps.autocontrast(image, cutoff, ignore or None)


def crop(image: Any, top: int, left: int, height: int, width: int) -> Any:
    """A part of the image; black outside it."""
    return image.crop((left, top, left + width, top + height))


def center_crop(image: Any, size: tuple[int, int]) -> Any:
    """The middle."""
    height, width = size
    return crop(image, round((image.height - height) / 2), round((image.width - width) / 2), height, width)


def pad(image: Any, sides: tuple[int, int, int, int], fill: Any, mode: Border) -> Any:
    """An image with (left, top, right, bottom) more pixels."""
    if mode is Border.CONSTANT:
        return ImageOps.expand(image, sides, fill_of(image, fill))
    left, top, right, bottom = sides
    pixels = np.asarray(image)
    widths = ((top, bottom), (left, right), *([(0, 0)] * (pixels.ndim - 2)))
    return Image.fromarray(np.pad(pixels, widths, mode=mode.value))


def rotate(image: Any, degrees: float, resample: Inter, expand: bool, center: Any, fill: Any) -> Any:
    """Turned counter-clockwise."""
    return image.rotate(degrees, RESAMPLING[resample], expand, center, fillcolor=fill_of(image, fill))


def affine(
    image: Any, degrees: float, shift: tuple[float, float], scale: float, shear: tuple[float, float], resample: Inter, fill: Any
) -> Any:
    """Turned clockwise by `degrees`, shifted by pixels, scaled and sheared by degrees, about its middle."""
    angle, x, y = (math.radians(one) for one in (degrees, *shear))
    middle = image.width * 0.5 + 0.5, image.height * 0.5 + 0.5
    # The place that each pixel of the result comes from: the inverse of turn and shear, as Pillow wants it.
    linear = np.array([
        [math.cos(angle - y) / math.cos(y), -math.cos(angle - y) * math.tan(x) / math.cos(y) - math.sin(angle)],
        [math.sin(angle - y) / math.cos(y), -math.sin(angle - y) * math.tan(x) / math.cos(y) + math.cos(angle)],
    ])
    inverse = np.array([[linear[1, 1], -linear[0, 1]], [-linear[1, 0], linear[0, 0]]]) / scale
    start = np.array(middle) - inverse @ (np.array(middle) + shift)
    matrix = (*inverse[0], start[0], *inverse[1], start[1])
    return image.transform(image.size, Image.Transform.AFFINE, matrix, RESAMPLING[resample], fillcolor=fill_of(image, fill))


def perspective(image: Any, start_points: Any, end_points: Any, interpolation: Inter) -> Any:
    """The quadrilateral `start_points` drawn into `end_points`, each four (x, y)."""
    rows = []
    for (x, y), (u, v) in zip(end_points, start_points):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    matrix = np.linalg.lstsq(np.array(rows, float), np.array(start_points, float).reshape(8), rcond=None)[0]
    return image.transform(image.size, Image.Transform.PERSPECTIVE, matrix.tolist(), RESAMPLING[interpolation])


def grayscale(image: Any, channels: int) -> Any:
    """Brightness alone, in one band or three equal ones."""
    grey = image.convert("L")
    return grey if channels == 1 else Image.merge("RGB", (grey,) * 3)
