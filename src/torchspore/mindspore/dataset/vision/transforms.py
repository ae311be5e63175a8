"""MindSpore's module of this name: every image transform."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustHue,
    AdjustSaturation,
    AutoContrast,
    ConvertColor,
    Equalize,
    GaussianBlur,
    Invert,
    Normalize,
    NormalizePad,
    Posterize,
    Rescale,
    Solarize,
)
from torchspore.mindspore.dataset.vision.geometry import CenterCrop, Crop, HorizontalFlip, Pad, Resize, Rotate, VerticalFlip
from torchspore.mindspore.dataset.vision.pictures import HWC2CHW, Decode, Grayscale, ImageTensorOperation, ToNumpy, ToPIL, ToTensor, ToType
from torchspore.mindspore.dataset.vision.random_tones import (
    AdjustGamma,
    AdjustSharpness,
    RandomAffine,
    RandomAutoContrast,
    RandomEqualize,
    RandomInvert,
    RandomPosterize,
    RandomSelectSubpolicy,
    RandomSharpness,
    RandomSolarize,
)
from torchspore.mindspore.dataset.vision.randoms import (
    CutOut,
    RandomColor,
    RandomColorAdjust,
    RandomCrop,
    RandomCropDecodeResize,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomResize,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
)
