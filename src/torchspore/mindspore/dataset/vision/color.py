"""Image transforms that change the values of pixels."""
from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core import destination
from torchspore.mindspore.dataset.core.validator_helpers import (
    FLOAT_MAX_INTEGER,
    as_number,
    check_bool,
    check_choice,
    check_int,
    check_number,
    check_type,
    interval_error,
    with_sentence,
)
from torchspore.mindspore.dataset.vision.images import ImageTensorOperation, OnDevice, check_image, planar
from torchspore.mindspore.dataset.vision.utils import ConvertMode
from torchspore.translations import translatable


class Rescale(ImageTensorOperation):
    """Computes `image * rescale + shift`, as float32."""

    def __init__(self, rescale: float, shift: float) -> None:
        for name, value in (("rescale", rescale), ("shift", shift)):
            check_number("Rescale", name, value, -FLOAT_MAX_INTEGER, FLOAT_MAX_INTEGER)
        self.rescale, self.shift = rescale, shift

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        return self._apply_stack(value)

    def _apply_stack(self, values: np.ndarray) -> np.ndarray:
        scaled = np.multiply(values, np.float32(self.rescale), dtype=np.float32, casting="unsafe")
        if self.shift:
            scaled += np.float32(self.shift)
        return scaled


def _check_means(call: str, mean: Any, std: Any) -> tuple[np.ndarray, np.ndarray]:
    for name, values in (("mean", mean), ("std", std)):
        check_type(call, name, values, (list, tuple), "a list with one number for each channel")
        for value in values:
            check_number(call, name, value, 0, 255, above=name == "std")
    if len(mean) != len(std):
        text = message(f"{call}(mean={mean}, std={std})", "lists of one length")
        raise ValueError(with_sentence(text, "Length of mean and std must be equal."))
    return np.asarray(mean, np.float32), np.asarray(std, np.float32)


