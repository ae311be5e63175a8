"""Image transforms that draw random numbers. One call makes one choice for all its columns."""
from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.randomness import generator, happens
from torchspore.mindspore.dataset.core.validator_helpers import as_number, check_bool, check_int, check_number, check_type, with_sentence
from torchspore.mindspore.dataset.vision import color, geometry
from torchspore.mindspore.dataset.vision.images import ImageTensorOperation, check_image, check_size, decode, gray, height_width
from torchspore.mindspore.dataset.vision.utils import Border, Inter


def check_probability(call: str, prob: Any) -> float:
    """Return a probability in [0, 1]."""
    check_number(call, "prob", prob, 0.0, 1.0)
    return prob


def check_range(call: str, name: str, values: Any, low: float = 0, high: float = 16777216) -> tuple[float, float]:
    """Return a pair (min, max). Raises ValueError if min is larger than max."""
    text = message(f"{call}({name}={short(values)})", "(min, max)")
    if name == "degrees" and not isinstance(values, (list, tuple)):
        raise TypeError(with_sentence(text, "degrees must be either a tuple or a list."))
    check_type(call, name, values, (list, tuple), "(min, max)")
    if len(values) != 2:
        raise TypeError(with_sentence(text, f"{name} {'must' if name == 'degrees' else 'should'} be a list/tuple of length 2."))
    for index, value in enumerate(values):
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            check_number(call, name, value, low, high)
        else:
            check_type(call, f"{name}[{index}]", value, (int, float), "a number")
    if values[0] > values[1]:
        text = message(f"{call}({name}={short(values)})", "(min, max), the smaller number first")
        raise ValueError(with_sentence(text, f"{name} should be in (min,max) format. Got (max,min)."))
    return values[0], values[1]


class RandomHorizontalFlip(ImageTensorOperation):
    """Swaps left and right with probability `prob`."""

    _takes_stacks = True
    _gives_picture = True

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_probability("RandomHorizontalFlip", prob)

    def _choose(self, values: tuple[Any, ...]) -> bool:
        return happens(self.prob)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomHorizontalFlip", value)
        return geometry.flip(value, 1) if chosen else value


class RandomVerticalFlip(ImageTensorOperation):
    """Swaps top and bottom with probability `prob`."""

    _gives_picture = True

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_probability("RandomVerticalFlip", prob)

    def _choose(self, values: tuple[Any, ...]) -> bool:
        return happens(self.prob)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomVerticalFlip", value)
        return geometry.flip(value, 0) if chosen else value


