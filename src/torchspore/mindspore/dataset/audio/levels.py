"""Sample-wise transforms of the volume: gains, decibels, fades, distortion, quantization; parts of complex numbers."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.dataset.audio.choices import DensityFunction, FadeShape, GainType, ScaleType
from torchspore.mindspore.dataset.audio.operation import AudioTensorOperation, check_above, check_any, check_from_0
from torchspore.mindspore.dataset.core.randomness import generator
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_int, check_number, check_type


def decibels(value: np.ndarray, scale: float, ref_value: float, amin: float, top_db: float | None) -> np.ndarray:
    """Compute `scale * log10(value / ref_value)`, at least `amin` and at most `top_db` below the peak of each (channel, freq, time)."""
    result = scale * np.log10(np.maximum(value, value.dtype.type(amin))) - value.dtype.type(scale * math.log10(max(amin, ref_value)))
    if top_db is None:
        return result
    axes = tuple(range(max(result.ndim - 3, 0), result.ndim))
    return np.maximum(result, result.max(axes, keepdims=True) - value.dtype.type(top_db))


class AmplitudeToDB(AudioTensorOperation):
    """Converts powers or magnitudes (..., freq, time) to decibels."""

    _shape = "<..., freq, time>"

    def __init__(self, stype: ScaleType = ScaleType.POWER, ref_value: float = 1.0, amin: float = 1e-10, top_db: float = 80.0) -> None:
        check_type("AmplitudeToDB", "stype", stype, ScaleType, "a member of ScaleType")
        check_above("AmplitudeToDB", "ref_value", ref_value)
        check_above("AmplitudeToDB", "amin", amin)
        check_above("AmplitudeToDB", "top_db", top_db)
        self.stype, self.ref_value, self.amin, self.top_db = stype, ref_value, amin, top_db

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return decibels(value, 10.0 if self.stype is ScaleType.POWER else 20.0, self.ref_value, self.amin, self.top_db)


class DBToAmplitude(AudioTensorOperation):
    """Computes `ref * (10 ** (0.1 * x)) ** power`."""

    def __init__(self, ref: float, power: float) -> None:
        check_any("DBToAmplitude", "ref", ref)
        check_any("DBToAmplitude", "power", power)
        self.ref, self.power = ref, power

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return value.dtype.type(self.ref) * np.power(10.0, 0.1 * value).astype(value.dtype) ** value.dtype.type(self.power)


class Angle(AudioTensorOperation):
    """Computes the angles of complex numbers (..., 2)."""

    _shape = "<..., complex=2>"

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return np.arctan2(value[..., 1], value[..., 0])


def _magnitude(value: np.ndarray, power: float) -> np.ndarray:
    squares = value[..., 0] ** 2 + value[..., 1] ** 2
    return np.sqrt(squares) if power == 1 else squares ** value.dtype.type(0.5 * power)


class ComplexNorm(AudioTensorOperation):
    """Computes the magnitudes of complex numbers (..., 2), to the power `power`."""

    _shape = "<..., complex=2>"

    def __init__(self, power: float = 1.0) -> None:
        check_from_0("ComplexNorm", "power", power)
        self.power = power

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return _magnitude(value, self.power)


class Magphase(AudioTensorOperation):
    """Computes the magnitudes, to the power `power`, and the angles of complex numbers (..., 2)."""

    _shape = "<..., complex=2>"

    def __init__(self, power: float = 1.0) -> None:
        check_from_0("Magphase", "power", power)
        self.power = power

    def _apply(self, value: np.ndarray) -> Any:
        return _magnitude(value, self.power), np.arctan2(value[..., 1], value[..., 0])


class Contrast(AudioTensorOperation):
    """Increases the perceived volume: `sin(x * pi / 2 + amount / 750 * sin(x * 2 * pi))` (SoX's contrast)."""

    def __init__(self, enhancement_amount: float = 75.0) -> None:
        check_number("Contrast", "enhancement_amount", enhancement_amount, 0, 100)
        self.enhancement_amount = enhancement_amount

    def _apply(self, value: np.ndarray) -> np.ndarray:
        phase = value * value.dtype.type(math.pi / 2)
        return np.sin(phase + value.dtype.type(self.enhancement_amount / 750) * np.sin(phase * 4))


class DCShift(AudioTensorOperation):
    """Adds `shift`; compresses peaks beyond 1 - (abs(shift) - limiter_gain) by `limiter_gain` and clips to [-1, 1] (SoX's dcshift)."""

    def __init__(self, shift: float, limiter_gain: float | None = None) -> None:
        check_number("DCShift", "shift", shift, -2, 2)
        if limiter_gain is not None:
            check_any("DCShift", "limiter_gain", limiter_gain)
        self.shift, self.limiter_gain = shift, limiter_gain

    def _apply(self, value: np.ndarray) -> np.ndarray:
        moved = np.clip(value + value.dtype.type(self.shift), -1, 1)
        if self.shift == 0 or self.limiter_gain is None or self.limiter_gain == abs(self.shift):
            return moved
        limit = 1.0 - (abs(self.shift) - self.limiter_gain)
        sign = 1 if self.shift > 0 else -1
        over = value * sign > limit
        squeezed = (value[over] * sign - limit) * self.limiter_gain / (1 - limit) + limit + abs(self.shift)
        moved[over] = sign * np.minimum(squeezed, limit)
        return moved


class Fade(AudioTensorOperation):
    """Fades in the first `fade_in_len` samples and fades out the last `fade_out_len`, in the shape `fade_shape`."""

    def __init__(self, fade_in_len: int = 0, fade_out_len: int = 0, fade_shape: FadeShape = FadeShape.LINEAR) -> None:
        check_int("Fade", "fade_in_len", fade_in_len, 0)
        check_int("Fade", "fade_out_len", fade_out_len, 0)
        check_type("Fade", "fade_shape", fade_shape, FadeShape, "a member of FadeShape")
        self.fade_in_len, self.fade_out_len, self.fade_shape = fade_in_len, fade_out_len, fade_shape

    def _apply(self, value: np.ndarray) -> np.ndarray:
        length = value.shape[-1]
        for name, length_of_fade in (("fade_in_len", self.fade_in_len), ("fade_out_len", self.fade_out_len)):
            if length_of_fade > length:
                raise RuntimeError(message(f"Fade({name}={length_of_fade}) of {length} samples", f"at most {length}"))
        faded = value.copy()
        faded[..., : self.fade_in_len] *= self._rise(self.fade_in_len).astype(value.dtype)
        faded[..., length - self.fade_out_len :] *= self._fall(self.fade_out_len).astype(value.dtype)
        return faded

    def _rise(self, count: int) -> np.ndarray:
        step = np.linspace(0, 1, count)
        shapes = {
            FadeShape.LINEAR: step, FadeShape.EXPONENTIAL: 2.0 ** (step - 1) * step, FadeShape.LOGARITHMIC: np.log10(0.1 + step) + 1,
            FadeShape.QUARTER_SINE: np.sin(step * math.pi / 2), FadeShape.HALF_SINE: np.sin(step * math.pi - math.pi / 2) / 2 + 0.5,
        }
        return shapes[self.fade_shape]

    def _fall(self, count: int) -> np.ndarray:
        step = np.linspace(0, 1, count)
        shapes = {
            FadeShape.LINEAR: 1 - step, FadeShape.EXPONENTIAL: 2.0**-step * (1 - step), FadeShape.LOGARITHMIC: np.log10(1.1 - step) + 1,
            FadeShape.QUARTER_SINE: np.sin(step * math.pi / 2 + math.pi / 2),
            FadeShape.HALF_SINE: np.sin(step * math.pi + math.pi / 2) / 2 + 0.5,
        }
        return shapes[self.fade_shape]


class Gain(AudioTensorOperation):
    """Raises the volume by `gain_db` decibels."""

    def __init__(self, gain_db: float = 1.0) -> None:
        check_any("Gain", "gain_db", gain_db)
        self.gain_db = gain_db

    def _apply(self, value: np.ndarray) -> np.ndarray:
        return value * value.dtype.type(10 ** (self.gain_db / 20))


class Vol(AudioTensorOperation):
    """Raises the volume by `gain`: a factor of the amplitude or of the power, or decibels; clips to [-1, 1]."""

    def __init__(self, gain: float, gain_type: GainType = GainType.AMPLITUDE) -> None:
        check_type("Vol", "gain_type", gain_type, GainType, "a member of GainType")
        check_any("Vol", "gain", gain)
        if gain_type is GainType.AMPLITUDE:
            check_from_0("Vol", "gain", gain)
        if gain_type is GainType.POWER:
            check_above("Vol", "gain", gain)
        self.gain, self.gain_type = gain, gain_type

    def _apply(self, value: np.ndarray) -> np.ndarray:
        factor = self.gain
        if self.gain_type is not GainType.AMPLITUDE:
            factor = math.sqrt(self.gain) if self.gain_type is GainType.POWER else 10 ** (self.gain / 20)
        return np.clip(value * value.dtype.type(factor), -1, 1)


class MuLawEncoding(AudioTensorOperation):
    """Quantizes a signal in [-1, 1] to `quantization_channels` steps, finer at low volume (ITU-T G.711), int32."""

    def __init__(self, quantization_channels: int = 256) -> None:
        check_int("MuLawEncoding", "quantization_channels", quantization_channels, 1)
        self.quantization_channels = quantization_channels

    def _apply(self, value: np.ndarray) -> np.ndarray:
        max_step = self.quantization_channels - 1.0
        squeezed = np.sign(value) * np.log1p(max_step * np.abs(value)) / math.log1p(max_step)
        return ((squeezed + 1) / 2 * max_step + 0.5).astype(np.int32)


class MuLawDecoding(AudioTensorOperation):
    """Converts `MuLawEncoding`'s steps back to a signal in [-1, 1]."""

    def __init__(self, quantization_channels: int = 256) -> None:
        check_int("MuLawDecoding", "quantization_channels", quantization_channels, 1)
        self.quantization_channels = quantization_channels

    def _apply(self, value: np.ndarray) -> np.ndarray:
        max_step = self.quantization_channels - 1.0
        squeezed = value / max_step * 2 - 1
        return (np.sign(squeezed) * np.expm1(np.abs(squeezed) * math.log1p(max_step)) / max_step).astype(value.dtype)


class Overdrive(AudioTensorOperation):
    """Distorts: amplifies by `gain` dB and saturates at 1; `color` adds even overtones (SoX's overdrive)."""

    def __init__(self, gain: float = 20.0, color: float = 20.0) -> None:
        check_number("Overdrive", "gain", gain, 0, 100)
        check_number("Overdrive", "color", color, 0, 100)
        self.gain, self.color = gain, color

    def _apply(self, value: np.ndarray) -> np.ndarray:
        from scipy import signal

        loud = np.clip(value * 10 ** (self.gain / 20) + self.color / 200, -1, 1).astype(np.float64)
        bent = loud - loud**3 / 3
        # A filter removes the mean: y[n] = x[n] - x[n - 1] + 0.995 y[n - 1].
        level = signal.lfilter([1.0, -1.0], [1.0, -0.995], bent)
        return np.clip(value * 0.5 + level * 0.75, -1, 1).astype(value.dtype)


class Dither(AudioTensorOperation):
    """Rounds to 16 bits after adding a triangle or values of the signal itself; `noise_shaping` carries rounding errors forward.

    The added values are not random, as in SoX's successors and in MindSpore.
    """

    def __init__(self, density_function: DensityFunction = DensityFunction.TPDF, noise_shaping: bool = False) -> None:
        check_type("Dither", "density_function", density_function, DensityFunction, "a member of DensityFunction")
        check_bool("Dither", "noise_shaping", noise_shaping)
        self.density_function, self.noise_shaping = density_function, noise_shaping

    def _apply(self, value: np.ndarray) -> np.ndarray:
        rows = value.reshape(-1, value.shape[-1])
        scaled = rows * np.float32(2**15 - 2)
        if self.density_function is DensityFunction.TPDF:
            count = rows.shape[1]
            scaled = scaled + (1 - np.abs(2 * np.arange(count) / count - 1)).astype(np.float32)
        else:
            drawn = generator()
            draws = 1 if self.density_function is DensityFunction.RPDF else 7
            positions = drawn.integers(0, [[max(rows.shape[0] - 1, 1)], [max(rows.shape[1] - 1, 1)]], (2, draws))
            scaled = scaled + rows[positions[0], positions[1]].sum() - (0.5 if draws == 1 else 0)
        rounded = (np.where(scaled < 0, np.ceil(scaled - 0.5), np.floor(scaled + 0.5)) / 2**15).astype(value.dtype)
        if self.noise_shaping:
            error = rounded - rows
            rounded[:, 1:] += error[:, :-1]
        return rounded.reshape(value.shape)
