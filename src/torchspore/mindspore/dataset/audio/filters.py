"""Audio filters: every biquad is one recursive filter with its own coefficients.

The coefficients are Robert Bristow-Johnson's (Audio EQ Cookbook, https://www.w3.org/TR/audio-eq-cookbook/); those of `BandBiquad`,
`DeemphBiquad` and `RiaaBiquad` are SoX's (https://sox.sourceforge.net, biquads).
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchspore.base.text import message, short
from torchspore.mindspore.dataset.audio.operation import AudioTensorOperation, check_any, check_rate
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_choice, check_number, check_type, with_sentence


def filtered(value: np.ndarray, a: Any, b: Any, clamp: bool = True) -> np.ndarray:
    """Filter `value` (..., time) with the coefficients `a` (of the output) and `b`; `clamp` clips the result to [-1, 1]."""
    from scipy import signal  # a slow import, deferred until a filter runs

    out = signal.lfilter(np.asarray(b, np.float64), np.asarray(a, np.float64), value.astype(np.float64, copy=False))
    return (np.clip(out, -1, 1, out) if clamp else out).astype(value.dtype, copy=False)


class _Filter(AudioTensorOperation):
    """Base of the filters: float16 stays float16; integers are refused."""

    _takes_integers = False
    _a: tuple[float, ...]
    _b: tuple[float, ...]

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        (result,) = super()._apply_all(*values)
        return (result.astype(values[0].dtype, copy=False),)

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return filtered(value, self._a, self._b)


class _Equal(_Filter):
    """Base of the filters around one frequency: `_coefficients(cosine, alpha)` returns b and a."""

    def __init__(self, sample_rate: int, name: str, frequency: float, quality: float, gain: float = 0.0) -> None:
        call = type(self).__name__
        check_rate(call, sample_rate)
        check_any(call, name, frequency)
        check_number(call, "Q", quality, 0, 1, above=True)
        check_any(call, "gain", gain)
        self.sample_rate, self.frequency, self.quality = sample_rate, frequency, quality
        angle = 2 * math.pi * frequency / sample_rate
        self._amplitude = 10 ** (gain / 40)
        self._b, self._a = self._coefficients(math.cos(angle), math.sin(angle) / 2 / quality)

    def _coefficients(self, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        raise NotImplementedError


class AllpassBiquad(_Equal):
    """Shifts phases around `central_freq` and leaves the volume unchanged."""

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707) -> None:
        super().__init__(sample_rate, "central_freq", central_freq, Q)

    def _coefficients(self, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (1 - alpha, -2 * cosine, 1 + alpha), (1 + alpha, -2 * cosine, 1 - alpha)


class LowpassBiquad(_Equal):
    """Passes the frequencies below `cutoff_freq`."""

    def __init__(self, sample_rate: int, cutoff_freq: float, Q: float = 0.707) -> None:
        super().__init__(sample_rate, "cutoff_freq", cutoff_freq, Q)

    def _coefficients(self, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return ((1 - cosine) / 2, 1 - cosine, (1 - cosine) / 2), (1 + alpha, -2 * cosine, 1 - alpha)


class HighpassBiquad(_Equal):
    """Passes the frequencies above `cutoff_freq`."""

    def __init__(self, sample_rate: int, cutoff_freq: float, Q: float = 0.707) -> None:
        super().__init__(sample_rate, "cutoff_freq", cutoff_freq, Q)

    def _coefficients(self, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return ((1 + cosine) / 2, -1 - cosine, (1 + cosine) / 2), (1 + alpha, -2 * cosine, 1 - alpha)


class BandpassBiquad(_Equal):
    """Passes the frequencies around `central_freq`; with `const_skirt_gain` the peak grows with `Q`, otherwise it is 0 dB."""

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707, const_skirt_gain: bool = False) -> None:
        check_bool("BandpassBiquad", "const_skirt_gain", const_skirt_gain)
        self.const_skirt_gain = const_skirt_gain
        super().__init__(sample_rate, "central_freq", central_freq, Q)

    def _coefficients(self, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        peak = alpha * self.quality if self.const_skirt_gain else alpha
        return (peak, 0, -peak), (1 + alpha, -2 * cosine, 1 - alpha)


class BandrejectBiquad(_Equal):
    """Removes the frequencies around `central_freq`."""

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707) -> None:
        super().__init__(sample_rate, "central_freq", central_freq, Q)

    def _coefficients(self, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return (1, -2 * cosine, 1), (1 + alpha, -2 * cosine, 1 - alpha)


class BandBiquad(_Equal):
    """Two-pole filter around `central_freq`; `noise` scales it for sounds without pitch."""

    def __init__(self, sample_rate: int, central_freq: float, Q: float = 0.707, noise: bool = False) -> None:
        check_bool("BandBiquad", "noise", noise)
        self.noise = noise
        super().__init__(sample_rate, "central_freq", central_freq, Q)

    def _coefficients(self, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        a2 = math.exp(-2 * math.pi * self.frequency / self.quality / self.sample_rate)
        a1 = -4 * a2 / (1 + a2) * cosine
        peak = math.sqrt(1 - a1 * a1 / (4 * a2)) * (1 - a2)
        if self.noise:
            peak = math.sqrt(((1 + a2) ** 2 - a1 * a1) * (1 - a2) / (1 + a2))
        return (peak, 0, 0), (1, a1, a2)


def _shelf(amplitude: float, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the coefficients of a high shelf; negating `cosine` and the middle coefficients makes a low shelf."""
    wide, more, less = 2 * math.sqrt(amplitude) * alpha, (amplitude - 1) * cosine, (amplitude + 1) * cosine
    b = (amplitude + 1 + more + wide, -2 * (amplitude - 1 + less), amplitude + 1 + more - wide)
    a = (amplitude + 1 - more + wide, 2 * (amplitude - 1 - less), amplitude + 1 - more - wide)
    return tuple(amplitude * coefficient for coefficient in b), a


