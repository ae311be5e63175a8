"""Analysis of audio: differences, sliding means, pitch, and the start of speech."""
from __future__ import annotations

import math

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.dataset.audio.choices import BorderType
from torchspore.mindspore.dataset.audio.operation import AudioTensorOperation, check_above, check_any, check_from_0, check_rate
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_type


class ComputeDeltas(AudioTensorOperation):
    """Computes the slopes over time of features (..., freq, time), each fitted to `win_length` frames."""

    _shape = "<..., freq, time>"

    def __init__(self, win_length: int = 5, pad_mode: BorderType = BorderType.EDGE) -> None:
        check_int("ComputeDeltas", "win_length", win_length, 3)
        check_type("ComputeDeltas", "pad_mode", pad_mode, BorderType, "a member of BorderType")
        self.win_length, self.pad_mode = win_length, pad_mode

    def _apply(self, value: np.ndarray) -> np.ndarray:
        reach = (self.win_length - 1) // 2
        steps = np.arange(-reach, reach + 1)
        padded = np.pad(value, [(0, 0)] * (value.ndim - 1) + [(reach, reach)], mode=self.pad_mode.value)
        frames = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, -1)
        return frames @ (steps / (steps**2).sum()).astype(value.dtype)


class SlidingWindowCmn(AudioTensorOperation):
    """Subtracts the mean of a window of `cmn_window` frames from features (..., time, freq); with `norm_vars` divides by the deviation.

    The window ends at the current frame, or with `center` is centered on it. The first windows have `min_cmn_window` frames (Kaldi's rule).
    """

    _shape = "<..., freq, time>"

    def __init__(self, cmn_window: int = 600, min_cmn_window: int = 100, center: bool = False, norm_vars: bool = False) -> None:
        check_int("SlidingWindowCmn", "cmn_window", cmn_window, 0)
        check_int("SlidingWindowCmn", "min_cmn_window", min_cmn_window, 0)
        check_bool("SlidingWindowCmn", "center", center)
        check_bool("SlidingWindowCmn", "norm_vars", norm_vars)
        self.cmn_window, self.min_cmn_window, self.center, self.norm_vars = cmn_window, min_cmn_window, center, norm_vars

    def _apply(self, value: np.ndarray) -> np.ndarray:
        count = value.shape[-2]
        frame = np.arange(count)
        if self.center:
            start = frame - self.cmn_window // 2
            end = start + self.cmn_window
        else:
            start, end = frame - self.cmn_window, frame + 1
        end = np.where(start < 0, end - start, end)
        start = np.maximum(start, 0)
        if not self.center:
            end = np.where(end > frame, np.maximum(frame + 1, self.min_cmn_window), end)
        start = np.where(end > count, np.maximum(start - (end - count), 0), start)
        end = np.minimum(end, count)
        width = (end - start)[:, None]
        wide = value.astype(np.float64)
        mean = self._sums(wide, start, end) / width
        result = wide - mean
        if self.norm_vars:
            variance = self._sums(wide**2, start, end) / width - mean**2
            with np.errstate(divide="ignore", invalid="ignore"):
                result = np.where(width == 1, 0.0, result / np.sqrt(variance))
        return result.astype(value.dtype)

    @staticmethod
    def _sums(values: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        sums = np.concatenate([np.zeros_like(values[..., :1, :]), np.cumsum(values, -2)], -2)
        return sums[..., end, :] - sums[..., start, :]


class DetectPitchFrequency(AudioTensorOperation):
    """Detects the pitch in Hz of each frame of `frame_time` seconds by normalized correlation, with a median over `win_length` frames."""

    _takes_integers = False

    def __init__(self, sample_rate: int, frame_time: float = 0.01, win_length: int = 30, freq_low: int = 85, freq_high: int = 3400) -> None:
        call = "DetectPitchFrequency"
        check_rate(call, sample_rate)
        check_above(call, "frame_time", frame_time)
        check_int(call, "win_length", win_length, 1)
        check_above(call, "freq_low", freq_low)
        check_above(call, "freq_high", freq_high)
        self.sample_rate, self.frame_time, self.win_length = sample_rate, frame_time, win_length
        self.freq_low, self.freq_high = freq_low, freq_high

    def _apply(self, value: np.ndarray) -> np.ndarray:
        lags = self._lags(value.astype(np.float64))
        before = (self.win_length - 1) // 2
        count = lags.shape[-1] + before - self.win_length + 1
        if count < 1:
            subject = f"DetectPitchFrequency(win_length={self.win_length}) of {lags.shape[-1]} frames"
            raise RuntimeError(message(subject, f"at least {self.win_length - before} frames"))
        padded = np.concatenate([np.repeat(lags[..., :1], before, -1), lags], -1)
        windows = np.sort(np.lib.stride_tricks.sliding_window_view(padded, self.win_length, -1), -1)
        return (self.sample_rate / (1e-9 + windows[..., (self.win_length - 1) // 2])).astype(value.dtype)

    def _lags(self, sound: np.ndarray) -> np.ndarray:
        """Return the lag, in samples, at which each frame correlates best with itself."""
        longest, shortest = math.ceil(self.sample_rate / self.freq_low), math.ceil(self.sample_rate / self.freq_high)
        size = math.ceil(self.sample_rate * self.frame_time)
        count = math.ceil(sound.shape[-1] / size)
        padded = np.pad(sound, [(0, 0)] * (sound.ndim - 1) + [(0, longest + count * size - sound.shape[-1])])
        frames = padded[..., : count * size].reshape(*sound.shape[:-1], count, size)
        norms = (1e-9 + np.sqrt((frames**2).sum(-1))) ** 2
        likeness = np.empty((*frames.shape[:-1], longest))
        for lag in range(1, longest + 1):
            later = padded[..., lag : lag + count * size].reshape(frames.shape)
            likeness[..., lag - 1] = (frames * later).sum(-1) / norms / (1e-9 + np.sqrt((later**2).sum(-1))) ** 2
        half = longest // 2
        best = likeness[..., shortest:].argmax(-1)
        near = likeness[..., shortest:half].argmax(-1) if half > shortest else best
        values = np.take_along_axis(likeness[..., shortest:], np.stack([near, best], -1), -1)
        return np.where(values[..., 0] > 0.99 * values[..., 1], near, best) + shortest + 1


class Vad(AudioTensorOperation):
    """Removes the signal before speech; SoX's voice activity detector, with its settings (https://sox.sourceforge.net, vad).

    The detector measures the power of the cepstrum of the noise-reduced spectrum every 1 / `measure_freq` seconds. Speech begins where
    the mean power reaches `trigger_level`. Earlier sections that reached it within `search_time`, with gaps of at most `allowed_gap`, stay.
    """

    def __init__(
        self, sample_rate: int, trigger_level: float = 7.0, trigger_time: float = 0.25, search_time: float = 1.0,
        allowed_gap: float = 0.25, pre_trigger_time: float = 0.0, boot_time: float = 0.35, noise_up_time: float = 0.1,
        noise_down_time: float = 0.01,
        noise_reduction_amount: float = 1.35, measure_freq: float = 20.0, measure_duration: float | None = None,
        measure_smooth_time: float = 0.4, hp_filter_freq: float = 50.0, lp_filter_freq: float = 6000.0, hp_lifter_freq: float = 150.0,
        lp_lifter_freq: float = 2000.0,
    ) -> None:
        check_int("Vad", "sample_rate", sample_rate, 1)
        check_any("Vad", "trigger_level", trigger_level)
        for name, value in (
            ("trigger_time", trigger_time), ("search_time", search_time), ("allowed_gap", allowed_gap),
            ("pre_trigger_time", pre_trigger_time), ("boot_time", boot_time), ("noise_up_time", noise_up_time),
            ("noise_down_time", noise_down_time),
            ("noise_reduction_amount", noise_reduction_amount), ("measure_smooth_time", measure_smooth_time),
        ):
            check_from_0("Vad", name, value)
        for name, value in (
            ("measure_freq", measure_freq), ("hp_filter_freq", hp_filter_freq), ("lp_filter_freq", lp_filter_freq),
            ("hp_lifter_freq", hp_lifter_freq), ("lp_lifter_freq", lp_lifter_freq),
        ):
            check_above("Vad", name, value)
        if measure_duration is not None:
            check_from_0("Vad", "measure_duration", measure_duration)
        if noise_up_time < noise_down_time:
            call = f"Vad(noise_up_time={noise_up_time}, noise_down_time={noise_down_time})"
            raise ValueError(message(call, "a noise_up_time that is not below noise_down_time"))
        self.level, self.gap, self.reduction = trigger_level, int(allowed_gap * measure_freq + 0.5), noise_reduction_amount
        duration = 2.0 / measure_freq if measure_duration is None else measure_duration
        self.length = int(sample_rate * duration + 0.5)
        self.period = int(sample_rate / measure_freq + 0.5)
        self.searched = math.ceil(search_time * measure_freq)
        self.num_samples_before = int(pre_trigger_time * sample_rate + 0.5) + self.searched * self.period + self.length
        self.transform = 16
        while self.transform < self.length:
            self.transform *= 2
        self.low = max(int(hp_filter_freq / sample_rate * self.transform + 0.5), 1)
        self.high = min(int(lp_filter_freq / sample_rate * self.transform + 0.5), self.transform // 2)
        self.first = math.ceil(sample_rate * 0.5 / lp_lifter_freq)
        self.last = min(math.floor(sample_rate * 0.5 / hp_lifter_freq), self.transform // 4)
        if self.last <= self.first or self.high <= self.low:
            hint = "lower hp_lifter_freq or raise measure_duration"
            raise RuntimeError(message(f"Vad(sample_rate={sample_rate})", "a range with at least one frequency", hint=hint))
        self.up, self.down, self.smooth, self.slow = (
            math.exp(-1.0 / (time * measure_freq)) if time else 0.0
            for time in (noise_up_time, noise_down_time, measure_smooth_time, trigger_time)
        )
        self.boot = int(boot_time * measure_freq - 0.5)

    def _apply(self, value: np.ndarray) -> np.ndarray:
        rows = value.reshape(-1, value.shape[-1])
        if rows.shape[1] < self.length:                   # too short for one measurement, so that the signal stays unchanged
            return value.copy()
        ends = np.arange(self.length - 1, rows.shape[1], self.period)
        padded = np.pad(rows, [(0, 0), (1, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.length, -1)[:, ends - self.length + 1]
        hann = 2.0 / math.sqrt(self.length) * _hann(self.length)
        spectra = np.abs(np.fft.rfft(windows * hann, self.transform))[..., self.low : self.high]
        begin = self._begin(spectra, ends, rows.shape[1])
        return rows[:, begin:].reshape(*value.shape[:-1], -1)

    def _begin(self, spectra: np.ndarray, ends: np.ndarray, count: int) -> int:
        """Return the index of the first sample that stays."""
        channels = len(spectra)
        smoothed, noise = np.zeros_like(spectra[:, 0]), np.zeros_like(spectra[:, 0])
        means, history = np.zeros(channels), np.zeros((channels, max(self.searched, 1)))
        booting = 0
        position, flushed = 0, 0
        for number, end in enumerate(ends.tolist()):
            measured = self._measure(spectra[:, number], smoothed, noise, booting)
            position = number % history.shape[1]
            history[:, position] = measured
            means = means * self.slow + measured * (1 - self.slow)
            triggered = np.flatnonzero(means >= self.level)
            if len(triggered):
                # Channels after the first one that triggers are examined too, even if they did not trigger.
                flushed = max(self._flushed(history[channel], position) for channel in range(triggered[0], channels))
                return _clamped_index(end + 1 - self.num_samples_before + (self.searched - flushed) * self.period, count)
            if booting >= 0:
                booting = -1 if booting == self.boot else booting + 1
        return _clamped_index(count - self.num_samples_before, count)

    def _measure(self, magnitudes: np.ndarray, smoothed: np.ndarray, noise: np.ndarray, booting: int) -> np.ndarray:
        """Return the speech measure of each channel, at least 0. Updates `smoothed` and `noise`."""
        share = booting / (1.0 + booting) if booting >= 0 else self.smooth
        smoothed *= share
        smoothed += magnitudes * (1 - share)
        powers = smoothed**2
        shares = 0.0 if booting >= 0 else np.where(powers > noise, self.up, self.down)
        noise *= shares
        noise += powers * (1 - shares)
        clean = np.sqrt(np.maximum(powers - self.reduction * noise, 0))
        width = self.high - self.low
        lifted = np.zeros((len(clean), self.transform // 2))
        lifted[:, self.low : self.high] = clean * (2.0 / math.sqrt(width) * _hann(width))
        cepstrum = np.abs(np.fft.rfft(lifted))[:, self.first : self.last] ** 2
        power = cepstrum.sum(1) / (self.last - self.first)
        with np.errstate(divide="ignore"):
            return np.maximum(0, 21 + np.log(power))

    def _flushed(self, history: np.ndarray, position: int) -> int:
        """Return the number of measures before the trigger at which speech may have begun."""
        count = self.searched
        last, silent = count, count
        steps = 0
        for steps in range(count):
            measured = history[(position - steps) % count]
            if measured >= self.level and steps <= last + self.gap:
                silent = last = steps
            elif measured == 0 and last >= silent:
                silent = steps
        return min(max(0, min(steps, silent)), count)


def _hann(length: int) -> np.ndarray:
    return 0.5 - 0.5 * np.cos(2 * math.pi * np.arange(length) / length)


def _clamped_index(first: int, count: int) -> int:
    """Return a clamped index, because Python counts a negative one from the end."""
    return max(count + first, 0) if first < 0 else min(first, count)
