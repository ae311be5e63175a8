"""Filter banks over frequencies, and the matrix of a cosine transform."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.dataset.audio.choices import MelType, NormMode, NormType
from torchspore.mindspore.dataset.audio.operation import check_from_0
from torchspore.mindspore.dataset.core.validator_helpers import check_int, check_type


def create_dct(n_mfcc: int, n_mels: int, norm: NormMode = NormMode.NONE) -> np.ndarray:
    """Return the type-2 cosine transform as a matrix (n_mels, n_mfcc), float32; orthonormal with NormMode.ORTHO."""
    check_int("create_dct", "n_mfcc", n_mfcc, 1)
    check_int("create_dct", "n_mels", n_mels, 1)
    check_type("create_dct", "norm", norm, NormMode, "a member of NormMode")
    matrix = np.cos(math.pi / n_mels * np.outer(np.arange(n_mels) + 0.5, np.arange(n_mfcc)))
    if norm is NormMode.NONE:
        return (2 * matrix).astype(np.float32)
    matrix[:, 0] *= 1 / math.sqrt(2)
    return (matrix * math.sqrt(2 / n_mels)).astype(np.float32)


def _check_bank(call: str, name: str, n_freqs: Any, f_min: Any, f_max: Any, n_filter: Any, sample_rate: Any) -> None:
    check_int(call, "n_freqs", n_freqs, 0)
    check_from_0(call, "f_min", f_min)
    check_from_0(call, "f_max", f_max)
    check_int(call, name, n_filter, 1)
    check_int(call, "sample_rate", sample_rate, 1)
    if f_min > f_max:
        raise ValueError(message(f"{call}(f_min={f_min}, f_max={f_max})", "an f_min that is not above f_max"))


def _triangles(frequencies: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return triangular filters (frequency, filter) that rise from one corner to the next and fall to the one after it."""
    widths = np.diff(corners)
    slopes = corners[None] - frequencies[:, None]
    return np.maximum(0, np.minimum(-slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:]))


def linear_fbanks(n_freqs: int, f_min: float, f_max: float, n_filter: int, sample_rate: int) -> np.ndarray:
    """Return `n_filter` triangles of equal width from `f_min` to `f_max` Hz, (n_freqs, n_filter), float32."""
    _check_bank("linear_fbanks", "n_filter", n_freqs, f_min, f_max, n_filter, sample_rate)
    return _triangles(np.linspace(0, sample_rate // 2, n_freqs), np.linspace(f_min, f_max, n_filter + 2)).astype(np.float32)


class Bank:
    """A filter bank (frequency, filter) for spectra (..., frequency, time).

    The matrix is sparse because most of it is zeros: a product with BLAS takes ten times as long, mostly to wake threads.
    """

    def __init__(self, matrix: np.ndarray) -> None:
        from scipy import sparse

        self.frequencies, self.filters = matrix.shape
        self._matrices = {np.dtype(kind): sparse.csr_array(matrix.T.astype(kind)) for kind in (np.float32, np.float64)}

    def __call__(self, spectrum: np.ndarray) -> np.ndarray:
        matrix = self._matrices[spectrum.dtype]
        if spectrum.ndim == 2:
            return matrix @ spectrum
        rows = np.moveaxis(spectrum, -2, 0)
        bands = matrix @ rows.reshape(self.frequencies, -1)
        return np.ascontiguousarray(np.moveaxis(bands.reshape(self.filters, *rows.shape[1:]), 0, -2))


_BREAK, _STEP = 1000.0, math.log(6.4) / 27.0
"""Convert to Slaney's mel scale (Auditory Toolbox, 1998): linear up to 1 kHz, logarithmic above."""


def _to_mel(hertz: float, mel_type: MelType) -> float:
    if mel_type is MelType.HTK:
        return 2595.0 * math.log10(1.0 + hertz / 700.0)
    linear = hertz * 3 / 200
    return linear if hertz < _BREAK else _BREAK * 3 / 200 + math.log(hertz / _BREAK) / _STEP


def _to_hertz(mels: np.ndarray, mel_type: MelType) -> np.ndarray:
    if mel_type is MelType.HTK:
        return 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
    edge = _BREAK * 3 / 200
    return np.where(mels < edge, mels * 200 / 3, _BREAK * np.exp(_STEP * (mels - edge)))


def melscale_fbanks(
    n_freqs: int, f_min: float, f_max: float, n_mels: int, sample_rate: int, norm: NormType = NormType.NONE, mel_type: MelType = MelType.HTK
) -> np.ndarray:
    """Return `n_mels` triangles of equal mel width, (n_freqs, n_mels), float32; NormType.SLANEY divides each by its width in Hz."""
    call = "melscale_fbanks"
    _check_bank(call, "n_mels", n_freqs, f_min, f_max, n_mels, sample_rate)
    check_type(call, "norm", norm, NormType, "a member of NormType")
    check_type(call, "mel_type", mel_type, MelType, "a member of MelType")
    corners = _to_hertz(np.linspace(_to_mel(f_min, mel_type), _to_mel(f_max, mel_type), n_mels + 2), mel_type)
    bank = _triangles(np.linspace(0, sample_rate // 2, n_freqs), corners)
    if norm is NormType.SLANEY:
        bank *= 2.0 / (corners[2:] - corners[:n_mels])
    return bank.astype(np.float32)
