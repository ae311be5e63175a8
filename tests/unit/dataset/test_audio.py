"""Audio: what draws at random, where 2.10 errs, the ways back and forth, speed of recursive effects, and messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import mindspore.dataset as ds
import mindspore.dataset.audio as audio
import numpy as np
import pytest
from mindspore.dataset.audio.transforms import AudioTensorOperation
from support.error_messages import without_mindspores_sentence

from torchspore.mindspore.dataset.audio import resampling

RANDOM = np.random.RandomState(0)
TIME = np.arange(16000) / 16000
TONE = (0.6 * np.sin(2 * np.pi * 440 * TIME)).astype(np.float32)
NOISE = (RANDOM.randn(2, 4000) * 0.2).astype(np.float32)
FEATURES = RANDOM.rand(4, 9, 31).astype(np.float32)


def test_speech_is_detected_at_its_start() -> None:
    """2.10 measures 0 whatever it hears, and keeps the last second."""
    voice = sum(np.sin(2 * np.pi * 150 * part * TIME) / part for part in range(1, 20)) * (1 + 0.3 * np.sin(2 * np.pi * 3 * TIME)) * 0.3
    quiet = 0.001 * RANDOM.randn(32000)
    sound = np.concatenate([quiet, voice, quiet[:8000], voice]).astype(np.float32)
    samples_cut = {name: len(sound) - len(audio.Vad(16000, **words)(sound)) for name, words in {
        "all": {}, "before": {"pre_trigger_time": 0.1}, "never": {"trigger_level": 50.0}, "at once": {"trigger_level": -1.0},
    }.items()}
    assert 29000 < samples_cut["all"] < 32000 and samples_cut["all"] - samples_cut["before"] == 1600
    assert samples_cut["never"] == len(sound) - 17600
    both = audio.Vad(16000)(np.stack([sound, sound * 0.5]))
    assert both.shape == (2, len(sound) - samples_cut["all"])


def test_where_2_10_errs_the_documents_hold() -> None:
    loud = np.linspace(-1, 1, 21).astype(np.float32)
    assert np.allclose(audio.DCShift(-0.3, 0.1)(loud), -audio.DCShift(0.3, 0.1)(-loud))
    assert np.allclose(audio.DCShift(-0.3)(loud), np.clip(loud - 0.3, -1, 1))
    pairs = RANDOM.randn(1, 201, 5, 2).astype(np.float32)
    before = pairs.copy()
    audio.InverseSpectrogram(normalized=True)(pairs)
    assert np.array_equal(pairs, before)
    powers = RANDOM.rand(201, 8).astype(np.float32)
    waves = audio.GriffinLim(n_iter=2, rand_init=False)(powers)
    assert np.array_equal(audio.GriffinLim(n_iter=2, rand_init=False, length=500)(powers), waves[:500])


def test_there_and_back() -> None:
    for options in ({}, {"normalized": True}, {"center": True, "onesided": False}, {"window": audio.WindowType.HAMMING}):
        spectrum = audio.Spectrogram(256, 256, 64, power=0.0, **options)(NOISE)
        back = audio.InverseSpectrogram(4000, 256, 256, 64, **options)(spectrum)
        assert back.shape == NOISE.shape and np.abs(back - NOISE).max() < 1e-5
    assert np.abs(audio.MuLawDecoding()(audio.MuLawEncoding()(NOISE)) - NOISE).max() < 0.02
    magnitudes = audio.Spectrogram(256, power=2.0)(TONE)
    sound = audio.GriffinLim(256, 30)(magnitudes)
    powers = audio.Spectrogram(256, power=2.0)(sound)
    assert np.abs(np.sqrt(powers) - np.sqrt(magnitudes)[:, : powers.shape[1]]).mean() < 0.2 * np.sqrt(magnitudes).mean()
    mel = audio.MelScale(20, 4000, n_stft=33)(RANDOM.rand(2, 33, 6).astype(np.float32))
    ds.config.set_seed(1)
    result = audio.InverseMelScale(33, 20, 4000, max_iter=2000, sgdargs={"sgd_lr": 0.05, "sgd_momentum": 0.9})(mel)
    assert result.shape == (2, 33, 6) and (result >= 0).all()
    assert np.abs(audio.MelScale(20, 4000, n_stft=33)(result) - mel).max() < 0.2


def test_pitch() -> None:
    voice = np.sin(2 * np.pi * 200 * TIME).astype(np.float32)
    assert np.abs(audio.DetectPitchFrequency(16000)(voice)[20:60] - 200).max() < 3
    higher = audio.PitchShift(16000, 12)(TONE)
    assert higher.shape == TONE.shape and np.abs(np.fft.rfft(higher)).argmax() == pytest.approx(880, abs=3)
    assert audio.Resample(16000, 8000)(TONE).shape == (8000,)
    assert audio.SpectralCentroid(16000)(TONE)[0, 5:-5].mean() == pytest.approx(440, rel=0.05)


def test_random_masks() -> None:
    ds.config.set_seed(3)
    time, frequency = audio.TimeMasking(True, 20, 0, 7.0), audio.FrequencyMasking(True, 8, 0, 7.0)
    for step, axis in ((time, 2), (frequency, 1), (audio.MaskAlongAxisIID(8, 7.0, 1), 1)):
        result = np.concatenate([step(FEATURES) for _ in range(40)])
        filled = (result == 7.0).all(2 if axis == 1 else 1)
        assert ((result == 7.0).any(2 if axis == 1 else 1) == filled).all()
        lengths = filled.sum(1)
        assert lengths.max() < (20 if axis == 2 else 8) and len(set(lengths.tolist())) > 4
        assert (np.abs(np.diff(filled.astype(int), axis=1)).sum(1) <= 2).all()


def test_dithers() -> None:
    for kind in audio.DensityFunction:
        result = audio.Dither(kind, True)(NOISE)
        assert 0 < np.abs(result - NOISE).max() < 3e-4
    values = audio.Dither()(NOISE) * 2**15
    assert np.abs(values - np.round(values)).max() < 1e-3


def test_a_pipeline_of_sound() -> None:
    rows = ds.NumpySlicesDataset(NOISE[None].repeat(4, 0), ["sound"], shuffle=False)
    steps = [audio.Vol(0.5), audio.LowpassBiquad(16000, 3000), audio.MelSpectrogram(16000, 256, n_mels=20), audio.AmplitudeToDB()]
    batch = next(rows.map(steps, "sound").batch(4).create_tuple_iterator(output_numpy=True, num_epochs=1))[0]
    assert batch.shape == (4, 2, 20, 32) and batch.dtype == np.float32 and isinstance(steps[0], AudioTensorOperation)
    assert audio.LFCC(16000, speckwargs={"n_fft": 256})(NOISE).shape == (2, 40, 32)
    with pytest.raises(ValueError, match="expected the names 'n_fft'"):
        audio.LFCC(16000, speckwargs={"n_ftt": 256})


def test_recursive_effects_take_no_loop_over_samples() -> None:
    import time

    start = time.perf_counter()
    long = np.tile(TONE, 20)[None]
    audio.Phaser(16000)(long)
    audio.Flanger(16000, regen=50.0)(long)
    audio.Overdrive()(long)
    assert time.perf_counter() - start < 5  # a loop over 320,000 samples takes longer for one of them


MESSAGES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "integers": (
        lambda: audio.LowpassBiquad(4000, 900.0)(np.arange(9)), RuntimeError,
        "LowpassBiquad of int64: expected float16, float32 or float64.",
    ),
    "axes": (
        lambda: audio.AmplitudeToDB()(TONE), RuntimeError, "AmplitudeToDB of shape [16000]: expected shape <..., freq, time>.",
    ),
    "bands": (
        lambda: audio.MelScale(5, 4000)(FEATURES), RuntimeError,
        "MelScale(n_stft=201) of 9 frequencies: expected 201.\n\nhint: write n_stft=9.",
    ),
    "lowest": (
        lambda: audio.MelScale(5, 4000, 3000.0), ValueError, "MelScale(f_min=3000.0, f_max=None): expected an f_min below 2000.",
    ),
    "window": (
        lambda: audio.Spectrogram(40, 50), ValueError,
        "Spectrogram(n_fft=40, win_length=50): expected a win_length that is not above n_fft.",
    ),
    "rate": (lambda: audio.Phaser(0), ValueError, "Phaser(sample_rate=0): expected samples a second, not 0."),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str) -> None:
    call, kind, expected = MESSAGES[name]
    with pytest.raises(kind) as caught:
        call()
    assert without_mindspores_sentence(str(caught.value)).endswith(expected)


@pytest.mark.parametrize(("old", "new"), [(441, 160), (997, 1001), (3, 2)])
@pytest.mark.parametrize("method", list(audio.ResampleMethod))
def test_filters_one_by_one_are_those_of_the_table(old: int, new: int, method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    signal = np.random.default_rng(0).standard_normal((2, 1500))
    resample = audio.Resample(old, new, method)
    monkeypatch.setattr(resampling, "_LARGEST", 1 << 30)
    expected = resample(signal)
    monkeypatch.setattr(resampling, "_LARGEST", 1000)
    np.testing.assert_allclose(resample(signal), expected, atol=1e-12)


def test_rates_with_nothing_in_common_need_no_table_of_all_phases() -> None:
    """It took 20 s and 1.6 GB."""
    begun = time.process_time()
    assert audio.PitchShift(16000, 4)(np.ones(3000, np.float32)).shape == (3000,)
    assert time.process_time() - begun < 2


def test_speech_is_not_looked_for_in_less_than_is_measured() -> None:
    signal = np.arange(5, dtype=np.float32)
    assert audio.Vad(16000)(signal).tolist() == signal.tolist()
