"""Pooling, windows and resizing as Cells."""
from __future__ import annotations

from typing import Any

from torchspore.mindspore.mint.nn import functional as F
from torchspore.mindspore.mint.nn.layer.shared import REQUIRED, layer

AdaptiveAvgPool1d = layer("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, output_size=REQUIRED)
AdaptiveAvgPool2d = layer("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, output_size=REQUIRED)
AdaptiveAvgPool3d = layer("AdaptiveAvgPool3d", F.adaptive_avg_pool3d, output_size=REQUIRED)
AdaptiveMaxPool1d = layer("AdaptiveMaxPool1d", F.adaptive_max_pool1d, output_size=REQUIRED, return_indices=False)
AdaptiveMaxPool2d = layer("AdaptiveMaxPool2d", F.adaptive_max_pool2d, output_size=REQUIRED, return_indices=False)
AvgPool1d = layer("AvgPool1d", F.avg_pool1d, kernel_size=REQUIRED, stride=None, padding=0, ceil_mode=False, count_include_pad=True)
AvgPool2d = layer(
    "AvgPool2d", F.avg_pool2d, kernel_size=REQUIRED, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None,
)
AvgPool3d = layer(
    "AvgPool3d", F.avg_pool3d, kernel_size=REQUIRED, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None,
)
MaxPool2d = layer("MaxPool2d", F.max_pool2d, kernel_size=1, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False)
MaxUnpool2d = layer("MaxUnpool2d", F.max_unpool2d, kernel_size=REQUIRED, stride=None, padding=0)
Fold = layer("Fold", F.fold, output_size=REQUIRED, kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
Unfold = layer("Unfold", F.unfold, kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
PixelShuffle = layer("PixelShuffle", F.pixel_shuffle, upscale_factor=REQUIRED)
Upsample = layer(
    "Upsample", F.interpolate, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
)


def _nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resizes images (N, C, H, W) with nearest neighbours."""
    return F.interpolate(input, size, scale_factor, "nearest")


def _bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Resizes images (N, C, H, W), bilinear with the corners preserved."""
    return F.interpolate(input, size, scale_factor, "bilinear", True)


UpsamplingNearest2d = layer("UpsamplingNearest2d", _nearest, size=None, scale_factor=None)
UpsamplingBilinear2d = layer("UpsamplingBilinear2d", _bilinear, size=None, scale_factor=None)
