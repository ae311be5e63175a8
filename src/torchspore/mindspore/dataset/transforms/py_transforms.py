"""The 1.x spelling of `mindspore.dataset.transforms`; `OneHotOp` is `OneHot` under its old name."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.dataset.transforms.transforms import Compose, OneHot, PyTensorOperation, RandomApply, RandomChoice, RandomOrder

OneHotOp = OneHot
