"""Colour spaces of arrays, and linear maps of images."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_type
from torchspore.mindspore.dataset.vision.images import ImageTensorOperation
from torchspore.translations import translate


def check_rgb(call: str, images: Any, is_hwc: bool) -> None:
    """Raises TypeError unless the value is an array of an image, or of a batch of images, with three channels."""
    check_type(call, "image", images, np.ndarray, "a NumPy array")
    if images.ndim not in (3, 4):
        raise TypeError(message(f"{call} of shape {list(images.shape)}", "an image or a batch of images"))
    if images.shape[-1 if is_hwc else -3] != 3:
        hint = None if is_hwc else "write is_hwc=True for images (H, W, C)"
        raise TypeError(message(f"{call} of shape {list(images.shape)}", "three channels", hint=hint))


def rgb_to_hsv(images: np.ndarray, is_hwc: bool) -> np.ndarray:
    """Compute hue, saturation and value, each in [0, 1], from red, green and blue in [0, 1], as float64; 0 to 255 gives values up to 255.

    The formulas are those of Python's colorsys (Smith 1978, "Color Gamut Transform Pairs").
    """
    check_rgb("RgbToHsv", images, is_hwc)
    axis = -1 if is_hwc else -3
    colours = np.moveaxis(images, axis, 0).astype(np.float64)
    maximum, minimum = colours.max(0), colours.min(0)
    span = maximum - minimum
    divisor = np.where(span == 0, 1, span)
    red, green, blue = (maximum - colours) / divisor
    hue = np.where(colours[0] == maximum, blue - green, np.where(colours[1] == maximum, 2 + red - blue, 4 + green - red)) / 6 % 1.0
    hsv = np.stack([np.where(span == 0, 0, hue), span / np.where(maximum == 0, 1, maximum), maximum], axis)
    return hsv


def hsv_to_rgb(images: np.ndarray, is_hwc: bool) -> np.ndarray:
    """Compute red, green and blue from hue, saturation and value; the inverse of `rgb_to_hsv`."""
    check_rgb("HsvToRgb", images, is_hwc)
    axis = -1 if is_hwc else -3
    hue, saturation, value = np.moveaxis(images, axis, 0).astype(np.float64)
    sector = (hue * 6).astype(np.int64)
    fraction = hue * 6 - sector
    low = value * (1 - saturation)
    falling, rising = value * (1 - saturation * fraction), value * (1 - saturation * (1 - fraction))
    sector %= 6
    red, green, blue = (
        np.choose((sector + turn) % 6, [value, falling, low, low, rising, value]) for turn in (0, 4, 2)
    )
    return np.stack([red, green, blue], axis)


def rgb_to_bgr(images: np.ndarray, is_hwc: bool) -> np.ndarray:
    """Reverse the three channels of images."""
    check_rgb("RgbToBgr", images, is_hwc)
    return np.ascontiguousarray(np.flip(images, -1 if is_hwc else -3))


class RgbToBgr(ImageTensorOperation):
    """1.x: reverses the channels of images (C, H, W) or batches of them; (H, W, C) with `is_hwc`."""

    def __init__(self, is_hwc: bool = False) -> None:
        check_bool("RgbToBgr", "is_hwc", is_hwc)
        self.is_hwc = is_hwc

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        return rgb_to_bgr(value, self.is_hwc)


class RgbToHsv(ImageTensorOperation):
    """Converts images (C, H, W) or batches of them from red, green, blue to hue, saturation, value; (H, W, C) with `is_hwc`."""

    def __init__(self, is_hwc: bool = False) -> None:
        check_bool("RgbToHsv", "is_hwc", is_hwc)
        self.is_hwc = is_hwc

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        return rgb_to_hsv(value, self.is_hwc)


class HsvToRgb(ImageTensorOperation):
    """Converts images (C, H, W) or batches of them from hue, saturation, value to red, green, blue; (H, W, C) with `is_hwc`."""

    def __init__(self, is_hwc: bool = False) -> None:
        check_bool("HsvToRgb", "is_hwc", is_hwc)
        self.is_hwc = is_hwc

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        return hsv_to_rgb(value, self.is_hwc)


def linear_transform(image: np.ndarray, transformation_matrix: np.ndarray, mean_vector: np.ndarray) -> np.ndarray:
    """Subtract `mean_vector` (D,) from the image's D numbers and multiply by `transformation_matrix` (D, D); the shape stays the same."""
    check_type("LinearTransformation", "image", image, np.ndarray, "a NumPy array")
    sizes = transformation_matrix.shape, mean_vector.shape
    if sizes != ((image.size, image.size), (image.size,)):
        expected = f"a matrix ({image.size}, {image.size}) and a mean ({image.size},), got {sizes[0]} and {sizes[1]}"
        raise ValueError(message(f"LinearTransformation of shape {list(image.shape)}", expected))
    return ((image.reshape(1, -1) - mean_vector) @ transformation_matrix).reshape(image.shape)


class LinearTransformation(ImageTensorOperation):
    """Subtracts `mean_vector` (D,) from the D numbers of an image and multiplies by `transformation_matrix` (D, D)."""

    def __init__(self, transformation_matrix: Any, mean_vector: Any) -> None:
        check_type("LinearTransformation", "transformation_matrix", transformation_matrix, np.ndarray, "a NumPy array")
        check_type("LinearTransformation", "mean_vector", mean_vector, np.ndarray, "a NumPy array")
        shape, mean_shape = transformation_matrix.shape, mean_vector.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            text = message(f"LinearTransformation(transformation_matrix of shape {list(shape)})", "a square matrix")
            raise ValueError(f"{text} transformation_matrix should be a square matrix. Got shape {shape} instead.")
        if mean_shape != shape[:1]:
            expected = translate("shape [{length}]").format(length=shape[0])
            text = message(f"LinearTransformation(mean_vector of shape {list(mean_shape)})", expected)
            raise ValueError(f"{text} mean_vector length {len(mean_vector) if mean_shape else 0} should match either one dimension of the "
                             f"square transformation_matrix {shape}.")
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        return linear_transform(value, self.transformation_matrix, self.mean_vector)
