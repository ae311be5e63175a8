"""Masks: set a range of frequencies or of frames to one value."""
from __future__ import annotations

from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.dataset.audio.operation import AudioTensorOperation, check_any, check_from_0
from torchspore.mindspore.dataset.core.randomness import generator
from torchspore.mindspore.dataset.core.validator_helpers import FLOAT_MAX_INTEGER, check_bool, check_int, check_type


def _masked(call: str, value: np.ndarray, start: int, width: int, fill: float, axis: int) -> np.ndarray:
    """Fill the range `start` to `start + width` of `axis` (-2 or -1)."""
    size = value.shape[axis]
    if width > size or start + width > size:
        raise RuntimeError(message(f"{call}: {start} to {start + width} of {size}", "a run inside the spectrogram"))
    masked = value.copy()
    np.swapaxes(masked, axis, -1)[..., start : start + width] = fill
    return masked


def _masked_at_random(call: str, value: np.ndarray, max_width: int, fill: float, axis: int) -> np.ndarray:
    """Fill a random range of at most `max_width` along `axis`, a different one in each spectrogram."""
    size = value.shape[axis]
    if max_width > size:
        raise RuntimeError(message(f"{call} of at most {max_width} of {size}", "a run that is not longer than the spectrogram"))
    lead = value.shape[:-2]
    widths = generator().random(lead) * max_width
    starts = (generator().random(lead) * (size - widths)).astype(int)
    positions = np.arange(size)
    inside = (positions >= starts[..., None]) & (positions < starts[..., None] + widths.astype(int)[..., None])
    inside = inside[..., :, None] if axis == -2 else inside[..., None, :]
    return np.where(inside, value.dtype.type(fill), value)


class MaskAlongAxis(AudioTensorOperation):
    """Fills a range of `mask_width` from `mask_start` on, of frequencies (axis 1) or of time (axis 2)."""

    _shape = "<..., freq, time>"

    def __init__(self, mask_start: int, mask_width: int, mask_value: float, axis: int) -> None:
        check_int("MaskAlongAxis", "mask_start", mask_start, 0)
        check_int("MaskAlongAxis", "mask_width", mask_width, 1)
        check_any("MaskAlongAxis", "mask_value", mask_value)
        check_int("MaskAlongAxis", "axis", axis, 1, 2)
        self.mask_start, self.mask_width, self.mask_value, self.axis = mask_start, mask_width, mask_value, axis - 3

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return _masked("MaskAlongAxis", value, self.mask_start, self.mask_width, self.mask_value, self.axis)


class MaskAlongAxisIID(AudioTensorOperation):
    """Fills a random range, shorter than `mask_param`, of frequencies (axis 1) or of time (axis 2); a different one in each."""

    _shape = "<..., freq, time>"

    def __init__(self, mask_param: int, mask_value: float, axis: int) -> None:
        check_int("MaskAlongAxisIID", "mask_param", mask_param, 0)
        check_any("MaskAlongAxisIID", "mask_value", mask_value)
        check_int("MaskAlongAxisIID", "axis", axis, 1, 2)
        self.mask_param, self.mask_value, self.axis = mask_param, mask_value, axis - 3

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return _masked_at_random("MaskAlongAxisIID", value, self.mask_param, self.mask_value, self.axis)


class _Masking(AudioTensorOperation):
    """Base: a range of length `max_width` from `start` on; with `iid_masks` a random range for each spectrogram."""

    _shape = "<..., freq, time>"
    _axis = -2

    def __init__(self, iid_masks: Any, name: str, max_width: Any, start: Any, fill: Any) -> None:
        call = type(self).__name__
        check_bool(call, "iid_masks", iid_masks)
        check_int(call, name, max_width, 0, FLOAT_MAX_INTEGER)
        check_type(call, "mask_start", start, int, "an int")
        check_int(call, "mask_start", start, 0, FLOAT_MAX_INTEGER)
        check_from_0(call, "mask_value", fill)
        self.iid_masks, self.max_width, self.mask_start, self.mask_value = iid_masks, max_width, start, fill

    def _apply(self, value: np.ndarray) -> np.ndarray:
        call = type(self).__name__
        if self.iid_masks:
            return _masked_at_random(call, value, self.max_width, self.mask_value, self._axis)
        return _masked(call, value, self.mask_start, self.max_width, self.mask_value, self._axis)


class FrequencyMasking(_Masking):
    """Fills frequencies of a spectrogram: `freq_mask_param` of them from `mask_start` on, or with `iid_masks` a random range for each."""

    def __init__(self, iid_masks: bool = False, freq_mask_param: int = 0, mask_start: int = 0, mask_value: float = 0.0) -> None:
        super().__init__(iid_masks, "freq_mask_param", freq_mask_param, mask_start, mask_value)


class TimeMasking(_Masking):
    """Fills frames of a spectrogram: `time_mask_param` of them from `mask_start` on, or with `iid_masks` a random range for each."""

    _axis = -1

    def __init__(self, iid_masks: bool = False, time_mask_param: int = 0, mask_start: int = 0, mask_value: float = 0.0) -> None:
        super().__init__(iid_masks, "time_mask_param", time_mask_param, mask_start, mask_value)
