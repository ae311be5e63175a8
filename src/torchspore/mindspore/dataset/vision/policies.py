"""Augmentation by policies that were learned or drawn: AutoAugment, RandAugment, TrivialAugmentWide, UniformAugment; lighting noise."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.core.operation import run_chain
from torchspore.mindspore.dataset.core.randomness import generator, happens
from torchspore.mindspore.dataset.core.validator_helpers import check_int, check_number, check_type
from torchspore.mindspore.dataset.vision import color, geometry
from torchspore.mindspore.dataset.vision.images import ImageTensorOperation, check_image, to_pil
from torchspore.mindspore.dataset.vision.random_adjustments import affine, sharpen
from torchspore.mindspore.dataset.vision.random_transforms import check_probability
from torchspore.mindspore.dataset.vision.utils import AutoAugmentPolicy, Inter

_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize .4 8 Rotate .6 9, Solarize .6 5 AutoContrast .6 0, Equalize .8 0 Equalize .6 0, Posterize .6 7 Posterize .6 6,
        Equalize .4 0 Solarize .2 4, Equalize .4 0 Rotate .8 8, Solarize .6 3 Equalize .6 0, Posterize .8 5 Equalize 1 0,
        Rotate .2 3 Solarize .6 8, Equalize .6 0 Posterize .4 6, Rotate .8 8 Color .4 0, Rotate .4 9 Equalize .6 0,
        Equalize 0 0 Equalize .8 0, Invert .6 0 Equalize 1 0, Color .6 4 Contrast 1 8, Rotate .8 8 Color 1 2, Color .8 8 Solarize .8 7,
        Sharpness .4 7 Invert .6 0, ShearX .6 5 Equalize 1 0, Color .4 0 Equalize .6 0, Equalize .4 0 Solarize .2 4,
        Solarize .6 5 AutoContrast .6 0, Invert .6 0 Equalize 1 0, Color .6 4 Contrast 1 8, Equalize .8 0 Equalize .6 0
    """,
    AutoAugmentPolicy.CIFAR10: """
        Invert .1 0 Contrast .2 6, Rotate .7 2 TranslateX .3 9, Sharpness .8 1 Sharpness .9 3, ShearY .5 8 TranslateY .7 9,
        AutoContrast .5 0 Equalize .9 0, ShearY .2 7 Posterize .3 7, Color .4 3 Brightness .6 7, Sharpness .3 9 Brightness .7 9,
        Equalize .6 0 Equalize .5 0, Contrast .6 7 Sharpness .6 5, Color .7 7 TranslateX .5 8, Equalize .3 0 AutoContrast .4 0,
        TranslateY .4 3 Sharpness .2 6, Brightness .9 6 Color .2 8, Solarize .5 2 Invert 0 0, Equalize .2 0 AutoContrast .6 0,
        Equalize .2 0 Equalize .6 0, Color .9 9 Equalize .6 0, AutoContrast .8 0 Solarize .2 8, Brightness .1 3 Color .7 0,
        Solarize .4 5 AutoContrast .9 0, TranslateY .9 9 TranslateY .7 9, AutoContrast .9 0 Solarize .8 3, Equalize .8 0 Invert .1 0,
        TranslateY .7 9 AutoContrast .9 0
    """,
    AutoAugmentPolicy.SVHN: """
        ShearX .9 4 Invert .2 0, ShearY .9 8 Invert .7 0, Equalize .6 0 Solarize .6 6, Invert .9 0 Equalize .6 0, Equalize .6 0 Rotate .9 3,
        ShearX .9 4 AutoContrast .8 0, ShearY .9 8 Invert .4 0, ShearY .9 5 Solarize .2 6, Invert .9 0 AutoContrast .8 0,
        Equalize .6 0 Rotate .9 3, ShearX .9 4 Solarize .3 3, ShearY .8 8 Invert .7 0, Equalize .9 0 TranslateY .6 6,
        Invert .9 0 Equalize .6 0, Contrast .3 3 Rotate .8 4, Invert .8 0 TranslateY 0 2, ShearY .7 6 Solarize .4 8,
        Invert .6 0 Rotate .8 4, ShearY .3 7 TranslateX .9 3, ShearX .1 6 Invert .6 0, Solarize .7 2 TranslateY .6 7,
        ShearY .8 4 Invert .8 0, ShearX .7 9 TranslateY .8 3, ShearY .8 5 AutoContrast .7 0, ShearX .7 2 Invert .1 0
    """,
}
"""Cubuk et al. 2019, arXiv:1805.09501, tables 7 to 9: for each policy the names, probabilities and strengths of two changes."""

_Change = tuple[str, float, int]


def _policies(name: AutoAugmentPolicy) -> list[list[_Change]]:
    policies = []
    for policy in _POLICIES[name].split(","):
        words = policy.split()
        policies.append([(words[index], float(words[index + 1]), int(words[index + 2])) for index in (0, 3)])
    return policies


