"""Enumerations for the arguments of audio transforms."""
from __future__ import annotations

from enum import Enum


class BorderType(str, Enum):
    """Padding of a signal at both ends: a constant, its edge value, or its mirror image without or with the edge."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class DensityFunction(str, Enum):
    """Density function of the noise of `Dither`: triangular, rectangular or Gaussian."""

    TPDF = "TPDF"
    RPDF = "RPDF"
    GPDF = "GPDF"


class FadeShape(str, Enum):
    """Shape of `Fade` between silence and full volume."""

    QUARTER_SINE = "quarter_sine"
    HALF_SINE = "half_sine"
    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"
    EXPONENTIAL = "exponential"


class GainType(str, Enum):
    """Unit of the gain of `Vol`."""

    AMPLITUDE = "amplitude"
    POWER = "power"
    DB = "db"


class Interpolation(str, Enum):
    """Interpolation between samples in `Flanger`."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"


class MelType(str, Enum):
    """Formula of the mel scale."""

    HTK = "htk"
    SLANEY = "slaney"


class Modulation(str, Enum):
    """Waveform that modulates the delay of `Flanger`."""

    SINUSOIDAL = "sinusoidal"
    TRIANGULAR = "triangular"


class NormMode(str, Enum):
    """Normalization of a cosine transform: none or orthonormal."""

    ORTHO = "ortho"
    NONE = "none"


class NormType(str, Enum):
    """Normalization of a filter bank: none, or division of each band by its width."""

    SLANEY = "slaney"
    NONE = "none"


class ResampleMethod(str, Enum):
    """Window of the sinc filter of `Resample`: Hann or Kaiser."""

    SINC_INTERPOLATION = "sinc_interpolation"
    KAISER_WINDOW = "kaiser_window"


class ScaleType(str, Enum):
    """Content of a spectrogram: powers or magnitudes."""

    POWER = "power"
    MAGNITUDE = "magnitude"


class WindowType(str, Enum):
    """Window of a Fourier transform."""

    BARTLETT = "bartlett"
    BLACKMAN = "blackman"
    HAMMING = "hamming"
    HANN = "hann"
    KAISER = "kaiser"
