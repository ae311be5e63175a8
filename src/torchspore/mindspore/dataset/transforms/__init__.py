"""Transforms for any data."""
from __future__ import annotations

from torchspore.mindspore.dataset.transforms import c_transforms, py_transforms, py_transforms_util, transforms, validators
from torchspore.mindspore.dataset.transforms.transforms import (
    Compose,
    Concatenate,
    Duplicate,
    Fill,
    Mask,
    OneHot,
    PadEnd,
    Plugin,
    PyTensorOperation,
    RandomApply,
    RandomChoice,
    RandomOrder,
    Relational,
    Slice,
    TypeCast,
    Unique,
    not_random,
)
from torchspore.public_names import missing

__getattr__ = missing(__name__)
