"""Random versions of the transforms that change tones, affine ones, and policies of several transforms."""
from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.operation import flatten, run_chain
from torchspore.mindspore.dataset.core.randomness import generator, happens
from torchspore.mindspore.dataset.core.validator_helpers import as_number, check_int, check_number, check_type
from torchspore.mindspore.dataset.vision import color, geometry
from torchspore.mindspore.dataset.vision.images import ImageTensorOperation, OnDevice, check_image
from torchspore.mindspore.dataset.vision.random_transforms import check_probability, check_range
from torchspore.mindspore.dataset.vision.utils import Inter


class _Sometimes(ImageTensorOperation):
    """Base of transforms that apply one change with a probability."""

    def __init__(self, prob: float) -> None:
        self.prob = check_probability(type(self).__name__, prob)

    def _choose(self, values: tuple[Any, ...]) -> bool:
        return happens(self.prob)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image(type(self).__name__, value)
        return self._change(value) if chosen else value

    def _change(self, image: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class RandomInvert(_Sometimes):
    """Computes `255 - image` with probability `prob`."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob)

    def _change(self, image: np.ndarray) -> np.ndarray:
        return color.Invert()._apply(image)


class RandomEqualize(_Sometimes):
    """Applies `Equalize` with probability `prob`."""

    def __init__(self, prob: float = 0.5) -> None:
        super().__init__(prob)

    def _change(self, image: np.ndarray) -> np.ndarray:
        return color.Equalize()._apply(image)


class RandomAutoContrast(_Sometimes):
    """Applies `AutoContrast` with probability `prob`."""

    _of_truths = "uint8"

    def __init__(self, cutoff: float = 0.0, ignore: Any = None, prob: float = 0.5) -> None:
        super().__init__(prob)
        self._contrast = color.AutoContrast(cutoff, ignore)

    def _change(self, image: np.ndarray) -> np.ndarray:
        return self._contrast._apply(image)


class RandomPosterize(ImageTensorOperation):
    """Keeps a random number of upper bits within `bits`: (min, max), or one number."""

    def __init__(self, bits: Any = (8, 8)) -> None:
        low, high = (bits, bits) if isinstance(bits, int) else tuple(bits)
        for number_of_bits in (low, high):
            check_int("RandomPosterize", "bits", number_of_bits, 1, 8)
        if low > high:
            raise ValueError(message(f"RandomPosterize(bits={short(bits)})", "(min, max), the smaller number first"))
        self.bits = low, high

    def _choose(self, values: tuple[Any, ...]) -> int:
        return int(generator().integers(self.bits[0], self.bits[1] + 1))

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        return color.Posterize(chosen)._apply(value)


class RandomSolarize(ImageTensorOperation):
    """Inverts the values within a random part of `threshold`: (min, max)."""

    def __init__(self, threshold: Any = (0, 255)) -> None:
        check_type("RandomSolarize", "threshold", threshold, tuple, "a tuple (min, max)")
        for level in threshold:
            check_int("RandomSolarize", "threshold", level, 0, 255)
        self.threshold = check_range("RandomSolarize", "threshold", threshold, 0, 255)

    def _choose(self, values: tuple[Any, ...]) -> tuple[int, int]:
        low, high = sorted(generator().integers(int(self.threshold[0]), int(self.threshold[1]) + 1, 2).tolist())
        return low, high

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        return color.Solarize(chosen)._apply(value)


def sharpen(image: np.ndarray, factor: float) -> np.ndarray:
    """Adjust sharpness: blurred for 0, the image for 1, sharper above; the outermost pixels stay unchanged."""
    import cv2

    kernel = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13
    smooth = cv2.filter2D(image, -1, kernel).reshape(image.shape)
    edge = np.ones(image.shape[:2], bool)
    edge[1:-1, 1:-1] = False
    smooth[edge] = image[edge]
    single = float(np.float32(factor))
    return cv2.addWeighted(image, single, smooth, 1.0 - single, 0).reshape(image.shape)


class AdjustSharpness(OnDevice, ImageTensorOperation):
    """Multiplies sharpness by `sharpness_factor` (from 0)."""

    _of_truths = "uint8"

    def __init__(self, sharpness_factor: float) -> None:
        check_number("AdjustSharpness", "sharpness_factor", sharpness_factor, 0, 16777216)
        self.factor = sharpness_factor

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("AdjustSharpness", value)
        return sharpen(value, self.factor)


class RandomSharpness(ImageTensorOperation):
    """Changes sharpness by a random factor within `degrees`."""

    _gives_picture = True

    def __init__(self, degrees: Any = (0.1, 1.9)) -> None:
        self.degrees = check_range("RandomSharpness", "degrees", degrees)

    def _choose(self, values: tuple[Any, ...]) -> float:
        return generator().uniform(*self.degrees)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomSharpness", value)
        return sharpen(value, chosen)

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        return color.pillow().sharpness(image, chosen)


class AdjustGamma(ImageTensorOperation):
    """Computes `255 * gain * (image / 255) ** gamma`."""

    _takes_stacks = True
    _gives_picture = True

    def __init__(self, gamma: float, gain: float = 1) -> None:
        check_number("AdjustGamma", "gamma", gamma, 0, 16777216)
        check_number("AdjustGamma", "gain", gain, -16777216, 16777216)
        self.gamma, self.gain = gamma, gain

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("AdjustGamma", value)
        if value.dtype.kind == "f":
            # MindSpore's pixels, in float32: for floats it takes the power of the product, for bytes the product with the power
            return np.clip(np.power(value.astype(np.float32) * np.float32(self.gain), np.float32(self.gamma)), 0, 1)
        steps = np.arange(256) / 255.0
        table = np.clip(steps**self.gamma * self.gain * (255 + 1 - 1e-3), 0, 255)
        if value.dtype != np.uint8:
            return table.astype(value.dtype)[value]
        import cv2

        return cv2.LUT(value.reshape(value.shape[0], -1), table.astype(np.uint8)).reshape(value.shape)


def affine(image: np.ndarray, degrees: float, shift: Any, scale: float, shear: Any, resample: Inter, fill: Any) -> np.ndarray:
    """Rotate clockwise by `degrees`, shift by pixels (right, down), scale, and shear by degrees (x, y), about the middle."""
    height, width = image.shape[:2]
    angle, x, y = (math.radians(number) for number in (degrees, *shear))
    matrix = np.array([
        [math.cos(angle - y) / math.cos(y), -math.cos(angle - y) * math.tan(x) / math.cos(y) - math.sin(angle)],
        [math.sin(angle - y) / math.cos(y), -math.sin(angle - y) * math.tan(x) / math.cos(y) + math.cos(angle)],
    ])
    linear = scale * matrix
    middle = np.array([(width - 1) / 2, (height - 1) / 2])
    moved = np.column_stack([linear, middle + shift - linear @ middle]).astype(np.float32)
    return geometry.warp(image, moved.astype(np.float64), width, height, resample, fill)


class RandomAffine(ImageTensorOperation):
    """Rotates, shifts, scales and shears by random amounts.

    `degrees` is (min, max) or one number for both sides; `translate` has the largest shifts as fractions of width and height, or (min,
    max) of each; `scale` is (min, max); `shear` is (min, max) degrees in x, or of x and of y.
    """

    _of_truths = "bool"

    _gives_picture = True

    def __init__(
        self,
        degrees: Any,
        translate: Any = None,
        scale: Any = None,
        shear: Any = None,
        resample: Inter = Inter.NEAREST,
        fill_value: Any = 0,
    ) -> None:
        call = "RandomAffine"
        if isinstance(degrees, (int, float)):
            check_number(call, "degrees", degrees, 0, 16777216)
            degrees = (-degrees, degrees)
        self.degrees = check_range(call, "degrees", degrees, -16777216)
        self.translate = _translate(call, translate)
        self.scale = (1.0, 1.0) if scale is None else check_range(call, "scale", scale)
        self.shear = _shear(shear)
        geometry.check_inter(call, resample, "resample")
        self.resample, self.fill_value = resample, geometry.check_fill(call, fill_value)

    def _choose(self, values: tuple[Any, ...]) -> tuple[float, ...]:
        drawn = generator()
        ranges = [self.degrees, *self.translate, self.scale, *self.shear]
        return tuple(drawn.uniform(*limits) if math.isfinite(limits[1]) else math.nan for limits in ranges)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomAffine", value)
        degrees, right, down, scale, *shear = chosen
        height, width = value.shape[:2]
        return affine(value, degrees, (right * width, down * height), scale, shear, self.resample, self.fill_value)

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        degrees, right, down, scale, *shear = chosen
        shift = round(right * image.width), round(down * image.height)
        return color.pillow().affine(image, degrees, shift, scale, shear, self.resample, self.fill_value)


def _shear(shear: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the limits of both angles. A number, which also may be NumPy's, has no upper limit in MindSpore."""
    if shear is None:
        return (0.0, 0.0), (0.0, 0.0)
    if isinstance(shear, numbers.Real):
        angle = as_number(shear)
        if angle <= 0:
            raise ValueError(message(f"RandomAffine(shear={short(shear)})", "a number above 0"))
        return (-angle, angle), (0.0, 0.0)
    check_type("RandomAffine", "shear", shear, (list, tuple), "a number, or (min, max) of x, and also of y")
    if len(shear) not in (2, 4):
        raise TypeError(message(f"RandomAffine(shear={short(shear)})", "a number, or (min, max) of x, and also of y"))
    first = check_range("RandomAffine", "shear", shear[:2], -16777216)
    return first, check_range("RandomAffine", "shear", shear[2:], -16777216) if len(shear) == 4 else (0.0, 0.0)


def _translate(call: str, translate: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    if translate is None:
        return (0.0, 0.0), (0.0, 0.0)
    check_type(call, "translate", translate, (list, tuple), "two or four shares")
    if len(translate) not in (2, 4):
        raise TypeError(message(f"{call}(translate={short(translate)})", "(min, max) of x, and also of y"))
    first = check_range(call, "translate", translate[:2], -1, 1)
    return first, check_range(call, "translate", translate[2:], -1, 1) if len(translate) == 4 else (0.0, 0.0)


class RandomSelectSubpolicy(ImageTensorOperation):
    """Chooses one of several lists of (transform, probability) and applies each of its transforms with its probability."""

    _takes_pictures = True

    def __init__(self, policy: Any) -> None:
        check_type("RandomSelectSubpolicy", "policy", policy, list, "a list of lists of (transform, probability)")
        if not policy or not all(isinstance(choice, list) and choice for choice in policy):
            raise ValueError(message(f"RandomSelectSubpolicy({short(policy)})", "lists of (transform, probability) that are not empty"))
        for step in flatten([list(choice) for choice in policy]):
            if not callable(step) and not isinstance(step, (int, float)):
                raise TypeError(message(f"RandomSelectSubpolicy: {short(step)}", "(transform, probability)"))
        self.policy = policy

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        for transform, probability in self.policy[int(generator().integers(len(self.policy)))]:
            if happens(probability):
                values = run_chain([transform], values)
        return values
