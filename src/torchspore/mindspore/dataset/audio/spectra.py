"""Spectrograms, features that are computed from them, and their inverses."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchspore.base.text import list_choices, message, short
from torchspore.mindspore.dataset.audio.banks import Bank, create_dct, linear_fbanks, melscale_fbanks
from torchspore.mindspore.dataset.audio.choices import BorderType, MelType, NormMode, NormType, WindowType
from torchspore.mindspore.dataset.audio.fourier import as_complex, as_pairs, istft, stft, window
from torchspore.mindspore.dataset.audio.levels import decibels
from torchspore.mindspore.dataset.audio.operation import AudioTensorOperation, check_above, check_any, check_from_0, check_rate_from_0
from torchspore.mindspore.dataset.audio.resampling import resampled
from torchspore.mindspore.dataset.core.randomness import generator
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_type, with_sentence


class Frames:
    """Frame sizes and window of a spectrogram, checked."""

    def __init__(self, call: str, n_fft: Any, win_length: Any, hop_length: Any, kind: Any, name: str = "window") -> None:
        check_int(call, "n_fft", n_fft, 1)
        for argument, value in (("win_length", win_length), ("hop_length", hop_length)):
            if value is not None:
                check_int(call, argument, value, 1)
        check_type(call, name, kind, WindowType, "a member of WindowType")
        self.n_fft, self.length = n_fft, win_length or n_fft
        self.hop = hop_length or self.length // 2
        if self.length > n_fft:
            raise ValueError(message(f"{call}(n_fft={n_fft}, win_length={win_length})", "a win_length that is not above n_fft"))
        self.values = window(kind, self.length, n_fft)

    def check_length(self, call: str, value: np.ndarray, center: bool = True) -> None:
        """Raises RuntimeError if a signal is shorter than a frame, or too short for mirror padding."""
        least = 2 if center else self.n_fft
        if value.shape[-1] < least:
            raise RuntimeError(message(f"{call}(n_fft={self.n_fft}) of {value.shape[-1]} samples", f"at least {least}"))


def _padded(value: np.ndarray, pad: int) -> np.ndarray:
    return np.pad(value, [(0, 0)] * (value.ndim - 1) + [(pad, pad)]) if pad else value


class Spectrogram(AudioTensorOperation):
    """Computes the spectrum (..., freq, frame) of a signal (..., time), to the power `power`; complex pairs (..., 2) for power 0."""

    _takes_lists = True

    def __init__(
        self, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None, pad: int = 0,
        window: WindowType = WindowType.HANN, power: float = 2.0, normalized: bool = False, center: bool = True,
        pad_mode: BorderType = BorderType.REFLECT, onesided: bool = True,
    ) -> None:
        call = type(self).__name__
        self._frames = Frames(call, n_fft, win_length, hop_length, window)
        check_int(call, "pad", pad, 0)
        check_from_0(call, "power", power)
        for name, value in (("normalized", normalized), ("center", center), ("onesided", onesided)):
            check_bool(call, name, value)
        check_type(call, "pad_mode", pad_mode, BorderType, "a member of BorderType")
        self.pad, self.power, self.normalized, self.center = pad, power, normalized, center
        self.pad_mode, self.onesided = pad_mode, onesided

    def _apply(self, value: np.ndarray) -> np.ndarray:
        frames = self._frames
        padded = _padded(value, self.pad)
        frames.check_length(type(self).__name__, padded, self.center)
        spectrum = stft(padded, frames.n_fft, frames.hop, frames.values, self.center, self.pad_mode, self.onesided)
        if self.normalized:
            spectrum = spectrum / value.dtype.type(math.sqrt((frames.values**2).sum()))
        if self.power == 0:
            return as_pairs(spectrum)
        magnitudes = np.ascontiguousarray(np.abs(spectrum))
        if self.power in (1, 2):
            return magnitudes if self.power == 1 else magnitudes**2
        return magnitudes ** value.dtype.type(self.power)


class InverseSpectrogram(AudioTensorOperation):
    """Computes the signal (..., time) of a complex spectrum (..., freq, frame, 2), cut or padded to `length`."""

    _shape = "<..., freq, time, complex=2>"

    def __init__(
        self, length: int | None = None, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None, pad: int = 0,
        window: WindowType = WindowType.HANN, normalized: bool = False, center: bool = True, pad_mode: BorderType = BorderType.REFLECT,
        onesided: bool = True,
    ) -> None:
        call = "InverseSpectrogram"
        if length is not None:
            check_int(call, "length", length, 0)
        self._frames = Frames(call, n_fft, win_length, hop_length, window)
        check_int(call, "pad", pad, 0)
        for name, value in (("normalized", normalized), ("center", center), ("onesided", onesided)):
            check_bool(call, name, value)
        # The kind of padding before the signal does not matter for the inverse: the padding is cut off.
        check_type(call, "pad_mode", pad_mode, BorderType, "a member of BorderType")
        self.length, self.pad, self.normalized, self.center, self.onesided = length or None, pad, normalized, center, onesided

    def _apply(self, value: np.ndarray) -> np.ndarray:
        frames = self._frames
        bins = frames.n_fft // 2 + 1 if self.onesided else frames.n_fft
        if value.shape[-3] != bins:
            raise RuntimeError(message(f"InverseSpectrogram(n_fft={frames.n_fft}) of {value.shape[-3]} frequencies", f"{bins}"))
        spectrum = as_complex(value)
        if self.normalized:
            spectrum = spectrum * value.dtype.type(math.sqrt((frames.values**2).sum()))
        length = None if self.length is None else self.length + 2 * self.pad
        signal = istft(spectrum, frames.n_fft, frames.hop, frames.values, length, self.center, self.onesided)
        return np.ascontiguousarray(signal[..., self.pad : signal.shape[-1] - self.pad]).astype(value.dtype, copy=False)


class GriffinLim(AudioTensorOperation):
    """Reconstructs a signal (..., time) from the magnitudes (..., freq, frame) of its spectrum, to the power `power`, and estimated phases.

    Griffin and Lim 1984, with the momentum of Perraudin, Balazs and Sondergaard 2013; the initial phases are random, or 0.
    """

    _shape = "<..., freq, time>"

    def __init__(
        self, n_fft: int = 400, n_iter: int = 32, win_length: int | None = None, hop_length: int | None = None,
        window_type: WindowType = WindowType.HANN, power: float = 2.0, momentum: float = 0.99, length: int | None = None,
        rand_init: bool = True,
    ) -> None:
        self._frames = Frames("GriffinLim", n_fft, win_length or None, hop_length or None, window_type, "window_type")
        check_int("GriffinLim", "n_iter", n_iter, 1)
        check_above("GriffinLim", "power", power)
        check_from_0("GriffinLim", "momentum", momentum)
        if length is not None:
            check_int("GriffinLim", "length", length, 0)
        check_bool("GriffinLim", "rand_init", rand_init)
        self.n_iter, self.power, self.momentum, self.length, self.rand_init = n_iter, power, momentum, length or None, rand_init

    def _apply(self, value: np.ndarray) -> np.ndarray:
        frames = self._frames
        if value.shape[-2] != frames.n_fft // 2 + 1:
            raise RuntimeError(message(f"GriffinLim(n_fft={frames.n_fft}) of {value.shape[-2]} frequencies", f"{frames.n_fft // 2 + 1}"))
        magnitudes = value ** value.dtype.type(1 / self.power)
        if self.rand_init:
            drawn = generator().random((2, *value.shape)).astype(value.dtype)
            phases = drawn[0] + 1j * drawn[1]
        else:
            phases = np.ones(value.shape, np.result_type(value.dtype, np.complex64))
        momentum = value.dtype.type(self.momentum / (1 + 2 * self.momentum))  # MindSpore's scaling of the momentum
        before: Any = value.dtype.type(0)
        for _ in range(self.n_iter):
            sound = istft(magnitudes * phases, frames.n_fft, frames.hop, frames.values, None)
            rebuilt = stft(sound, frames.n_fft, frames.hop, frames.values)
            phases = rebuilt - before * momentum if self.momentum else rebuilt
            phases = phases / (np.abs(phases) + value.dtype.type(1e-16))
            before = rebuilt
        return istft(magnitudes * phases, frames.n_fft, frames.hop, frames.values, self.length).astype(value.dtype, copy=False)


def _check_highest(call: str, f_min: Any, f_max: Any, sample_rate: int) -> float:
    check_from_0(call, "f_min", f_min)
    if f_max is not None:
        check_from_0(call, "f_max", f_max)
    highest = f_max if f_max is not None else float(sample_rate // 2)
    if f_min >= highest:
        raise ValueError(message(f"{call}(f_min={f_min!r}, f_max={f_max!r})", f"an f_min below {highest:g}"))
    return highest


class MelScale(AudioTensorOperation):
    """Converts a spectrogram (..., freq, time) to `n_mels` bands of equal width on the mel scale."""

    _shape = "<..., freq, time>"

    def __init__(
        self, n_mels: int = 128, sample_rate: int = 16000, f_min: float = 0.0, f_max: float | None = None, n_stft: int = 201,
        norm: NormType = NormType.NONE, mel_type: MelType = MelType.HTK,
    ) -> None:
        check_int("MelScale", "n_mels", n_mels, 1)
        check_int("MelScale", "sample_rate", sample_rate, 1)
        check_int("MelScale", "n_stft", n_stft, 1)
        check_type("MelScale", "norm", norm, NormType, "a member of NormType")
        check_type("MelScale", "mel_type", mel_type, MelType, "a member of MelType")
        highest = _check_highest("MelScale", f_min, f_max, sample_rate)
        self._bank = Bank(melscale_fbanks(n_stft, f_min, highest, n_mels, sample_rate, norm, mel_type))

    def _apply(self, value: np.ndarray) -> np.ndarray:
        bins = self._bank.frequencies
        if value.shape[-2] != bins:
            subject = f"MelScale(n_stft={bins}) of {value.shape[-2]} frequencies"
            raise RuntimeError(message(subject, f"{bins}", hint=f"write n_stft={value.shape[-2]}"))
        return self._bank(value)


class MelSpectrogram(AudioTensorOperation):
    """Computes the spectrogram of a signal (..., time) in `n_mels` bands of the mel scale: (..., n_mels, frame)."""

    def __init__(
        self, sample_rate: int = 16000, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None, f_min: float = 0.0,
        f_max: float | None = None, pad: int = 0, n_mels: int = 128, window: WindowType = WindowType.HANN, power: float = 2.0,
        normalized: bool = False, center: bool = True, pad_mode: BorderType = BorderType.REFLECT, onesided: bool = True,
        norm: NormType = NormType.NONE, mel_scale: MelType = MelType.HTK,
    ) -> None:
        check_rate_from_0("MelSpectrogram", sample_rate)
        check_above("MelSpectrogram", "power", power)
        self._spectrogram = Spectrogram(n_fft, win_length, hop_length, pad, window, power, normalized, center, pad_mode, onesided)
        bins = n_fft // 2 + 1 if onesided else n_fft
        check_int("MelSpectrogram", "n_mels", n_mels, 1)
        check_type("MelSpectrogram", "norm", norm, NormType, "a member of NormType")
        check_type("MelSpectrogram", "mel_scale", mel_scale, MelType, "a member of MelType")
        _check_highest("MelSpectrogram", f_min, f_max, sample_rate)
        self._scale = MelScale(n_mels, sample_rate, f_min, f_max, bins, norm, mel_scale)

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return self._scale._apply(self._spectrogram._apply(value))


class InverseMelScale(AudioTensorOperation):
    """Computes a spectrogram (..., n_stft, time) from its mel bands (..., n_mels, time), by gradient descent from random values.

    `sgdargs` has 'sgd_lr' and 'sgd_momentum'. The search ends after `max_iter` steps, or when the loss is below `tolerance_loss` or
    changes by less than `tolerance_change`.
    """

    _shape = "<..., freq, time>"

    def __init__(
        self, n_stft: int, n_mels: int = 128, sample_rate: int = 16000, f_min: float = 0.0, f_max: float | None = None,
        max_iter: int = 100000, tolerance_loss: float = 1e-5, tolerance_change: float = 1e-8, sgdargs: Any = None,
        norm: NormType = NormType.NONE, mel_type: MelType = MelType.HTK,
    ) -> None:
        call = "InverseMelScale"
        check_int(call, "n_stft", n_stft, 1)
        check_int(call, "n_mels", n_mels, 1)
        check_int(call, "sample_rate", sample_rate, 1)
        check_int(call, "max_iter", max_iter, 0)
        check_from_0(call, "tolerance_loss", tolerance_loss)
        check_from_0(call, "tolerance_change", tolerance_change)
        check_type(call, "norm", norm, NormType, "a member of NormType")
        check_type(call, "mel_type", mel_type, MelType, "a member of MelType")
        highest = _check_highest(call, f_min, f_max, sample_rate)
        settings = _settings(call, "sgdargs", sgdargs, ("sgd_lr", "sgd_momentum"))
        self._rate, self._momentum = settings.get("sgd_lr", 0.1), settings.get("sgd_momentum", 0.9)
        check_from_0(call, "sgd_lr", self._rate)
        check_from_0(call, "sgd_momentum", self._momentum)
        self._limits = max_iter, tolerance_loss, tolerance_change
        self._bank = melscale_fbanks(n_stft, f_min, highest, n_mels, sample_rate, norm, mel_type)

    def _apply(self, value: np.ndarray) -> np.ndarray:
        bins, mels = self._bank.shape
        if value.shape[-2] != mels:
            raise RuntimeError(message(f"InverseMelScale(n_mels={mels}) of {value.shape[-2]} bands", f"{mels}"))
        bank = self._bank.astype(value.dtype)
        target = np.swapaxes(value.reshape(-1, *value.shape[-2:]), -1, -2)
        estimate = generator().random((*target.shape[:2], bins)).astype(value.dtype)
        speed = np.zeros_like(estimate)
        max_iterations, small, still = self._limits
        before = math.inf
        for _ in range(max_iterations):
            difference = target - estimate @ bank
            loss = float((difference**2).sum(-1).mean())
            gradient = difference @ bank.T * value.dtype.type(-2 / (target.shape[0] * target.shape[1]))
            speed = speed * value.dtype.type(self._momentum) + gradient
            estimate = np.maximum(estimate - value.dtype.type(self._rate) * speed, 0)
            if loss < small or abs(before - loss) < still:
                break
            before = loss
        return np.ascontiguousarray(np.swapaxes(estimate, -1, -2)).reshape(*value.shape[:-2], bins, value.shape[-1])


def _settings(call: str, argument: str, settings: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a dict of settings, empty for None. Raises TypeError if the value is not a dict, ValueError for an unknown name."""
    if settings is None:
        return {}
    check_type(call, argument, settings, dict, "a dict")
    for name in settings:
        if name not in names:
            raise ValueError(message(f"{call}({argument}={short(settings)})", f"the names {list_choices(names)}"))
    return dict(settings)