_SIGNED = frozenset({"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness"})


def strength(name: str, step: int, steps: int, size: tuple[int, int], wide: bool = False, brightest: float = 255.0) -> float:
    """Return the strength of a change at `step` of `steps` for an image of `size` (height, width); `wide`: TrivialAugment's range."""
    if name == "Posterize":
        return 8 - round(step / ((steps - 1) / (6 if wide else 4)))
    if name == "Solarize":
        return _at(brightest, 0.0, step, steps)
    if name.startswith("Translate"):
        return _at(0.0, 32.0 if wide else 150.0 / 331.0 * size[name == "TranslateX"], step, steps)
    max_strengths = {"ShearX": 0.3, "ShearY": 0.3, "Rotate": 30.0, "Brightness": 0.9, "Color": 0.9, "Contrast": 0.9, "Sharpness": 0.9}
    widest = {"ShearX": 0.99, "ShearY": 0.99, "Rotate": 135.0, "Brightness": 0.99, "Color": 0.99, "Contrast": 0.99, "Sharpness": 0.99}
    return _at(0.0, (widest if wide else max_strengths).get(name, 0.0), step, steps)


def _at(first: float, last: float, step: int, steps: int) -> float:
    """Return the number at `step` of `steps` from `first` to `last`, in single precision, as in MindSpore: a pixel may depend on it."""
    return float(np.float32(first) + np.float32(step) * ((np.float32(last) - np.float32(first)) / np.float32(steps - 1)))


def change(image: np.ndarray, name: str, amount: float, interpolation: Inter, fill: Any) -> np.ndarray:
    """Apply one change of this strength to an image."""
    factor = float(np.float32(1) + np.float32(amount))
    moves: dict[str, Callable[[], np.ndarray]] = {
        "ShearX": lambda: affine(image, 0, (0, 0), 1.0, (math.degrees(amount), 0), interpolation, fill),
        "ShearY": lambda: affine(image, 0, (0, 0), 1.0, (0, math.degrees(amount)), interpolation, fill),
        "TranslateX": lambda: affine(image, 0, (int(amount), 0), 1.0, (0, 0), interpolation, fill),
        "TranslateY": lambda: affine(image, 0, (0, int(amount)), 1.0, (0, 0), interpolation, fill),
        "Rotate": lambda: geometry.rotate(image, amount, interpolation, False, None, fill),
        "Brightness": lambda: color.adjust_brightness(image, factor), "Color": lambda: color.adjust_saturation(image, factor),
        "Contrast": lambda: color.adjust_contrast(image, factor), "Sharpness": lambda: sharpen(image, factor),
        "Posterize": lambda: color.Posterize(int(amount))._apply(image),
        "Solarize": lambda: color.Solarize(amount)._apply(image) if amount <= 255 else image,
        "AutoContrast": lambda: color.AutoContrast()._apply(image), "Equalize": lambda: color.Equalize()._apply(image),
        "Invert": lambda: color.Invert()._apply(image), "Identity": lambda: image,
    }
    return moves[name]()


class _Policy(ImageTensorOperation):
    """Base: `_plan(size)` draws (name, step, sign) of each change; takes colour images of uint8."""

    _wide = False
    _steps = 10
    _brightest = 255.0

    def __init__(self, interpolation: Inter, fill_value: Any) -> None:
        call = type(self).__name__
        geometry.check_inter(call, interpolation)
        self.interpolation, self.fill_value = interpolation, geometry.check_fill(call, fill_value)

    def _choose(self, values: tuple[Any, ...]) -> Any:
        return self._plan()

    def _plan(self) -> list[tuple[str, int, int]]:
        raise NotImplementedError

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image(type(self).__name__, value, channels=(3,))
        image = value
        for name, step, sign in chosen:
            amount = strength(name, step, self._steps, value.shape[:2], self._wide, self._brightest) * (sign if name in _SIGNED else 1)
            image = change(image, name, amount, self.interpolation, self.fill_value)
        return image


def _sign() -> int:
    return 1 if happens(0.5) else -1


class AutoAugment(_Policy):
    """Applies one of 25 pairs of changes learned on ImageNet, CIFAR-10 or SVHN, each change with its probability."""

    _brightest = 256.0  # MindSpore's steps of Solarize begin here only for AutoAugment

    def __init__(
        self, policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET, interpolation: Inter = Inter.NEAREST, fill_value: Any = 0
    ) -> None:
        check_type("AutoAugment", "policy", policy, AutoAugmentPolicy, "a member of AutoAugmentPolicy")
        super().__init__(interpolation, fill_value)
        self.policy, self._pairs = policy, _policies(policy)

    def _plan(self) -> list[tuple[str, int, int]]:
        pair = self._pairs[int(generator().integers(len(self._pairs)))]
        return [(name, step, _sign()) for name, probability, step in pair if happens(probability)]


