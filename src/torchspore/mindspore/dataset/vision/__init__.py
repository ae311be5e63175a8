"""Transforms of images."""
from __future__ import annotations

from torchspore.mindspore.dataset.vision import c_transforms, py_transforms, transforms, utils
from torchspore.mindspore.dataset.vision.transforms import *
from torchspore.mindspore.dataset.vision.utils import Border, ConvertMode, ImageBatchFormat, ImageReadMode, Inter, SliceMode
from torchspore.names import missing

__getattr__ = missing(__name__)
