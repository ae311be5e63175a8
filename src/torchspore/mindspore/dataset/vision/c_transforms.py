"""The 1.x spelling of `mindspore.dataset.vision` for arrays."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.dataset.vision.transforms import *  # noqa: F403
from torchspore.mindspore.dataset.vision.utils import Border, ConvertMode, ImageBatchFormat, Inter, SliceMode