class Normalize(OnDevice, ImageTensorOperation):
    """Computes `(image - mean) / std` for each channel, as float32; of (H, W, C), with `is_hwc=False` of (C, H, W).

    Raises RuntimeError if the number of means is neither 1 nor that of the channels.
    """

    _takes_stacks = True

    def __init__(self, mean: Any, std: Any, is_hwc: bool = True) -> None:
        self._mean, self._std = _check_means("Normalize", mean, std)
        check_bool("Normalize", "is_hwc", is_hwc)
        self.is_hwc = is_hwc

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("Normalize", value)
        channels = 1 if value.ndim == 2 else value.shape[2 if self.is_hwc else 0]
        if len(self._mean) not in (1, channels):
            hint = None if self.is_hwc else "is_hwc=False is for images (C, H, W)"
            raise RuntimeError(
                message(
                    f"Normalize with {len(self._mean)} means of shape {list(value.shape)}",
                    f"1 or {channels}, one for each channel",
                    hint=hint,
                )
            )
        if self.is_hwc and value.ndim == 3:        # channel by channel is several times as fast, and already in the order of HWC2CHW
            return self._normal(planar(value), (-1, 1, 1)).transpose(1, 2, 0)
        return self._normal(value, (-1,) if self.is_hwc or value.ndim == 2 else (-1, 1, 1))

    def _normal(self, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        result = destination.empty(values.shape, np.float32)
        np.subtract(values, self._mean.reshape(shape), out=result, dtype=np.float32, casting="unsafe")
        result /= self._std.reshape(shape)
        return result

    def _apply_stack(self, values: np.ndarray) -> np.ndarray:
        if values.ndim != 4 or len(self._mean) not in (1, values.shape[3 if self.is_hwc else 1]):
            raise ValueError  # processing the row separately reports the error
        if not self.is_hwc:
            return self._normal(values, (-1, 1, 1))
        result = np.empty((values.shape[0], values.shape[3], *values.shape[1:3]), np.float32)
        for channel in range(values.shape[3]):
            index = channel % len(self._mean)
            np.subtract(values[..., channel], self._mean[index], out=result[:, channel], dtype=np.float32, casting="unsafe")
            result[:, channel] /= self._std[index]
        return result.transpose(0, 2, 3, 1)


class NormalizePad(Normalize):
    """`Normalize`, with a channel of zeros added; of dtype 'float32' or 'float16'."""

    _takes_stacks = False

    def __init__(self, mean: Any, std: Any, dtype: str = "float32", is_hwc: bool = True) -> None:
        super().__init__(mean, std, is_hwc)
        check_type("NormalizePad", "dtype", dtype, str, "'float32' or 'float16'")
        check_choice("NormalizePad", "dtype", dtype, ("float32", "float16"))
        self._dtype = np.dtype(dtype)

    def _apply_stack(self, values: np.ndarray) -> np.ndarray:
        raise ValueError  # each row separately

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("NormalizePad", value)
        normal = super()._apply(value).astype(self._dtype)
        normal = normal[..., None] if normal.ndim == 2 else normal
        zeros = np.zeros_like(normal[..., :1] if self.is_hwc else normal[:1])
        return np.concatenate([normal, zeros], 2 if self.is_hwc else 0)


class Invert(OnDevice, ImageTensorOperation):
    """Computes `255 - image`."""

    _gives_picture = True

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("Invert", value)
        return (255 - value).astype(value.dtype)


class ConvertColor(OnDevice, ImageTensorOperation):
    """Changes the order or number of colour channels by `convert_mode` (a ConvertMode)."""

    _of_truths = "bool"

    def __init__(self, convert_mode: ConvertMode) -> None:
        check_type("ConvertColor", "convert_mode", convert_mode, ConvertMode, "a member of ConvertMode")
        self.convert_mode = convert_mode

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        import cv2

        check_image("ConvertColor", value)
        try:
            return cv2.cvtColor(value, getattr(cv2, self.convert_mode.name))
        except cv2.error:
            raise RuntimeError(
                message(
                    f"ConvertColor({self.convert_mode.name}) of shape {list(value.shape)}", "an image with the channels of its name"
                )
            ) from None


def blend(image: np.ndarray, other: np.ndarray | float, factor: float) -> np.ndarray:
    """Compute `other + factor * (image - other)` in the image's dtype: integers are clipped to its range and rounded to nearest."""
    import cv2

    single = float(np.float32(factor))  # MindSpore passes the factor as a float32
    if image.dtype == np.uint8 and np.ndim(other) == 0:                   # a table of all values, with OpenCV's rounding of halves
        level = np.full(256, np.asarray(other).astype(np.uint8))
        table = cv2.addWeighted(level, 1.0 - single, np.arange(256, dtype=np.uint8), single, 0).reshape(256)
        return cv2.LUT(image.reshape(image.shape[0], -1), table).reshape(image.shape)
    if image.dtype == np.uint8:
        full = np.asarray(other).astype(np.uint8)
        if image.ndim == 3 and image.shape[2] == 3 and full.shape == (*image.shape[:2], 1):
            full = cv2.cvtColor(full, cv2.COLOR_GRAY2RGB)                    # ten times as fast as a stretched copy
        else:
            full = np.broadcast_to(full, image.shape).copy()
        return cv2.addWeighted(full, 1.0 - single, image, single, 0).reshape(image.shape)
    if image.dtype.kind == "f":
        return (image * single + np.asarray(other, image.dtype) * (1.0 - single)).astype(image.dtype)
    mixed = np.rint(image * single + other * (1.0 - single))
    if image.dtype.kind == "b":
        return mixed.astype(bool)
    limits = np.iinfo(image.dtype)
    return np.clip(mixed, limits.min, limits.max).astype(image.dtype)


def pillow() -> Any:
    """Return the functions on PIL images; Pillow is imported on first use."""
    from torchspore.mindspore.dataset.vision import pillow

    return pillow


def _brightness(image: np.ndarray) -> np.ndarray:
    import cv2

    return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)


def adjust_brightness(image: np.ndarray, factor: float) -> np.ndarray:
    """Adjust brightness: black for 0, the image for 1, brighter above."""
    return blend(image, 0, factor)


def adjust_contrast(image: np.ndarray, factor: float) -> np.ndarray:
    """Adjust contrast: the mean brightness for 0, the image for 1, more contrast above."""
    mean = float(_brightness(image).mean())
    return blend(image, mean if image.dtype.kind == "f" else int(np.rint(mean)), factor)


def adjust_saturation(image: np.ndarray, factor: float) -> np.ndarray:
    """Adjust saturation: grey for 0, the image for 1, more colour above."""
    return blend(image, _brightness(image)[..., None], factor)


