"""torchvision from PyPI beside a CPU build of torch: its library needs CUDA, and without it timm cannot import torchvision.

torchvision registers shapes for two operators of this library even if it did not load. Their declarations make the import succeed.
"""
from __future__ import annotations

import importlib
from importlib.util import find_spec

import torch

_BOXES = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def declare() -> None:
    """Declare the operators if torchvision is installed and its library does not load."""
    if find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", _BOXES)
