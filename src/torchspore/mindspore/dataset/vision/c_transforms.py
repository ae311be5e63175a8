"""The 1.x spelling of `mindspore.dataset.vision` for arrays."""

# ruff: noqa: F401
from __future__ import annotations

from typing import Any

from torchspore.mindspore.dataset.vision import color_spaces, geometry, random_transforms
from torchspore.mindspore.dataset.vision.transforms import *  # noqa: F403
from torchspore.mindspore.dataset.vision.utils import Border, ConvertMode, ImageBatchFormat, Inter, SliceMode


class RgbToBgr(color_spaces.RgbToBgr):
    """Reverses the channels of an image (H, W, 3)."""

    def __init__(self) -> None:
        super().__init__(is_hwc=True)


class SoftDvppDecodeResizeJpeg(geometry.Resize):
    """Decodes the bytes of a JPEG file and resizes; an Ascend's result differs in some pixels."""

    def __init__(self, size: Any) -> None:
        super().__init__(size)

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        return super()._apply_all(*[random_transforms.decode(value, "SoftDvppDecodeResizeJpeg") for value in values])


class SoftDvppDecodeRandomCropResizeJpeg(random_transforms.RandomCropDecodeResize):
    """`RandomCropDecodeResize` of the bytes of a JPEG file; an Ascend's result differs in some pixels."""

    _call = "SoftDvppDecodeRandomCropResizeJpeg"

    def __init__(self, size: Any, scale: Any = (0.08, 1.0), ratio: Any = (3.0 / 4.0, 4.0 / 3.0), max_attempts: int = 10) -> None:
        super().__init__(size, scale, ratio, max_attempts=max_attempts)
