"""Audio transforms: the numbers of all that draw nothing at random, and what they refuse."""

from __future__ import annotations

import mindspore.dataset as ds
import mindspore.dataset.audio as audio
import numpy as np
from parity.case import case, raised

RANDOM = np.random.RandomState(0)
SOUND = (RANDOM.randn(2, 1500) * 0.2).astype(np.float32)
TIME = np.arange(4000) / 4000
TONE = (0.6 * np.sin(2 * np.pi * 220 * TIME) + 0.2 * np.sin(2 * np.pi * 660 * TIME) + 0.01 * RANDOM.randn(2, 4000)).astype(np.float32)
LOUD = (SOUND * 4).astype(np.float32)
FEATURES = RANDOM.rand(2, 9, 31).astype(np.float32)
PAIRS = RANDOM.randn(2, 201, 12, 2).astype(np.float32)
POWERS = RANDOM.rand(1, 201, 12).astype(np.float32)
QUIET = (0.001 * RANDOM.randn(20000)).astype(np.float32)
W = audio.WindowType

FILTERS = {
    "allpass": lambda: audio.AllpassBiquad(4000, 800.0, 0.5)(SOUND),
    "allpass loud": lambda: audio.AllpassBiquad(4000, 800)(LOUD),
    "band": lambda: audio.BandBiquad(4000, 800.0)(SOUND),
    "band noise": lambda: audio.BandBiquad(4000, 800.0, 0.4, True)(SOUND),
    "bandpass": lambda: audio.BandpassBiquad(4000, 800.0)(SOUND),
    "bandpass skirt": lambda: audio.BandpassBiquad(4000, 800.0, 0.9, True)(SOUND),
    "bandreject": lambda: audio.BandrejectBiquad(4000, 800.0)(SOUND),
    "bass": lambda: audio.BassBiquad(4000, 6.0)(SOUND),
    "bass lower": lambda: audio.BassBiquad(4000, -9.0, 300.0, 0.4)(SOUND),
    "biquad": lambda: audio.Biquad(0.01, 0.02, 0.13, 1.0, 0.12, 0.3)(SOUND),
    "biquad scaled": lambda: audio.Biquad(0.5, -0.2, 0.13, 2, 0.12, 0.3)(SOUND),
    "deemph": lambda: audio.DeemphBiquad(44100)(SOUND),
    "deemph 48": lambda: audio.DeemphBiquad(48000)(SOUND),
    "equalizer": lambda: audio.EqualizerBiquad(4000, 700.0, 5.5)(SOUND),
    "equalizer down": lambda: audio.EqualizerBiquad(4000, 700.0, -5.5, 0.3)(SOUND),
    "highpass": lambda: audio.HighpassBiquad(4000, 900.0)(SOUND),
    "lowpass": lambda: audio.LowpassBiquad(4000, 900.0, 0.9)(SOUND),
    "lowpass float64": lambda: audio.LowpassBiquad(4000, 900.0)(SOUND.astype(np.float64)),
    "lowpass one axis": lambda: audio.LowpassBiquad(4000, 900.0)(SOUND[0]),
    "treble": lambda: audio.TrebleBiquad(4000, 6.0, 900)(SOUND),
    "treble lower": lambda: audio.TrebleBiquad(16000, -6.0)(SOUND),
    "lfilter": lambda: audio.LFilter([1.0, 0.1, 0.3], [0.5, 0.4, 0.2])(SOUND),
    "lfilter loud": lambda: audio.LFilter([1.0, 0.1], [0.9, 0.8])(LOUD),
    "lfilter free": lambda: audio.LFilter([1.0, 0.1], [0.9, 0.8], False)(LOUD),
    "filtfilt": lambda: audio.Filtfilt([1.0, 0.1, 0.3], [0.5, 0.4, 0.2])(SOUND),
    "filtfilt free": lambda: audio.Filtfilt([1.0, 0.1], [0.9, 0.8], False)(LOUD),
}
LEVELS = {
    "decibels": lambda: audio.AmplitudeToDB()(FEATURES),
    "decibels of magnitudes": lambda: audio.AmplitudeToDB(audio.ScaleType.MAGNITUDE, 0.5, 1e-5, 20.0)(FEATURES),
    "decibels of integers": lambda: audio.AmplitudeToDB()((FEATURES * 90).astype(np.int32)),
    "decibels of two axes": lambda: audio.AmplitudeToDB(top_db=15.0)(FEATURES[0]),
    "amplitude": lambda: audio.DBToAmplitude(0.5, 1.5)(SOUND),
    "angle": lambda: audio.Angle()(PAIRS.copy()),
    "norm": lambda: audio.ComplexNorm()(PAIRS.copy()),
    "norm squared": lambda: audio.ComplexNorm(2.0)(PAIRS.copy()),
    "magphase": lambda: audio.Magphase()(PAIRS.copy()),
    "magphase power": lambda: audio.Magphase(2.5)(PAIRS.copy()),
    "contrast": lambda: audio.Contrast()(SOUND),
    "contrast little": lambda: audio.Contrast(10.0)(SOUND),
    "shift": lambda: audio.DCShift(0.3)(LOUD),
    "shift limited": lambda: audio.DCShift(0.3, 0.05)(LOUD),
    **{f"fade {shape.name}": lambda shape=shape: audio.Fade(40, 70, shape)(SOUND) for shape in audio.FadeShape},
    "fade none": lambda: audio.Fade()(SOUND),
    "gain": lambda: audio.Gain(-3.0)(SOUND),
    "gain of integers": lambda: audio.Gain()(np.arange(9)),
    "encoding": lambda: audio.MuLawEncoding()(SOUND),
    "encoding few": lambda: audio.MuLawEncoding(16)(SOUND.astype(np.float64)),
    "decoding": lambda: audio.MuLawDecoding()(np.arange(256)),
    "decoding few": lambda: audio.MuLawDecoding(16)(np.arange(16.0)),
    "overdrive": lambda: audio.Overdrive()(SOUND),
    "overdrive little": lambda: audio.Overdrive(3.0, 60.0)(SOUND),
    "vol": lambda: audio.Vol(1.7)(LOUD),
    "vol power": lambda: audio.Vol(1.7, audio.GainType.POWER)(LOUD),
    "vol db": lambda: audio.Vol(-1.7, audio.GainType.DB)(LOUD),
    "dither": lambda: audio.Dither()(SOUND),
    "dither shaped": lambda: audio.Dither(noise_shaping=True)(SOUND),
    "deltas": lambda: audio.ComputeDeltas()(FEATURES),
    "deltas wide": lambda: audio.ComputeDeltas(8, audio.BorderType.REFLECT)(FEATURES),
    "deltas constant": lambda: audio.ComputeDeltas(3, audio.BorderType.CONSTANT)(FEATURES),
    "cmn": lambda: audio.SlidingWindowCmn(8, 5)(FEATURES.transpose(0, 2, 1).copy()),
    "cmn center": lambda: audio.SlidingWindowCmn(8, 5, True)(FEATURES.transpose(0, 2, 1).copy()),
    "cmn variance": lambda: audio.SlidingWindowCmn(8, 5, True, True)(FEATURES.transpose(0, 2, 1).copy()),
    "cmn default": lambda: audio.SlidingWindowCmn()(FEATURES.transpose(0, 2, 1).copy()),
    "mask frequencies": lambda: audio.FrequencyMasking(False, 3, 2, 0.5)(FEATURES),
    "mask time": lambda: audio.TimeMasking(False, 5, 4)(FEATURES),
    "mask nothing": lambda: audio.TimeMasking()(FEATURES),
    "mask along": lambda: audio.MaskAlongAxis(2, 3, 0.7, 1)(FEATURES),
    "mask along time": lambda: audio.MaskAlongAxis(2, 3, -0.7, 2)(FEATURES),
    "mask random none": lambda: audio.MaskAlongAxisIID(0, 0.7, 1)(FEATURES),
}
SPECTRA = {
    "spectrogram": lambda: audio.Spectrogram()(SOUND),
    **{f"spectrogram {kind.name}": lambda kind=kind: audio.Spectrogram(64, 50, 20, 3, kind)(SOUND) for kind in W},
    "spectrogram magnitudes": lambda: audio.Spectrogram(64, power=1.0)(SOUND),
    "spectrogram power": lambda: audio.Spectrogram(64, power=1.5)(SOUND),
    "spectrogram complex": lambda: audio.Spectrogram(64, power=0.0)(SOUND),
    "spectrogram normalized": lambda: audio.Spectrogram(64, normalized=True)(SOUND),
    "spectrogram left": lambda: audio.Spectrogram(64, center=False)(SOUND),
    "spectrogram both sides": lambda: audio.Spectrogram(64, onesided=False)(SOUND),
    **{f"spectrogram {mode.name}": lambda mode=mode: audio.Spectrogram(63, pad_mode=mode)(SOUND) for mode in audio.BorderType},
    "spectrogram short": lambda: audio.Spectrogram(40)(SOUND[:, :10]),
    "spectrogram float64": lambda: audio.Spectrogram(64)(SOUND.astype(np.float64)),
    "inverse": lambda: audio.InverseSpectrogram()(PAIRS.copy()),
    "inverse length": lambda: audio.InverseSpectrogram(900, 400, 300, 100)(PAIRS.copy()),
    "inverse normalized": lambda: audio.InverseSpectrogram(normalized=True)(PAIRS.copy()),
    "inverse pad": lambda: audio.InverseSpectrogram(900, pad=7)(PAIRS.copy()),
    "mel": lambda: audio.MelScale(20, 4000)(POWERS),
    "mel slaney": lambda: audio.MelScale(20, 8000, 50.0, 3000.0, 201, audio.NormType.SLANEY, audio.MelType.SLANEY)(POWERS),
    "mel spectrogram": lambda: audio.MelSpectrogram(4000, 128, n_mels=16)(SOUND),
    "mel spectrogram settings": lambda: audio.MelSpectrogram(
        8000, 128, 100, 40, 60.0, 3500.0, 5, 16, W.HAMMING, 1.0, True, True, audio.BorderType.EDGE, True,
        audio.NormType.SLANEY, audio.MelType.SLANEY,
    )(SOUND),
    "mfcc": lambda: audio.MFCC(4000, 12, melkwargs=MEL)(SOUND),
    "mfcc log": lambda: audio.MFCC(4000, 12, norm=audio.NormMode.NONE, log_mels=True, melkwargs=MEL)(SOUND),
    "lfcc": lambda: audio.LFCC(4000, 16, 10, speckwargs=SPECTRUM)(SOUND),
    "lfcc log": lambda: audio.LFCC(4000, 16, 10, 50.0, 1500.0, 2, audio.NormMode.NONE, True, SPECTRUM)(SOUND),
    "centroid": lambda: audio.SpectralCentroid(4000)(SOUND),
    "centroid settings": lambda: audio.SpectralCentroid(8000, 64, 50, 20, 3, W.BLACKMAN)(SOUND),
    "stretch default": lambda: audio.TimeStretch()(PAIRS.copy()),
    "dct": lambda: audio.create_dct(7, 12),
    "dct orthonormal": lambda: audio.create_dct(12, 12, audio.NormMode.ORTHO),
    "bank": lambda: audio.melscale_fbanks(65, 20.0, 1900.0, 12, 4000),
    "bank slaney": lambda: audio.melscale_fbanks(65, 20.0, 3900.0, 12, 8000, audio.NormType.SLANEY, audio.MelType.SLANEY),
    "bank linear": lambda: audio.linear_fbanks(65, 20.0, 1900.0, 12, 4000),
}
MEL = {
    "n_fft": 128, "win_length": 100, "hop_length": 50, "f_min": 20.0, "f_max": 1900.0, "pad": 0, "n_mels": 20, "window": W.HANN,
    "power": 2.0, "normalized": False, "center": True, "pad_mode": audio.BorderType.REFLECT, "onesided": True, "norm": audio.NormType.NONE,
    "mel_scale": audio.MelType.HTK,
}
SPECTRUM = {
    "n_fft": 128, "win_length": 100, "hop_length": 50, "pad": 0, "window": W.HANN, "power": 2.0, "normalized": False, "center": True,
    "pad_mode": audio.BorderType.REFLECT, "onesided": True,
}
EFFECTS = {
    "phaser": lambda: audio.Phaser(4000)(TONE),
    "phaser triangle": lambda: audio.Phaser(8000, 0.6, 0.9, 4.0, 0.8, 1.5, False)(TONE),
    "flanger": lambda: audio.Flanger(4000)(TONE),
    "flanger feedback": lambda: audio.Flanger(4000, 1.0, 3.0, 60.0, 80.0, 2.0, 50.0)(TONE),
    "flanger triangle": lambda: audio.Flanger(
        8000, 0.5, 2.0, -40.0, 50.0, 3.0, 25.0, audio.Modulation.TRIANGULAR, audio.Interpolation.QUADRATIC
    )(TONE),
    "resample": lambda: audio.Resample(4000, 6000)(TONE),
    "resample down": lambda: audio.Resample(4000, 1000, lowpass_filter_width=10, rolloff=0.9)(TONE),
    "resample kaiser": lambda: audio.Resample(4000, 3000, audio.ResampleMethod.KAISER_WINDOW)(TONE),
    "resample beta": lambda: audio.Resample(4000, 3000, audio.ResampleMethod.KAISER_WINDOW, beta=8.0)(TONE),
    "resample same": lambda: audio.Resample(4000, 4000)(TONE),
    "resample float64": lambda: audio.Resample(4000, 7000)(TONE.astype(np.float64)),
    "pitch": lambda: audio.DetectPitchFrequency(4000)(TONE),
    "pitch settings": lambda: audio.DetectPitchFrequency(4000, 0.02, 9, 100, 1000)(TONE),
    "griffin": lambda: audio.GriffinLim(400, 4, rand_init=False)(POWERS),
    "griffin settings": lambda: audio.GriffinLim(400, 3, 300, 100, W.HAMMING, 1.0, 0.3, None, False)(POWERS),
    "vad quiet": lambda: audio.Vad(16000)(QUIET),
    "vad of two, with time before": lambda: audio.Vad(16000, pre_trigger_time=0.1, search_time=0.4)(np.stack([QUIET] * 2)),
}