class TrebleBiquad(_Equal):
    """Raises the frequencies above `central_freq` by `gain` dB."""

    def __init__(self, sample_rate: int, gain: float, central_freq: float = 3000, Q: float = 0.707) -> None:
        super().__init__(sample_rate, "central_freq", central_freq, Q, gain)

    def _coefficients(self, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return _shelf(self._amplitude, cosine, alpha)


class BassBiquad(_Equal):
    """Raises the frequencies below `central_freq` by `gain` dB."""

    def __init__(self, sample_rate: int, gain: float, central_freq: float = 100.0, Q: float = 0.707) -> None:
        super().__init__(sample_rate, "central_freq", central_freq, Q, gain)

    def _coefficients(self, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        (b0, b1, b2), (a0, a1, a2) = _shelf(self._amplitude, -cosine, alpha)
        return (b0, -b1, b2), (a0, -a1, a2)


class EqualizerBiquad(_Equal):
    """Raises the frequencies around `center_freq` by `gain` dB."""

    def __init__(self, sample_rate: int, center_freq: float, gain: float, Q: float = 0.707) -> None:
        super().__init__(sample_rate, "center_freq", center_freq, Q, gain)

    def _coefficients(self, cosine: float, alpha: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        up, down = alpha * self._amplitude, alpha / self._amplitude
        return (1 + up, -2 * cosine, 1 - up), (1 + down, -2 * cosine, 1 - down)


class Biquad(_Filter):
    """A second-order filter with the coefficients in the arguments."""

    _takes_lists = True

    def __init__(self, b0: float, b1: float, b2: float, a0: float, a1: float, a2: float) -> None:
        for name, value in zip("b0 b1 b2 a0 a1 a2".split(), (b0, b1, b2, a0, a1, a2)):
            check_any("Biquad", name, value)
        if a0 == 0:
            raise ValueError(message("Biquad(a0=0)", "a number that is not 0"))
        self._a, self._b = (a0, a1, a2), (b0, b1, b2)


class DeemphBiquad(_Filter):
    """Removes the emphasis of Compact Discs (a shelf after ISO 908); `sample_rate` is 44100 or 48000."""

    def __init__(self, sample_rate: int) -> None:
        check_type("DeemphBiquad", "sample_rate", sample_rate, int, "an int")
        check_choice("DeemphBiquad", "sample_rate", sample_rate, (44100, 48000))
        frequency, slope, gain = {44100: (5283, 0.4845, -9.477), 48000: (5356, 0.479, -9.62)}[sample_rate]
        angle, amplitude = 2 * math.pi * frequency / sample_rate, 10 ** (gain / 40)
        alpha = math.sin(angle) / 2 * math.sqrt((amplitude + 1 / amplitude) * (1 / slope - 1) + 2)
        self._b, self._a = _shelf(amplitude, math.cos(angle), alpha)


class RiaaBiquad(_Filter):
    """Applies the playback curve of vinyl records (RIAA), 0 dB at 1 kHz; `sample_rate` is 44100, 48000, 88200 or 96000."""

    def __init__(self, sample_rate: int) -> None:
        check_type("RiaaBiquad", "sample_rate", sample_rate, int, "an int")
        check_choice("RiaaBiquad", "sample_rate", sample_rate, (44100, 48000, 88200, 96000))
        zeros, poles = {
            44100: ((-0.2014898, 0.9233820), (0.7083149, 0.9924091)), 48000: ((-0.1766069, 0.9321590), (0.7396325, 0.9931330)),
            88200: ((-0.1168735, 0.9648312), (0.8590646, 0.9964002)), 96000: ((-0.1141486, 0.9676817), (0.8699137, 0.9966946)),
        }[sample_rate]
        b, a = np.poly(zeros), np.poly(poles)
        turn = np.exp(-2j * math.pi * 1000 / sample_rate * np.arange(3))
        self._a, self._b = tuple(a), tuple(b * abs(a @ turn) / abs(b @ turn))


def _check_coefficients(call: str, a_coeffs: Any, b_coeffs: Any, clamp: Any) -> None:
    for name, values in (("a_coeffs", a_coeffs), ("b_coeffs", b_coeffs)):
        check_type(call, name, values, (list, tuple), "a list of numbers")
        for index, value in enumerate(values):
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                check_type(call, f"{name}[{index}]", value, (int, float), "a number")
            check_any(call, name, value)
    if len(a_coeffs) != len(b_coeffs):
        text = message(f"{call}({short(a_coeffs)}, {short(b_coeffs)})", "lists of one length")
        raise ValueError(with_sentence(text, "The size of a_coeffs should be the same as that of b_coeffs."))
    if not a_coeffs or a_coeffs[0] == 0:
        raise ValueError(message(f"{call}(a_coeffs={short(a_coeffs)})", "coefficients, the first of which is not 0"))
    check_bool(call, "clamp", clamp)


class LFilter(_Filter):
    """A recursive filter with the coefficients `a_coeffs` of the output and `b_coeffs` of the input, the smallest delay first."""

    def __init__(self, a_coeffs: Any, b_coeffs: Any, clamp: bool = True) -> None:
        _check_coefficients("LFilter", a_coeffs, b_coeffs, clamp)
        self._a, self._b, self.clamp = tuple(a_coeffs), tuple(b_coeffs), clamp

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return filtered(value, self._a, self._b, self.clamp)


class Filtfilt(LFilter):
    """Applies `LFilter` forwards and then backwards, which leaves phases unchanged."""

    def _apply(self, value: np.ndarray) -> np.ndarray:
        forward = filtered(value, self._a, self._b, False)
        return np.ascontiguousarray(filtered(forward[..., ::-1], self._a, self._b, self.clamp)[..., ::-1])
