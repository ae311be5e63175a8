"""Enumerations for the arguments of audio transforms, and filter banks."""

from __future__ import annotations

from torchspore.mindspore.dataset.audio.banks import create_dct, linear_fbanks, melscale_fbanks
from torchspore.mindspore.dataset.audio.choices import (
    BorderType,
    DensityFunction,
    FadeShape,
    GainType,
    Interpolation,
    MelType,
    Modulation,
    NormMode,
    NormType,
    ResampleMethod,
    ScaleType,
    WindowType,
)

__all__ = [
    "BorderType", "DensityFunction", "FadeShape", "GainType", "Interpolation", "MelType", "Modulation", "NormMode", "NormType",
    "ResampleMethod", "ScaleType", "WindowType", "create_dct", "linear_fbanks", "melscale_fbanks",
]
