"""MindSpore's module of this name: every image transform."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.dataset.core.operation import PyTensorOperation, TensorOperation
from torchspore.mindspore.dataset.transforms.transforms import not_random
from torchspore.mindspore.dataset.vision.boxes import (
    BoundingBoxAugment,
    RandomCropWithBBox,
    RandomHorizontalFlipWithBBox,
    RandomResizedCropWithBBox,
    RandomResizeWithBBox,
    RandomVerticalFlipWithBBox,
    ResizeWithBBox,
)
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
from torchspore.mindspore.dataset.vision.color_spaces import HsvToRgb, LinearTransformation, RgbToHsv
from torchspore.mindspore.dataset.vision.crops import Erase, FiveCrop, PadToSize, ResizedCrop, SlicePatches, TenCrop
from torchspore.mindspore.dataset.vision.geometry import CenterCrop, Crop, HorizontalFlip, Pad, Resize, Rotate, VerticalFlip
from torchspore.mindspore.dataset.vision.images import HWC2CHW, Decode, Grayscale, ImageTensorOperation, ToNumpy, ToPIL, ToTensor, ToType
from torchspore.mindspore.dataset.vision.mixup import CutMixBatch, MixUp, MixUpBatch
from torchspore.mindspore.dataset.vision.policies import (
    AutoAugment,
    RandAugment,
    RandomAdjustSharpness,
    RandomLighting,
    TrivialAugmentWide,
    UniformAugment,
)
from torchspore.mindspore.dataset.vision.random_adjustments import (
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
from torchspore.mindspore.dataset.vision.random_transforms import (
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
from torchspore.mindspore.dataset.vision.utils import AutoAugmentPolicy, Border, ConvertMode, ImageBatchFormat, Inter, SliceMode
from torchspore.mindspore.dataset.vision.video import DecodeVideo
from torchspore.mindspore.dataset.vision.warps import Affine, Perspective, RandomPerspective
