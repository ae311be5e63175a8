"""MindSpore's module of this name: every audio transform."""

# ruff: noqa: F401
from __future__ import annotations

from torchspore.mindspore.dataset.audio.analysis import (
    ComputeDeltas,
    DetectPitchFrequency,
    SlidingWindowCmn,
    Vad,
)
from torchspore.mindspore.dataset.audio.effects import (
    Flanger,
    Phaser,
)
from torchspore.mindspore.dataset.audio.filters import (
    AllpassBiquad,
    BandBiquad,
    BandpassBiquad,
    BandrejectBiquad,
    BassBiquad,
    Biquad,
    DeemphBiquad,
    EqualizerBiquad,
    Filtfilt,
    HighpassBiquad,
    LFilter,
    LowpassBiquad,
    RiaaBiquad,
    TrebleBiquad,
)
from torchspore.mindspore.dataset.audio.levels import (
    AmplitudeToDB,
    Angle,
    ComplexNorm,
    Contrast,
    DBToAmplitude,
    DCShift,
    Dither,
    Fade,
    Gain,
    Magphase,
    MuLawDecoding,
    MuLawEncoding,
    Overdrive,
    Vol,
)
from torchspore.mindspore.dataset.audio.masks import (
    FrequencyMasking,
    MaskAlongAxis,
    MaskAlongAxisIID,
    TimeMasking,
)
from torchspore.mindspore.dataset.audio.operation import AudioTensorOperation
from torchspore.mindspore.dataset.audio.resampling import (
    Resample,
)
from torchspore.mindspore.dataset.audio.spectra import (
    LFCC,
    MFCC,
    GriffinLim,
    InverseMelScale,
    InverseSpectrogram,
    MelScale,
    MelSpectrogram,
    PhaseVocoder,
    PitchShift,
    SpectralCentroid,
    Spectrogram,
    TimeStretch,
)
from torchspore.mindspore.dataset.core.operation import TensorOperation
