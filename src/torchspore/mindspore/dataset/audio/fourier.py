"""Short-time Fourier transforms and their inverses, by SciPy."""
from __future__ import annotations

from functools import cache

import numpy as np

from torchspore.mindspore.dataset.audio.choices import BorderType, WindowType

KAISER_BETA = 12.0


@cache
def window(kind: WindowType, length: int, frame: int) -> np.ndarray:
    """Return a periodic window of `length`, centered in `frame` zeros."""
    from scipy import signal

    name = ("kaiser", KAISER_BETA) if kind is WindowType.KAISER else str(kind.value)
    values = np.zeros(frame)
    start = (frame - length) // 2
    values[start : start + length] = signal.get_window(name, length)
    values.flags.writeable = False
    return values


def framed(value: np.ndarray, center: bool, mode: BorderType, n_fft: int, hop: int) -> np.ndarray:
    """Return the frames (..., frame, n_fft) of a signal (..., time); `center` pads half a frame at both ends."""
    if center:
        value = _with_ends(value, n_fft // 2, mode)
    value = np.ascontiguousarray(value)
    count, (*outer, last) = 1 + (value.shape[-1] - n_fft) // hop, value.strides
    return np.ndarray((*value.shape[:-1], count, n_fft), value.dtype, value, 0, (*outer, hop * last, last))


def _with_ends(value: np.ndarray, size: int, mode: BorderType) -> np.ndarray:
    """Return the signal with `size` more values at each end."""
    if mode is BorderType.REFLECT and 0 < size < value.shape[-1]:       # np.pad takes longer than the whole spectrum
        return np.concatenate((value[..., size:0:-1], value, value[..., -2 : -size - 2 : -1]), -1)
    return np.pad(value, [(0, 0)] * (value.ndim - 1) + [(size, size)], mode=mode.value)  # type: ignore[call-overload,no-any-return]


def stft(
    value: np.ndarray, n_fft: int, hop: int, values: np.ndarray, center: bool = True, mode: BorderType = BorderType.REFLECT,
    onesided: bool = True,
) -> np.ndarray:
    """Return the complex spectrum (..., freq, frame) of a signal (..., time)."""
    from scipy import fft

    frames = framed(value, center, mode, n_fft, hop) * values.astype(value.dtype)
    spectrum = fft.rfft(frames, axis=-1) if onesided else fft.fft(frames, axis=-1)
    return np.swapaxes(spectrum, -1, -2)


def istft(
    spectrum: np.ndarray, n_fft: int, hop: int, values: np.ndarray, length: int | None, center: bool = True, onesided: bool = True
) -> np.ndarray:
    """Return the signal (..., time) of a complex spectrum (..., freq, frame): the sum of the frames, divided by the squared windows."""
    from scipy import fft

    bins = np.swapaxes(spectrum, -1, -2)
    frames = fft.irfft(bins, n_fft, axis=-1) if onesided else fft.ifft(bins, axis=-1).real
    values = values.astype(frames.dtype)
    signal = added(frames * values, hop)
    weights = added(np.broadcast_to(values**2, (frames.shape[-2], n_fft)), hop)
    signal = signal / np.where(weights > 1e-11, weights, 1)
    start = n_fft // 2 if center else 0
    end = signal.shape[-1] - start if length is None else start + length
    cropped = signal[..., start:end]
    missing = 0 if length is None else length - cropped.shape[-1]
    return np.pad(cropped, [(0, 0)] * (cropped.ndim - 1) + [(0, missing)]) if missing > 0 else cropped


def added(frames: np.ndarray, hop: int) -> np.ndarray:
    """Return the sum of frames (..., frame, n) that overlap at a distance of `hop` samples."""
    count, size = frames.shape[-2:]
    pieces = -(-size // hop)
    frames = np.pad(frames, [(0, 0)] * (frames.ndim - 1) + [(0, pieces * hop - size)])
    total = np.zeros((*frames.shape[:-2], count + pieces - 1, hop), frames.dtype)
    for piece in range(pieces):
        total[..., piece : piece + count, :] += frames[..., piece * hop : (piece + 1) * hop]
    return total.reshape(*frames.shape[:-2], -1)[..., : (count - 1) * hop + size]


def as_pairs(spectrum: np.ndarray) -> np.ndarray:
    """Return complex numbers as pairs (..., 2)."""
    return np.stack([spectrum.real, spectrum.imag], -1)


def as_complex(pairs: np.ndarray) -> np.ndarray:
    """Return pairs (..., 2) as complex numbers."""
    return pairs[..., 0] + 1j * pairs[..., 1]