def answer(result):
    return {str(index): np.asarray(array) for index, array in enumerate(result if isinstance(result, tuple) else (result,))}


@case(over=list(FILTERS), rtol=1e-5, atol=2e-6)
def filtered(name):
    return answer(FILTERS[name]())


@case(over=[44100, 48000, 88200, 96000], rtol=1e-4, atol=5e-5)
def riaa(rate):
    """2.10 filters in single precision, and these poles are near 1."""
    return answer(audio.RiaaBiquad(rate)(SOUND))


@case(rtol=2e-3, atol=2e-3)
def filtered_float16():
    return answer(audio.BandpassBiquad(4000, 900.0)(SOUND.astype(np.float16)))


@case(over=list(LEVELS), rtol=2e-5, atol=2e-6)
def level(name):
    return answer(LEVELS[name]())


@case(over=list(SPECTRA), rtol=1e-4, atol=2e-5)
def spectrum(name):
    return answer(SPECTRA[name]())


@case(over=list(EFFECTS), rtol=1e-4, atol=2e-5)
def effect(name):
    return answer(EFFECTS[name]())


SLOWER = {
    "vocoder": lambda: audio.PhaseVocoder(1.3, np.linspace(0, np.pi * 100, 201, dtype=np.float32)[:, None])(PAIRS.copy()),
    "vocoder slow": lambda: audio.PhaseVocoder(0.7, np.linspace(0, np.pi * 100, 201, dtype=np.float32)[:, None])(PAIRS.copy()),
    "stretch": lambda: audio.TimeStretch(100, 201, 1.3)(PAIRS.copy()),
    "stretch hop": lambda: audio.TimeStretch(None, 201, 0.8)(PAIRS.copy()),
}


