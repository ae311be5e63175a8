"""The 1.x spelling of `mindspore.dataset.transforms`; `OneHotOp` is the old name of `OneHot`."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.dataset.transforms.transforms import Compose, OneHot, PyTensorOperation, RandomApply, RandomChoice, RandomOrder

OneHotOp = OneHot