def adjust_hue(image: np.ndarray, factor: float) -> np.ndarray:
    """Rotate the hue by `factor` (in [-0.5, 0.5]) of a full turn."""
    import cv2

    if image.dtype.kind == "f":                 # from 0 to 1, and the circle has 360 degrees
        hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
        hsv[..., 0] = (hsv[..., 0] + 360 * factor) % 360
        return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV_FULL)
    hsv[..., 0] += np.uint8(int(factor * 255) % 256)
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB_FULL)


class _Adjust(ImageTensorOperation):
    _gives_picture = True
    _channels: tuple[int, ...] = (3,)
    _dtypes: tuple[str, ...] = ("uint8", "uint16", "float32")
    """The accepted dtypes of images; empty for any."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        name = type(self).__name__
        check_image(name, value, channels=self._channels)
        if self._dtypes and value.dtype not in self._dtypes:
            raise RuntimeError(message(f"{name} of {value.dtype}", f"an image of {' or '.join(self._dtypes)}"))
        return self._adjust(value)

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        return getattr(pillow(), type(self).__name__[6:].lower())(image, self.factor)

    def _adjust(self, image: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class AdjustBrightness(OnDevice, _Adjust):
    """Multiplies brightness by `brightness_factor` (from 0)."""

    _channels, _dtypes = (1, 3), ()

    def __init__(self, brightness_factor: float) -> None:
        check_number("AdjustBrightness", "brightness_factor", brightness_factor, 0, 16777216)
        super().__init__(brightness_factor)

    def _adjust(self, image: np.ndarray) -> np.ndarray:
        return adjust_brightness(image, self.factor)


class AdjustContrast(OnDevice, _Adjust):
    """Multiplies contrast by `contrast_factor` (from 0)."""

    def __init__(self, contrast_factor: float) -> None:
        check_number("AdjustContrast", "contrast_factor", contrast_factor, 0, 16777216)
        super().__init__(contrast_factor)

    def _adjust(self, image: np.ndarray) -> np.ndarray:
        return adjust_contrast(image, self.factor)


class AdjustSaturation(OnDevice, _Adjust):
    """Multiplies saturation by `saturation_factor` (from 0)."""

    def __init__(self, saturation_factor: float) -> None:
        check_number("AdjustSaturation", "saturation_factor", saturation_factor, 0, 16777216)
        super().__init__(saturation_factor)

    def _adjust(self, image: np.ndarray) -> np.ndarray:
        return adjust_saturation(image, self.factor)


class AdjustHue(OnDevice, _Adjust):
    """Rotates the hue by `hue_factor` in [-0.5, 0.5] of a full turn."""

    _dtypes = ("uint8", "float32")

    def __init__(self, hue_factor: float) -> None:
        check_number("AdjustHue", "hue_factor", hue_factor, -0.5, 0.5)
        super().__init__(hue_factor)

    def _adjust(self, image: np.ndarray) -> np.ndarray:
        return adjust_hue(image, self.factor)


class AutoContrast(OnDevice, ImageTensorOperation):
    """Stretches each channel to [0, 255], ignoring `cutoff` percent at both ends and the values of `ignore`."""

    _of_truths = "uint8"

    _gives_picture = True

    def __init__(self, cutoff: float = 0.0, ignore: Any = None) -> None:
        check_type("AutoContrast", "cutoff", cutoff, (int, float), "a number")
        if not 0 <= cutoff < 50:
            text = message(f"AutoContrast(cutoff={cutoff!r})", "a number from 0 to below 50")
            raise interval_error(text, "cutoff", "[0, 50)")
        values = [] if ignore is None else [ignore] if isinstance(ignore, int) else ignore
        check_type("AutoContrast", "ignore", values, (list, tuple), "an int or a list of them")
        for value in values:
            check_int("AutoContrast", "ignore", value, 0, 255)
        self.cutoff, self.ignore = cutoff, list(values)

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        return pillow().auto_contrast(image, self.cutoff, self.ignore)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        import cv2

        check_image("AutoContrast", value)
        if value.dtype != np.uint8:
            raise RuntimeError(message(f"AutoContrast of {value.dtype}", "uint8"))
        channels = 1 if value.ndim == 2 else value.shape[2]
        tables = [self._table(cv2.calcHist([value], [channel], None, [256], [0, 256])) for channel in range(channels)]
        return cv2.LUT(value, np.stack(tables, -1)[None]).reshape(value.shape)

    def _table(self, histogram: np.ndarray) -> np.ndarray:
        """Return the lookup table for the 256 values."""
        counts = histogram.reshape(-1).astype(np.int64)
        counts[self.ignore] = 0
        least = int(int(counts.sum()) * self.cutoff // 100)
        low = int(np.searchsorted(np.cumsum(counts), least, side="right"))
        high = 255 - int(np.searchsorted(np.cumsum(counts[::-1]), least, side="right"))
        if high <= low:
            return np.arange(256, dtype=np.uint8)
        scale = np.float32(255.0 / (high - low))  # in single precision, as in MindSpore: a few values come out one lower
        offset = np.float32(-low * scale)
        return np.clip((np.arange(256, dtype=np.float32) * scale + offset).astype(np.int64), 0, 255).astype(np.uint8)


class Equalize(OnDevice, ImageTensorOperation):
    """Equalizes the histogram of each channel."""

    _of_truths = "uint8"

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        from PIL import ImageOps

        return ImageOps.equalize(image)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        import cv2

        check_image("Equalize", value)
        planes = [value] if value.ndim == 2 else np.moveaxis(value, 2, 0)
        equal = [cv2.equalizeHist(np.ascontiguousarray(plane)) for plane in planes]
        return equal[0] if value.ndim == 2 else np.stack(equal, 2)


class Posterize(OnDevice, ImageTensorOperation):
    """Keeps the upper `bits` (0 to 8) bits of each value."""

    def __init__(self, bits: int) -> None:
        check_int("Posterize", "bits", bits, 0, 8)
        self.bits = bits

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("Posterize", value)
        return value & np.uint8(256 - (1 << (8 - self.bits)))


class Solarize(OnDevice, ImageTensorOperation):
    """Inverts the values within `threshold`: (low, high), or from one number up to 255."""

    def __init__(self, threshold: Any) -> None:
        low, high = (threshold, 255) if isinstance(threshold, (int, float)) else threshold
        check_number("Solarize", "threshold", low, 0, 255)
        check_number("Solarize", "threshold", high, 0, 255)
        if low > high:
            raise ValueError(message(f"Solarize(threshold={threshold})", "(low, high)"))
        self.threshold = low, high

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("Solarize", value)
        low, high = self.threshold
        if value.dtype == np.uint8:
            import cv2

            levels = np.arange(256)
            table = np.where((levels >= low) & (levels <= high), 255 - levels, levels).astype(np.uint8)
            return cv2.LUT(value.reshape(value.shape[0], -1), table).reshape(value.shape)
        return np.where((value >= low) & (value <= high), 255 - value, value).astype(value.dtype)


def _pair(argument: str, value: Any, expected: str, sentence: str) -> list[Any]:
    """Return the values of GaussianBlur for width and height from one number or two. Raises TypeError for another count or type."""
    values = [value] * 2 if isinstance(value, numbers.Real) else list(value) if isinstance(value, (list, tuple)) else []
    if len(values) != 2:
        raise TypeError(f"{message(f'GaussianBlur({argument}={short(value)})', expected)} {sentence}")
    return values


class GaussianBlur(OnDevice, ImageTensorOperation):
    """Blurs with a Gaussian of odd `kernel_size` (one int, or (width, height)) and `sigma`, by default ((size - 1) / 2 - 1) * 0.3 + 0.8."""

    _of_truths = "uint8"

    def __init__(self, kernel_size: Any, sigma: Any = None) -> None:
        sizes = _pair(
            "kernel_size", kernel_size, translatable("an odd int or (width, height)"),
            "Kernel size should be a single integer or a list/tuple (kernel_width, kernel_height) of length 2.",
        )
        for size in sizes:
            check_int("GaussianBlur", "kernel_size", size, 1)
            if size % 2 == 0:
                raise ValueError(message(f"GaussianBlur(kernel_size={kernel_size})", "odd numbers"))
        sigmas = [0.0] * 2 if sigma is None else _pair(
            "sigma", sigma, translatable("a number or (width, height)"),
            "Sigma should be a single number or a list/tuple of length 2 for width and height.")
        for deviation in sigmas:
            check_number("GaussianBlur", "sigma", as_number(deviation), 0, FLOAT_MAX_INTEGER)
        self.kernel_size = sizes
        self.sigma = [deviation or ((size - 1) * 0.5 - 1) * 0.3 + 0.8 for deviation, size in zip(sigmas, sizes)]

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        import cv2

        check_image("GaussianBlur", value)
        return cv2.GaussianBlur(value, tuple(self.kernel_size), self.sigma[0], sigmaY=self.sigma[1]).reshape(value.shape)