@case(over=list(SLOWER), rtol=1e-3, atol=5e-3)
def slower(name):
    """2.10 adds phases of hundreds of radians up in single precision."""
    return answer(SLOWER[name]())


@case(over=["up", "down"], rtol=1e-3, atol=5e-4)
def pitch_shift(name):
    """2.10 adds phases up in single precision."""
    step = audio.PitchShift(4000, 4) if name == "up" else audio.PitchShift(4000, -5, 24, 256, 200, 64, W.HAMMING)
    return answer(step(TONE))


REFUSED = {
    "integers": lambda: audio.LowpassBiquad(4000, 900.0)(np.arange(9)),
    "text": lambda: audio.Gain()(np.array(["a"])),
    "no axis": lambda: audio.LowpassBiquad(4000, 900.0)(np.array(1.0)),
    "two columns": lambda: audio.Gain()(SOUND, SOUND),
    "rate 0": lambda: audio.LowpassBiquad(0, 900.0),
    "rate float": lambda: audio.LowpassBiquad(4000.5, 900.0),
    "frequency text": lambda: audio.LowpassBiquad(4000, "a"),
    "quality 0": lambda: audio.HighpassBiquad(4000, 900.0, 0),
    "quality 2": lambda: audio.AllpassBiquad(4000, 900.0, 2.0),
    "noise": lambda: audio.BandBiquad(4000, 900.0, 0.7, 3),
    "skirt": lambda: audio.BandpassBiquad(4000, 900.0, 0.7, 3),
    "gain text": lambda: audio.BassBiquad(4000, "a"),
    "a0": lambda: audio.Biquad(1, 1, 1, 0, 1, 1),
    "coefficient": lambda: audio.Biquad(1, 1, "a", 1, 1, 1),
    "deemph rate": lambda: audio.DeemphBiquad(4000),
    "riaa rate": lambda: audio.RiaaBiquad(4000),
    "uneven": lambda: audio.LFilter([1.0], [1.0, 2.0]),
    "coefficients text": lambda: audio.LFilter(["a"], [1.0]),
    "clamp": lambda: audio.Filtfilt([1.0], [1.0], 3),
    "stype": lambda: audio.AmplitudeToDB("power"),
    "reference": lambda: audio.AmplitudeToDB(ref_value=0.0),
    "least": lambda: audio.AmplitudeToDB(amin=0.0),
    "top": lambda: audio.AmplitudeToDB(top_db=0.0),
    "one axis": lambda: audio.AmplitudeToDB()(SOUND[0]),
    "no pairs": lambda: audio.Angle()(SOUND),
    "norm": lambda: audio.ComplexNorm(-1.0),
    "magphase": lambda: audio.Magphase("a"),
    "contrast": lambda: audio.Contrast(101.0),
    "shift": lambda: audio.DCShift(3.0),
    "fade below 0": lambda: audio.Fade(-1),
    "fade shape": lambda: audio.Fade(1, 1, "linear"),
    "fade long": lambda: audio.Fade(3000)(SOUND),
    "gain": lambda: audio.Gain("a"),
    "steps": lambda: audio.MuLawEncoding(0),
    "overdrive": lambda: audio.Overdrive(101.0),
    "vol": lambda: audio.Vol(-1.0),
    "vol power": lambda: audio.Vol(0.0, audio.GainType.POWER),
    "vol type": lambda: audio.Vol(1.0, "db"),
    "dither": lambda: audio.Dither("TPDF"),
    "dither shaping": lambda: audio.Dither(noise_shaping=3),
    "deltas": lambda: audio.ComputeDeltas(2),
    "deltas mode": lambda: audio.ComputeDeltas(3, "edge"),
    "cmn": lambda: audio.SlidingWindowCmn(-1),
    "cmn center": lambda: audio.SlidingWindowCmn(1, 1, 3),
    "mask": lambda: audio.FrequencyMasking(False, -1),
    "mask start": lambda: audio.TimeMasking(False, 1, -1),
    "mask value": lambda: audio.TimeMasking(False, 1, 1, -1.0),
    "mask large": lambda: audio.FrequencyMasking(False, 50)(FEATURES),
    "mask random large": lambda: audio.TimeMasking(True, 50)(FEATURES),
    "mask axis": lambda: audio.MaskAlongAxis(1, 1, 0.5, 3),
    "mask width": lambda: audio.MaskAlongAxis(1, 0, 0.5, 1),
    "mask outside": lambda: audio.MaskAlongAxis(8, 5, 0.5, 1)(FEATURES),
    "mask param": lambda: audio.MaskAlongAxisIID(-1, 0.5, 1),
    "n_fft": lambda: audio.Spectrogram(0),
    "window longer": lambda: audio.Spectrogram(40, 50),
    "hop": lambda: audio.Spectrogram(40, 40, 0),
    "pad": lambda: audio.Spectrogram(40, pad=-1),
    "window": lambda: audio.Spectrogram(40, window="hann"),
    "power": lambda: audio.Spectrogram(40, power=-1.0),
    "center": lambda: audio.Spectrogram(40, center=3),
    "short sound": lambda: audio.Spectrogram(4000, center=False)(SOUND),
    "inverse length": lambda: audio.InverseSpectrogram(-1),
    "inverse pairs": lambda: audio.InverseSpectrogram()(SOUND),
    "mels": lambda: audio.MelScale(0),
    "lowest": lambda: audio.MelScale(5, 4000, 3000.0),
    "highest": lambda: audio.MelScale(5, 4000, 10.0, -3.0),
    "bands": lambda: audio.MelScale(5, 4000)(FEATURES),
    "mel rate": lambda: audio.MelSpectrogram(-1),
    "dct type": lambda: audio.MFCC(dct_type=3),
    "many coefficients": lambda: audio.MFCC(n_mfcc=50, melkwargs=MEL),
    "mfcc norm": lambda: audio.MFCC(norm="ortho"),
    "mfcc settings": lambda: audio.MFCC(melkwargs=3),
    "lfcc settings": lambda: audio.LFCC(speckwargs=3),
    "lfcc filters": lambda: audio.LFCC(n_filter="a"),
    "centroid": lambda: audio.SpectralCentroid(4000, 40, 50),
    "vocoder rate": lambda: audio.PhaseVocoder(0.0, np.zeros((201, 1), np.float32)),
    "vocoder phases": lambda: audio.PhaseVocoder(1.0, [1]),
    "vocoder sizes": lambda: audio.PhaseVocoder(1.3, np.zeros((7, 1), np.float32))(PAIRS.copy()),
    "stretch": lambda: audio.TimeStretch(0),
    "stretch rate": lambda: audio.TimeStretch(fixed_rate=0.0),
    "shift octave": lambda: audio.PitchShift(4000, 3, 0),
    "shift steps": lambda: audio.PitchShift(4000, 1.5),
    "griffin": lambda: audio.GriffinLim(0),
    "griffin steps": lambda: audio.GriffinLim(40, 0),
    "griffin window": lambda: audio.GriffinLim(40, 2, 50),
    "griffin momentum": lambda: audio.GriffinLim(momentum=-1.0),
    "inverse mel": lambda: audio.InverseMelScale(0),
    "inverse mel steps": lambda: audio.InverseMelScale(20, max_iter=-1),
    "inverse mel settings": lambda: audio.InverseMelScale(20, sgdargs=3),
    "phaser gain": lambda: audio.Phaser(4000, 2.0),
    "phaser delay": lambda: audio.Phaser(4000, delay_ms=6.0),
    "phaser speed": lambda: audio.Phaser(4000, mod_speed=3.0),
    "phaser wave": lambda: audio.Phaser(4000, sinusoidal=3),
    "flanger delay": lambda: audio.Flanger(4000, 31.0),
    "flanger feedback": lambda: audio.Flanger(4000, regen=99.0),
    "flanger wave": lambda: audio.Flanger(4000, modulation="sinusoidal"),
    "flanger one axis": lambda: audio.Flanger(4000)(SOUND[0]),
    "resample 0": lambda: audio.Resample(0),
    "resample rolloff": lambda: audio.Resample(rolloff=2.0),
    "resample width": lambda: audio.Resample(lowpass_filter_width=0),
    "resample method": lambda: audio.Resample(resample_method="a"),
    "pitch rate": lambda: audio.DetectPitchFrequency(0),
    "pitch time": lambda: audio.DetectPitchFrequency(4000, 0.0),
    "pitch integers": lambda: audio.DetectPitchFrequency(4000)(np.arange(4000)),
    "vad rate": lambda: audio.Vad(0),
    "vad times": lambda: audio.Vad(16000, noise_up_time=0.001),
    "vad frequency": lambda: audio.Vad(16000, measure_freq=0.0),
    "vad low rate": lambda: audio.Vad(4000, hp_lifter_freq=1900.0)(SOUND),
    "dct 0": lambda: audio.create_dct(0, 5),
    "dct norm": lambda: audio.create_dct(5, 5, "ortho"),
    "bank": lambda: audio.melscale_fbanks(65, 2000.0, 20.0, 12, 4000),
    "bank mels": lambda: audio.melscale_fbanks(65, 20.0, 1900.0, 0, 4000),
    "bank linear": lambda: audio.linear_fbanks(65, 2000.0, 20.0, 12, 4000),
}


@case(over=list(REFUSED))
def refused(name):
    return {"error": raised(REFUSED[name])}


@case()
def choices():
    kinds = (
        audio.BorderType, audio.DensityFunction, audio.FadeShape, audio.GainType, audio.Interpolation, audio.MelType, audio.Modulation,
        audio.NormMode, audio.NormType, audio.ResampleMethod, audio.ScaleType, audio.WindowType,
    )
    return {kind.__name__: {member.name: member.value for member in kind} for kind in kinds}


@case(rtol=1e-5, atol=2e-6)
def in_a_pipeline():
    rows = ds.NumpySlicesDataset(SOUND[None], ["sound"], shuffle=False).map([audio.Gain(2.0), audio.Spectrogram(64)], "sound")
    return {"sound": next(rows.create_tuple_iterator(output_numpy=True, num_epochs=1))[0]}