_SPECTROGRAM = ("n_fft", "win_length", "hop_length", "pad", "window", "power", "normalized", "center", "pad_mode", "onesided")
_MEL = (*_SPECTROGRAM, "f_min", "f_max", "n_mels", "norm", "mel_scale")


class _Cepstrum(AudioTensorOperation):
    """Base: bands (..., band, frame), as decibels or logarithms, and their cosine transform (..., coefficient, frame)."""

    def __init__(self, count: int, bands: int, dct_type: Any, norm: Any, is_log: Any, name: str) -> None:
        call = type(self).__name__
        if dct_type != 2 or isinstance(dct_type, bool):
            text = message(f"{call}(dct_type={short(dct_type)})", "2")
            raise ValueError(with_sentence(text, f"Input dct_type must be 2, but got : {dct_type}."))
        check_type(call, "norm", norm, NormMode, "a member of NormMode")
        check_bool(call, name, is_log)
        if count > bands:
            raise ValueError(message(f"{call} with {count} coefficients of {bands} bands", "at most as many coefficients as bands"))
        self._is_log, self._transform = is_log, create_dct(count, bands, norm).T.copy()

    def _apply(self, value: np.ndarray) -> np.ndarray:
        bands = self._bands(value)
        levels = np.log(bands + value.dtype.type(1e-6)) if self._is_log else decibels(bands, 10.0, 1.0, 1e-10, 80.0)
        return self._transform.astype(value.dtype, copy=False) @ levels

    def _bands(self, value: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class MFCC(_Cepstrum):
    """Computes `n_mfcc` cepstral coefficients of the mel spectrogram of a signal (..., time); `melkwargs` sets up `MelSpectrogram`."""

    def __init__(
        self, sample_rate: int = 16000, n_mfcc: int = 40, dct_type: int = 2, norm: NormMode = NormMode.ORTHO, log_mels: bool = False,
        melkwargs: Any = None,
    ) -> None:
        check_rate_from_0("MFCC", sample_rate)
        check_int("MFCC", "n_mfcc", n_mfcc, 1)
        settings = _settings("MFCC", "melkwargs", melkwargs, _MEL)
        self._mel = MelSpectrogram(sample_rate, **settings)
        super().__init__(n_mfcc, settings.get("n_mels", 128), dct_type, norm, log_mels, "log_mels")

    def _bands(self, value: np.ndarray) -> np.ndarray:
        return self._mel._apply(value)


class LFCC(_Cepstrum):
    """Computes `n_lfcc` cepstral coefficients of `n_filter` bands of equal width; `speckwargs` are settings of `Spectrogram`."""

    def __init__(
        self, sample_rate: int = 16000, n_filter: int = 128, n_lfcc: int = 40, f_min: float = 0.0, f_max: float | None = None,
        dct_type: int = 2, norm: NormMode = NormMode.ORTHO, log_lf: bool = False, speckwargs: Any = None,
    ) -> None:
        check_rate_from_0("LFCC", sample_rate)
        check_int("LFCC", "n_filter", n_filter, 1)
        check_int("LFCC", "n_lfcc", n_lfcc, 1)
        settings = _settings("LFCC", "speckwargs", speckwargs, _SPECTROGRAM)
        self._spectrogram = Spectrogram(**settings)
        highest = _check_highest("LFCC", f_min, f_max, sample_rate)
        n_fft = settings.get("n_fft", 400)
        bins = n_fft // 2 + 1 if settings.get("onesided", True) else n_fft
        self._bank = Bank(linear_fbanks(bins, f_min, highest, n_filter, sample_rate))
        super().__init__(n_lfcc, n_filter, dct_type, norm, log_lf, "log_lf")

    def _bands(self, value: np.ndarray) -> np.ndarray:
        return self._bank(self._spectrogram._apply(value))


class SpectralCentroid(AudioTensorOperation):
    """Computes the mean frequency of each frame of a signal (..., time), weighted by magnitude: (..., 1, frame)."""

    _takes_lists = True

    def __init__(
        self, sample_rate: int, n_fft: int = 400, win_length: int | None = None, hop_length: int | None = None, pad: int = 0,
        window: WindowType = WindowType.HANN,
    ) -> None:
        check_rate_from_0("SpectralCentroid", sample_rate)
        self._spectrogram = Spectrogram(n_fft, win_length, hop_length, pad, window, 1.0)
        self._frequencies = np.linspace(0, sample_rate // 2, n_fft // 2 + 1)[:, None]

    def _apply(self, value: np.ndarray) -> np.ndarray:
        magnitudes = self._spectrogram._apply(value)
        weighted = (self._frequencies.astype(value.dtype) * magnitudes).sum(-2, keepdims=True)
        return weighted / magnitudes.sum(-2, keepdims=True)


def stretched(spectrum: np.ndarray, rate: float, advance: np.ndarray) -> np.ndarray:
    """Return a complex spectrum (..., freq, frame) `rate` times as fast; `advance` (freq, 1) is the phase advance per frame."""
    if rate == 1:
        return spectrum
    steps = np.arange(0, spectrum.shape[-1], rate)
    shares = (steps % 1).astype(spectrum.real.dtype)
    padded = np.pad(spectrum, [(0, 0)] * (spectrum.ndim - 1) + [(0, 2)])
    now, following = padded[..., steps.astype(int)], padded[..., (steps + 1).astype(int)]
    turn = np.angle(following) - np.angle(now) - advance
    turn = turn - 2 * math.pi * np.round(turn / (2 * math.pi)) + advance
    phases = np.cumsum(np.concatenate([np.angle(spectrum[..., :1]), turn[..., :-1]], -1), -1)
    magnitudes = shares * np.abs(following) + (1 - shares) * np.abs(now)
    return magnitudes * np.exp(1j * phases)


class PhaseVocoder(AudioTensorOperation):
    """Speeds up a complex spectrum (..., freq, frame, 2) by `rate` at the same pitch; `phase_advance` (freq, 1) is per frame."""

    _shape = "<..., freq, time, complex=2>"

    def __init__(self, rate: float, phase_advance: Any) -> None:
        check_above("PhaseVocoder", "rate", rate)
        check_type("PhaseVocoder", "phase_advance", phase_advance, np.ndarray, "a NumPy array")
        if phase_advance.ndim != 2 or phase_advance.shape[1] != 1:
            raise TypeError(message(f"PhaseVocoder(phase_advance of shape {list(phase_advance.shape)})", "shape (freq, 1)"))
        self.rate, self.phase_advance = rate, phase_advance

    def _apply(self, value: np.ndarray) -> np.ndarray:
        if value.shape[-3] != len(self.phase_advance):
            subject = f"PhaseVocoder with {len(self.phase_advance)} phases of {value.shape[-3]} frequencies"
            raise RuntimeError(message(subject, "one phase for each frequency"))
        return as_pairs(stretched(as_complex(value), self.rate, self.phase_advance)).astype(value.dtype, copy=False)


class TimeStretch(AudioTensorOperation):
    """Speeds up a complex spectrum (..., freq, frame, 2) by `fixed_rate` at the same pitch; None leaves it unchanged."""

    _shape = "<..., freq, time, complex=2>"

    def __init__(self, hop_length: int | None = None, n_freq: int = 201, fixed_rate: float | None = None) -> None:
        check_int("TimeStretch", "n_freq", n_freq, 1)
        if hop_length is not None:
            check_int("TimeStretch", "hop_length", hop_length, 1)
        if fixed_rate is not None:
            check_above("TimeStretch", "fixed_rate", fixed_rate)
        self.rate = 1.0 if fixed_rate is None else fixed_rate
        self._advance = np.linspace(0, math.pi * (hop_length or n_freq - 1), n_freq)[:, None]

    def _apply(self, value: np.ndarray) -> np.ndarray:
        if value.shape[-3] != len(self._advance):
            raise RuntimeError(message(f"TimeStretch(n_freq={len(self._advance)}) of {value.shape[-3]} frequencies", "as many"))
        return as_pairs(stretched(as_complex(value), self.rate, self._advance)).astype(value.dtype, copy=False)


class PitchShift(AudioTensorOperation):
    """Raises the pitch of a signal (..., time) by `n_steps` of `bins_per_octave`, without changing its length."""

    def __init__(
        self, sample_rate: int, n_steps: int, bins_per_octave: int = 12, n_fft: int = 512, win_length: int | None = None,
        hop_length: int | None = None, window: WindowType = WindowType.HANN,
    ) -> None:
        check_rate_from_0("PitchShift", sample_rate)
        check_type("PitchShift", "n_steps", n_steps, int, "an int")
        check_type("PitchShift", "bins_per_octave", bins_per_octave, int, "an int")
        if bins_per_octave == 0:
            raise ValueError(message("PitchShift(bins_per_octave=0)", "an int that is not 0"))
        check_any("PitchShift", "n_steps", n_steps)
        length = win_length or n_fft
        self._frames = Frames("PitchShift", n_fft, win_length, hop_length or max(length // 4, 1), window)
        self.sample_rate, self._rate = sample_rate, 2.0 ** (-n_steps / bins_per_octave)

    def _apply(self, value: np.ndarray) -> np.ndarray:
        frames = self._frames
        frames.check_length("PitchShift", value)
        spectrum = stft(value, frames.n_fft, frames.hop, frames.values)
        advance = np.linspace(0, math.pi * frames.hop, spectrum.shape[-2])[:, None]
        length = value.shape[-1]
        slow = istft(stretched(spectrum, self._rate, advance), frames.n_fft, frames.hop, frames.values, round(length / self._rate))
        moved = resampled(slow.astype(value.dtype), int(self.sample_rate / self._rate), self.sample_rate)[..., :length]
        return np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, length - moved.shape[-1])])
