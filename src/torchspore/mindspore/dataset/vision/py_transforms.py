"""The 1.x spelling of `mindspore.dataset.vision` for PIL images; 1.x's different defaults are preserved here.

`Decode` gives a PIL image, `Normalize` and `RandomErasing` work on (C, H, W), `Cutout` is the old name of `CutOut`.
"""
# ruff: noqa: F401
from __future__ import annotations

from typing import Any

from torchspore.mindspore.dataset.transforms.transforms import Compose, not_random
from torchspore.mindspore.dataset.vision import color, images, random_transforms
from torchspore.mindspore.dataset.vision.color_spaces import RgbToBgr
from torchspore.mindspore.dataset.vision.transforms import *  # noqa: F403
from torchspore.mindspore.dataset.vision.utils import Border, Inter


class Decode(images.Decode):
    """Decodes the bytes of an image file to a PIL image."""

    def __init__(self) -> None:
        super().__init__(to_pil=True)


class Normalize(color.Normalize):
    """Computes `(image - mean) / std` for each channel of (C, H, W)."""

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__(mean, std, is_hwc=False)


class Cutout(random_transforms.CutOut):
    """Blackens squares of an image (C, H, W)."""

    def __init__(self, length: int, num_patches: int = 1) -> None:
        super().__init__(length, num_patches, is_hwc=False)


class ToTensor(images.ToTensor):
    """Converts an image to (C, H, W), divided by 255."""


ToPIL = images.ToPIL
__all__ = [name for name in globals() if (name[:1].isupper() and name != "Any") or name == "not_random"]