_CHANGES = """
    Identity ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness Posterize Solarize AutoContrast Equalize
""".split()


class RandAugment(_Policy):
    """Applies `num_ops` random changes of the strength `magnitude` of `num_magnitude_bins` steps (Cubuk et al. 2020, arXiv:1909.13719)."""

    def __init__(
        self, num_ops: int = 2, magnitude: int = 9, num_magnitude_bins: int = 31, interpolation: Inter = Inter.NEAREST, fill_value: Any = 0
    ) -> None:
        check_int("RandAugment", "num_ops", num_ops, 0)
        check_int("RandAugment", "num_magnitude_bins", num_magnitude_bins, 2)
        check_int("RandAugment", "magnitude", magnitude, 0, num_magnitude_bins - 1)
        super().__init__(interpolation, fill_value)
        self.num_ops, self.magnitude, self._steps = num_ops, magnitude, num_magnitude_bins

    def _plan(self) -> list[tuple[str, int, int]]:
        names = generator().integers(len(_CHANGES), size=self.num_ops)
        return [(_CHANGES[index], self.magnitude, _sign()) for index in names]


class TrivialAugmentWide(_Policy):
    """Applies one random change of a random strength from wide ranges (Müller and Hutter 2021, arXiv:2103.10158)."""

    _wide = True

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Inter = Inter.NEAREST, fill_value: Any = 0) -> None:
        check_int("TrivialAugmentWide", "num_magnitude_bins", num_magnitude_bins, 2)
        super().__init__(interpolation, fill_value)
        self._steps = num_magnitude_bins

    def _plan(self) -> list[tuple[str, int, int]]:
        drawn = generator()
        return [(_CHANGES[int(drawn.integers(len(_CHANGES)))], int(drawn.integers(self._steps)), _sign())]


class UniformAugment(ImageTensorOperation):
    """Draws `num_ops` of the transforms and applies each with probability 1/2."""

    _takes_pictures = True

    def __init__(self, transforms: Any, num_ops: int = 2) -> None:
        check_type("UniformAugment", "transforms", transforms, (list, tuple), "a list of transforms")
        check_int("UniformAugment", "num_ops", num_ops, 1)
        for transform in transforms:
            if not callable(transform):
                raise ValueError(message(f"UniformAugment: {short(transform)}", f"a transform, got {type(transform).__name__}"))
        if len(transforms) < num_ops:
            raise ValueError(message(f"UniformAugment(num_ops={num_ops})", f"at most {len(transforms)}, as many as there are transforms"))
        self.transforms, self.num_ops = transforms, num_ops

    @property
    def runs_in_any_order(self) -> bool:  # type: ignore[override]
        return all(getattr(transform, "runs_in_any_order", False) for transform in self.transforms)

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        for index in generator().permutation(len(self.transforms))[: self.num_ops]:
            if happens(0.5):
                values = run_chain([self.transforms[index]], values)
        return values


_LIGHT = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
_LIGHT_SIZES = np.array([55.46, 4.794, 1.148])
"""Eigenvectors and roots of the eigenvalues of ImageNet's colours (Krizhevsky et al. 2012, section 4.1)."""


class RandomLighting(ImageTensorOperation):
    """Adds noise to the colours along ImageNet's principal components, each scaled by normal numbers of deviation `alpha`."""

    def __init__(self, alpha: float = 0.05) -> None:
        check_number("RandomLighting", "alpha", alpha, 0, 16777216)
        self.alpha = alpha

    def _choose(self, values: tuple[Any, ...]) -> np.ndarray:
        return _LIGHT @ (generator().normal(0, self.alpha, 3) * _LIGHT_SIZES)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomLighting", value, channels=(3,))
        if value.ndim != 3:
            raise RuntimeError(message(f"RandomLighting of shape {list(value.shape)}", "an image (H, W, C)"))
        lit = np.clip(value + chosen, 0, 255)
        return (np.rint(lit) if value.dtype.kind in "iu" else lit).astype(value.dtype)

    def _with_pillow(self, image: Any, chosen: Any) -> Any:  # type: ignore[override]
        return to_pil(np.clip(np.asarray(image) + chosen, 0, 255).astype(np.uint8))


class RandomAdjustSharpness(ImageTensorOperation):
    """Changes sharpness by the factor `degree` with probability `prob`: 0 blurs, 1 has no effect, 2 sharpens."""

    _of_truths = "uint8"

    def __init__(self, degree: float, prob: float = 0.5) -> None:
        check_number("RandomAdjustSharpness", "degree", degree, 0, 16777216)
        self.degree, self.prob = degree, check_probability("RandomAdjustSharpness", prob)

    def _choose(self, values: tuple[Any, ...]) -> bool:
        return happens(self.prob)

    def _apply(self, value: np.ndarray, chosen: Any = None) -> Any:
        check_image("RandomAdjustSharpness", value)
        return sharpen(value, self.degree) if chosen else value
