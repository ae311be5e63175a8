"""What transforms on Pillow images and arrays ask and do, as functions of their own."""
from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image


def is_pil(img: Any) -> bool:
    """Whether `img` is an image of Pillow."""
    return isinstance(img, Image.Image)


def is_numpy(img: Any) -> bool:
    """Whether `img` is an array."""
    return isinstance(img, np.ndarray)


def hwc_to_chw(img: Any) -> Any:
    """An array (H, W, C) as (C, H, W). Raises TypeError for no array, ValueError for another rank."""
    if not is_numpy(img):
        raise TypeError(f"hwc_to_chw({type(img).__name__}): expected a NumPy array.")
    if img.ndim != 3:
        raise ValueError(f"hwc_to_chw: expected 3 axes (H, W, C), got shape {img.shape}.")
    return np.ascontiguousarray(img.transpose(2, 0, 1))


def to_tensor(img: Any, output_type: Any) -> Any:
    """A picture (H, W, C) of 0 to 255 as an array (C, H, W) of 0 to 1 of the type `output_type`."""
    return hwc_to_chw(np.atleast_3d(np.asarray(img))).astype(output_type) / np.asarray(255, output_type)


def to_pil(img: Any) -> Any:
    """An array (H, W, C) or (H, W), or an image, as an image of Pillow."""
    return img if is_pil(img) else Image.fromarray(img)
