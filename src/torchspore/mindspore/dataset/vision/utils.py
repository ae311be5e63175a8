"""Enumerations for the arguments of image transforms."""
from __future__ import annotations

from enum import Enum, IntEnum


class Inter(IntEnum):
    """Interpolation between pixels."""

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, Enum):
    """Padding of an image: a constant, its edge, or its mirror image without or with the edge."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class AutoAugmentPolicy(str, Enum):
    """Data set of the policies of `AutoAugment`."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


class ConvertMode(IntEnum):
    """Source and destination order of colour channels."""

    COLOR_BGR2BGRA = COLOR_RGB2RGBA = 0
    COLOR_BGRA2BGR = COLOR_RGBA2RGB = 1
    COLOR_BGR2RGBA = COLOR_RGB2BGRA = 2
    COLOR_RGBA2BGR = COLOR_BGRA2RGB = 3
    COLOR_BGR2RGB = COLOR_RGB2BGR = 4
    COLOR_BGRA2RGBA = COLOR_RGBA2BGRA = 5
    COLOR_BGR2GRAY = 6
    COLOR_RGB2GRAY = 7
    COLOR_GRAY2BGR = COLOR_GRAY2RGB = 8
    COLOR_GRAY2BGRA = COLOR_GRAY2RGBA = 9
    COLOR_BGRA2GRAY = 10
    COLOR_RGBA2GRAY = 11


class ImageBatchFormat(IntEnum):
    """Position of the channels in a batch of images."""

    NHWC = 0
    NCHW = 1


class SliceMode(IntEnum):
    """Treatment of an image that `SlicePatches` can't divide evenly."""

    PAD = 0
    DROP = 1


class ImageReadMode(IntEnum):
    """Channels of an image that is read."""

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2
