"""What audio transforms are told by name."""
from __future__ import annotations

from enum import Enum


class BorderType(str, Enum):
    """What stands before and after a signal: a constant, its edge, its mirror image without the edge, or with it."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class DensityFunction(str, Enum):
    """Of the noise of `Dither`: triangular, rectangular or Gaussian."""

    TPDF = "TPDF"
    RPDF = "RPDF"
    GPDF = "GPDF"


class FadeShape(str, Enum):
    """How `Fade` goes from silence to full loudness."""

    QUARTER_SINE = "quarter_sine"
    HALF_SINE = "half_sine"
    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"
    EXPONENTIAL = "exponential"


class GainType(str, Enum):
    """How the gain of `Vol` is meant."""

    AMPLITUDE = "amplitude"
    POWER = "power"
    DB = "db"


class Interpolation(str, Enum):
    """How `Flanger` finds values between samples."""

    LINEAR = "linear"
    QUADRATIC = "quadratic"


class MelType(str, Enum):
    """Which formula the mel scale has."""

    HTK = "htk"
    SLANEY = "slaney"


class Modulation(str, Enum):
    """The wave by which `Flanger` changes its delay."""

    SINUSOIDAL = "sinusoidal"
    TRIANGULAR = "triangular"


class NormMode(str, Enum):
    """Whether a cosine transform is orthonormal."""

    ORTHO = "ortho"
    NONE = "none"


class NormType(str, Enum):
    """Whether the bands of a filter bank are divided by their widths."""

    SLANEY = "slaney"
    NONE = "none"


class ResampleMethod(str, Enum):
    """The window of the sinc filter of `Resample`: Hann's or Kaiser's."""

    SINC_INTERPOLATION = "sinc_interpolation"
    KAISER_WINDOW = "kaiser_window"


class ScaleType(str, Enum):
    """Whether a spectrogram holds powers or magnitudes."""

    POWER = "power"
    MAGNITUDE = "magnitude"


class WindowType(str, Enum):
    """The window of a Fourier transform."""

    BARTLETT = "bartlett"
    BLACKMAN = "blackman"
    HAMMING = "hamming"
    HANN = "hann"
    KAISER = "kaiser"
