"""Resampling by a windowed sinc filter (Smith, https://ccrma.stanford.edu/~jos/resample)."""
from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from torchspore.mindspore.dataset.audio.choices import ResampleMethod
from torchspore.mindspore.dataset.audio.operation import AudioTensorOperation, check_above, check_any
from torchspore.mindspore.dataset.core.validator_helpers import check_int, check_number, check_type

_BETA = 14.769656459379492


_LARGEST = 1 << 20
"""Maximum number of values in a filter table, and of samples processed at once where each filter has its own position."""


def _reach(old: int, new: int, zeros: int, rolloff: float) -> int:
    """Return the number of earlier samples that a filter uses."""
    return math.ceil(zeros * old / (min(old, new) * rolloff))


@cache
def _kernels(old: int, new: int, method: ResampleMethod, zeros: int, rolloff: float, beta: float) -> np.ndarray:
    """Return one filter for each of the `new` samples that replace `old` samples; all filters start at the same sample."""
    width = _reach(old, new, zeros, rolloff)
    return _filters(np.arange(-width, width + old), old, new, method, zeros, rolloff, beta)


def _filters(
    samples: np.ndarray, old: int, new: int, method: ResampleMethod, zeros: int, rolloff: float, beta: float,
) -> np.ndarray:
    """Apply each of the `new` filters to the samples at these positions."""
    base = min(old, new) * rolloff
    positions = np.clip((samples / old - np.arange(new)[:, None] / new) * base, -zeros, zeros)
    if method is ResampleMethod.SINC_INTERPOLATION:
        windows = np.cos(positions * math.pi / zeros / 2) ** 2
    else:
        windows = np.i0(beta * np.sqrt(np.maximum(1 - (positions / zeros) ** 2, 0))) / np.i0(beta)
    return np.sinc(positions) * windows * (base / old)


def resampled(
    value: np.ndarray, old: int, new: int, method: ResampleMethod = ResampleMethod.SINC_INTERPOLATION, zeros: int = 6,
    rolloff: float = 0.99, beta: float | None = None,
) -> np.ndarray:
    """Resample a signal (..., time) from the rate `old` to the rate `new`."""
    if old == new:
        return value
    common = math.gcd(old, new)
    old, new = old // common, new // common
    design = (old, new, method, zeros, rolloff, _BETA if beta is None else beta)
    width, length = _reach(old, new, zeros, rolloff), value.shape[-1]
    padded = np.pad(value, [(0, 0)] * (value.ndim - 1) + [(width, width + old + 1)])
    if new * (2 * width + old) <= _LARGEST:
        kernels = _kernels(*design)
        parts = np.lib.stride_tricks.sliding_window_view(padded[..., :-1], kernels.shape[1], -1)[..., ::old, :]
        out = parts @ kernels.T.astype(value.dtype)
    else:
        out = _apply_individually(padded, length // old + 1, width, design)
    return np.ascontiguousarray(out.reshape(*value.shape[:-1], -1)[..., : math.ceil(new * length / old)])


def _apply_individually(padded: np.ndarray, count: int, width: int, design: Any) -> np.ndarray:
    """Apply all filters `count` times if few of them start at the same sample, as for coprime rates such as 12699 and 16000."""
    old, new = design[:2]
    samples = (np.arange(new) * old // new)[:, None] + np.arange(-width, width + 2)
    kernels = _filters(samples, *design).astype(padded.dtype)
    samples += width
    out = np.empty((*padded.shape[:-1], count, new), padded.dtype)
    step = max(_LARGEST // samples.size, 1)
    for begin in range(0, count, step):
        turns = np.arange(begin, min(begin + step, count))
        taken = padded[..., samples + old * turns[:, None, None]]
        out[..., begin : begin + step, :] = np.einsum("...jk,jk->...j", taken, kernels)
    return out


class Resample(AudioTensorOperation):
    """Resamples a signal (..., time); the filter has `lowpass_filter_width` zeros on each side and cuts off at `rolloff` of its band."""

    def __init__(
        self, orig_freq: float = 16000, new_freq: float = 16000, resample_method: ResampleMethod = ResampleMethod.SINC_INTERPOLATION,
        lowpass_filter_width: int = 6, rolloff: float = 0.99, beta: float | None = None,
    ) -> None:
        check_above("Resample", "orig_freq", orig_freq)
        check_above("Resample", "new_freq", new_freq)
        check_type("Resample", "resample_method", resample_method, ResampleMethod, "a member of ResampleMethod")
        check_int("Resample", "lowpass_filter_width", lowpass_filter_width, 1)
        check_number("Resample", "rolloff", rolloff, 0, 1, above=True)
        if beta is not None:
            check_any("Resample", "beta", beta)
        self._rates = max(int(orig_freq), 1), max(int(new_freq), 1)
        self._filter: tuple[Any, ...] = (resample_method, lowpass_filter_width, rolloff, beta)

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return resampled(value, *self._rates, *self._filter)
