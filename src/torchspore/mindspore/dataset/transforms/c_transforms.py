"""The 1.x spelling of `mindspore.dataset.transforms`; one set of transforms serves both spellings."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.dataset.transforms.transforms import (
    Compose,
    Concatenate,
    Duplicate,
    Fill,
    Mask,
    OneHot,
    PadEnd,
    Plugin,
    RandomApply,
    RandomChoice,
    Relational,
    Slice,
    TensorOperation,
    TypeCast,
    Unique,
)