class RandomCrop(ImageTensorOperation):
    """Crops a part of `size` (height, width) at a random position, after adding `padding`.

    With `pad_if_needed` a smaller image is padded on both sides; without, it raises RuntimeError.
    """

    _of_truths = "uint8"

    _takes_stacks = True
    _gives_picture = True

    def __init__(
        self, size: Any, padding: Any = None, pad_if_needed: bool = False, fill_value: Any = 0, padding_mode: Border = Border.CONSTANT
    ) -> None:
        self.size = check_size("RandomCrop", size)
        self.padding = (0, 0, 0, 0) if padding is None else geometry.check_padding("RandomCrop", padding)
        check_bool("RandomCrop", "pad_if_needed", pad_if_needed)
        check_type("RandomCrop", "padding_mode", padding_mode, Border, "a member of Border")
        self.pad_if_needed, self.padding_mode = pad_if_needed, padding_mode
        self.fill_value = geometry.check_fill("RandomCrop", fill_value)

    def _choose(self, values: tuple[Any, ...]) -> tuple[float, float]:
        drawn = generator()
        return drawn.random(), drawn.random()

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomCrop", value)
        height, width = self.size
        image, _ = self._padded(value)
        top = int(chosen[0] * (image.shape[0] - height + 1))
        left = int(chosen[1] * (image.shape[1] - width + 1))
        return geometry.crop(image, top, left, height, width)

    def _padded(self, image: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
        """Return the image after padding, and the number of pixels before it (left, top)."""
        height, width = self.size
        left, top = self.padding[:2]
        if any(self.padding):
            image = geometry.pad(image, self.padding, self.fill_value, self.padding_mode)
        if self.pad_if_needed:
            high, wide = max(height - image.shape[0], 0), max(width - image.shape[1], 0)
            if high or wide:
                image = geometry.pad(image, (wide, high, wide, high), self.fill_value, self.padding_mode)
                left, top = left + wide, top + high
        if image.shape[0] < height or image.shape[1] < width:
            subject = f"RandomCrop(size={self.size}) of an image {image.shape[0]}x{image.shape[1]}"
            raise RuntimeError(message(subject, "an image that is not smaller", hint="write pad_if_needed=True"))
        return image, (top, left)


class RandomResizedCrop(ImageTensorOperation):
    """Crops a random part, of `scale` of the area and `ratio` of width to height, and resizes it to `size` (height, width)."""

    _of_truths = "bool"

    _takes_stacks = True
    _call = "RandomResizedCrop"

    def __init__(
        self, size: Any, scale: Any = (0.08, 1.0), ratio: Any = (3.0 / 4.0, 4.0 / 3.0), interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        self.size = check_size(self._call, size)
        self.scale, self.ratio = check_range(self._call, "scale", scale), check_range(self._call, "ratio", ratio, 1e-9)
        geometry.check_inter(self._call, interpolation)
        check_int(self._call, "max_attempts", max_attempts, 1)
        self.interpolation, self.max_attempts = interpolation, max_attempts

    def _choose(self, values: tuple[Any, ...]) -> tuple[int, int, int, int]:
        return self._part(*height_width(values[0]))

    def _part(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Draw (top, left, height, width) of the part; the largest one in the middle if `max_attempts` draws do not fit."""
        drawn = generator()
        for _ in range(self.max_attempts):
            area = height * width * drawn.uniform(*self.scale)
            ratio = math.exp(drawn.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < wide <= width and 0 < high <= height:
                return int(drawn.integers(height - high + 1)), int(drawn.integers(width - wide + 1)), high, wide
        if width / height < self.ratio[0]:
            high, wide = max(round(width / self.ratio[0]), 1), width
        elif width / height > self.ratio[1]:
            high, wide = height, max(round(height * self.ratio[1]), 1)
        else:
            high, wide = height, width
        return (height - high) // 2, (width - wide) // 2, high, wide

    def _transform_single(self, value: Any, chosen: Any) -> Any:
        top, left, high, wide = chosen
        if isinstance(value, np.ndarray):
            check_image(self._call, value)
            return geometry.resize(value[top : top + high, left : left + wide], self.size, self.interpolation, self._call)
        return geometry.resize(value.crop((left, top, left + wide, top + high)), self.size, self.interpolation, self._call)


class RandomCropDecodeResize(RandomResizedCrop):
    """Applies `RandomResizedCrop` to the bytes of an image file."""

    _call = "RandomCropDecodeResize"

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        images = tuple([decode(value, self._call) if isinstance(value, np.ndarray) and value.ndim == 1 else value for value in values])
        return super()._apply_all(*images)


class RandomResize(ImageTensorOperation):
    """Resizes with a randomly chosen interpolation."""

    _of_truths = "bool"

    _takes_stacks = True

    def __init__(self, size: Any) -> None:
        check_size("RandomResize", as_number(size))
        self.size = size

    def _choose(self, values: tuple[Any, ...]) -> Inter:
        kinds = (Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC, Inter.AREA)
        return kinds[int(generator().integers(len(kinds)))]

    def _transform_single(self, value: Any, chosen: Any) -> Any:
        return geometry.Resize(self.size, chosen)._transform_single(value, None)


class RandomRotation(ImageTensorOperation):
    """Rotates by a random angle within `degrees`: (min, max), or (-degrees, degrees)."""

    _of_truths = "bool"

    _gives_picture = True

    def __init__(
        self, degrees: Any, resample: Inter = Inter.NEAREST, expand: bool = False, center: Any = None, fill_value: Any = 0
    ) -> None:
        if isinstance(degrees, (int, float)) and not isinstance(degrees, bool):
            check_number("RandomRotation", "degrees", degrees, 0, 16777216)
            degrees = (-degrees, degrees)
        self.degrees = check_range("RandomRotation", "degrees", degrees, -16777216.0)
        geometry.check_inter("RandomRotation", resample, "resample")
        check_bool("RandomRotation", "expand", expand)
        geometry.check_center("RandomRotation", center)
        self.resample, self.expand, self.center = resample, expand, center
        self.fill_value = geometry.check_fill("RandomRotation", fill_value)

    def _choose(self, values: tuple[Any, ...]) -> float:
        return generator().uniform(*self.degrees)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomRotation", value)
        return geometry.rotate(value, chosen, self.resample, self.expand, self.center, self.fill_value)

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        return color.pillow().rotate(image, chosen, self.resample, self.expand, self.center, self.fill_value)


def _factors(call: str, name: str, value: Any, middle: float, low: float, high: float) -> tuple[float, float]:
    if isinstance(value, numbers.Real):
        value = as_number(value)
        check_number(call, name, value, 0, high)
        if math.isnan(value):
            raise ValueError(message(f"{call}({name}=nan)", "a number from 0 on"))
        return max(middle - value, low), min(middle + value, high)
    return check_range(call, name, value, low, high)


class RandomColorAdjust(ImageTensorOperation):
    """Changes brightness, contrast, saturation and hue by random factors, in random order.

    Each is (min, max) of its factor, or one number v for (max(0, 1 - v), 1 + v), for hue (-v, v) within [-0.5, 0.5].
    """

    _gives_picture = True

    def __init__(self, brightness: Any = (1, 1), contrast: Any = (1, 1), saturation: Any = (1, 1), hue: Any = (0, 0)) -> None:
        call = "RandomColorAdjust"
        self.brightness = _factors(call, "brightness", brightness, 1, 0, 16777216)
        self.contrast = _factors(call, "contrast", contrast, 1, 0, 16777216)
        self.saturation = _factors(call, "saturation", saturation, 1, 0, 16777216)
        self.hue = _factors(call, "hue", hue, 0, -0.5, 0.5)

    def _choose(self, values: tuple[Any, ...]) -> list[tuple[Any, float, int]]:
        drawn = generator()
        changes = [
            (color.adjust_brightness, self.brightness, 1), (color.adjust_contrast, self.contrast, 1),
            (color.adjust_saturation, self.saturation, 1), (color.adjust_hue, self.hue, 0),
        ]
        return [(changes[index][0], drawn.uniform(*changes[index][1]), changes[index][2]) for index in drawn.permutation(4)]

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomColorAdjust", value, channels=(3,))
        for adjust, factor, nothing in chosen:
            value = adjust(value, factor) if factor != nothing else value
        return value

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        for adjust, factor, _ in chosen:  # also for a rotation of 0, because Pillow rounds the colours in the conversion to HSV and back
            image = getattr(color.pillow(), adjust.__name__[7:])(image, factor)
        return image


class RandomColor(ImageTensorOperation):
    """Changes saturation by a random factor within `degrees`."""

    _gives_picture = True

    def __init__(self, degrees: Any = (0.1, 1.9)) -> None:
        self.degrees = check_range("RandomColor", "degrees", degrees)

    def _choose(self, values: tuple[Any, ...]) -> float:
        return generator().uniform(*self.degrees)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomColor", value, channels=(3,))
        return color.adjust_saturation(value, chosen)

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        return color.pillow().saturation(image, chosen)


class RandomGrayscale(ImageTensorOperation):
    """Converts to grey with probability `prob`; the number of channels stays the same."""

    _gives_picture = True

    def __init__(self, prob: float = 0.1) -> None:
        self.prob = check_probability("RandomGrayscale", prob)

    def _choose(self, values: tuple[Any, ...]) -> bool:
        return happens(self.prob)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomGrayscale", value)
        return np.repeat(gray(value)[..., None], value.shape[2], 2) if chosen and value.ndim == 3 else value


class CutOut(ImageTensorOperation):
    """Blackens `num_patches` squares of side `length` at random positions of an image (H, W, C), or (C, H, W) with `is_hwc=False`."""

    def __init__(self, length: int, num_patches: int = 1, is_hwc: bool = True) -> None:
        check_int("CutOut", "length", length, 1)
        check_int("CutOut", "num_patches", num_patches, 1)
        check_bool("CutOut", "is_hwc", is_hwc)
        self.length, self.num_patches, self.is_hwc = length, num_patches, is_hwc

    def _choose(self, values: tuple[Any, ...]) -> np.ndarray:
        # A patch may exceed every edge: its upper left corner is from -length to the image's size, both inclusive.
        height, width = values[0].shape[:2] if self.is_hwc else values[0].shape[-2:]
        return generator().integers(-self.length, np.array([height, width]) + 1, (self.num_patches, 2))

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("CutOut", value)
        image = value.copy()
        plane = image if self.is_hwc else np.moveaxis(image, 0, -1)
        height, width = plane.shape[:2]
        if self.length > height or self.length > width:
            raise RuntimeError(message(f"CutOut(length={self.length}) of an image {height}x{width}", "a square that is not larger"))
        for top, left in chosen.tolist():
            plane[max(top, 0) : max(top + self.length, 0), max(left, 0) : max(left + self.length, 0)] = 0
        return image


def _check_filling(value: Any) -> None:
    """Raises TypeError for anything but an int, three ints or a str, ValueError for other texts, lengths and levels of grey."""
    check_type("RandomErasing", "value", value, (int, list, tuple, str), "an int, one for each channel, or 'random'")
    levels = [] if isinstance(value, str) else [value] if isinstance(value, int) else value
    if (value != "random" and len(levels) not in (1, 3)) or (isinstance(value, (list, tuple)) and len(value) != 3):
        raise ValueError(message(f"RandomErasing(value={short(value)})", "an int, one for each channel, or 'random'"))
    for level in levels:
        check_int("RandomErasing", "value", level, 0, 255)


class RandomErasing(ImageTensorOperation):
    """With probability `prob`, fills a random part of an image (C, H, W): of `scale` of its area and `ratio` of height to width.

    `value` is a number, one for each channel, or 'random' for noise.
    """

    def __init__(
        self,
        prob: float = 0.5,
        scale: Any = (0.02, 0.33),
        ratio: Any = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
        max_attempts: int = 10,
    ) -> None:
        self.prob = check_probability("RandomErasing", prob)
        self.scale, self.ratio = check_range("RandomErasing", "scale", scale), check_range("RandomErasing", "ratio", ratio, 1e-9)
        _check_filling(value)
        check_bool("RandomErasing", "inplace", inplace)
        check_int("RandomErasing", "max_attempts", max_attempts, 1)
        self.value, self.inplace, self.max_attempts = value, inplace, max_attempts

    def _choose(self, values: tuple[Any, ...]) -> Any:
        height, width = np.asarray(values[0]).shape[-2:]
        drawn = generator()
        if drawn.random() >= self.prob:
            return None
        for _ in range(self.max_attempts):
            area = height * width * drawn.uniform(*self.scale)
            ratio = math.exp(drawn.uniform(math.log(self.ratio[0]), math.log(self.ratio[1])))
            high, wide = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < high < height and 0 < wide < width:
                return int(drawn.integers(height - high + 1)), int(drawn.integers(width - wide + 1)), high, wide, drawn
        return None

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomErasing", value)
        if chosen is None:
            return value
        top, left, high, wide, drawn = chosen
        image = value if self.inplace else value.copy()
        part = image[..., top : top + high, left : left + wide]
        part[...] = drawn.standard_normal(part.shape) if isinstance(self.value, str) else np.reshape(self.value, (-1, 1, 1))
        return image
