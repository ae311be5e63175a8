"""Effects with time-varying delays: `Phaser` and `Flanger`, after SoX's effects of these names.

Both feed their output back into the delay. If each sample depends on one earlier sample, the chain is summed by doubling: k steps sum
2**k links. If it depends on two or three, the sparse triangular system is solved.
"""
from __future__ import annotations

import math

import numpy as np

from torchspore.base.text import message
from torchspore.mindspore.dataset.audio.choices import Interpolation, Modulation
from torchspore.mindspore.dataset.audio.operation import AudioTensorOperation, check_rate
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_number, check_type


def wave(kind: Modulation, size: int, low: float, high: float, phase: float) -> np.ndarray:
    """Return one period, of `size` samples, of a wave between `low` and `high`."""
    phases = (np.arange(size) + int(phase / math.pi / 2 * size + 0.5)) % size
    if kind is Modulation.SINUSOIDAL:
        values = (np.sin(phases / size * math.pi * 2) + 1) / 2
    else:
        values, quarter = phases * 2 / size, 4 * phases // size
        values = np.where(quarter == 0, values + 0.5, np.where(quarter == 3, values - 1.5, 1.5 - values))
    return values * (high - low) + low


class Phaser(AudioTensorOperation):
    """Adds the delayed signal: at most `delay_ms`, modulated `mod_speed` times a second; the feedback decays by `decay`."""

    def __init__(
        self, sample_rate: int, gain_in: float = 0.4, gain_out: float = 0.74, delay_ms: float = 3.0, decay: float = 0.4,
        mod_speed: float = 0.5, sinusoidal: bool = True,
    ) -> None:
        check_rate("Phaser", sample_rate)
        for name, value, low, high in (
            ("gain_in", gain_in, 0, 1), ("gain_out", gain_out, 0, 1e9), ("delay_ms", delay_ms, 0, 5), ("decay", decay, 0, 0.99),
            ("mod_speed", mod_speed, 0.1, 2),
        ):
            check_number("Phaser", name, value, low, high)
        check_bool("Phaser", "sinusoidal", sinusoidal)
        self.sample_rate, self.gain_in, self.gain_out, self.delay_ms = sample_rate, gain_in, gain_out, delay_ms
        self.decay, self.mod_speed, self.sinusoidal = decay, mod_speed, sinusoidal

    def _apply(self, value: np.ndarray) -> np.ndarray:
        count = value.shape[-1]
        longest = int(self.delay_ms * 0.001 * self.sample_rate + 0.5)
        if longest < 1:
            subject = f"Phaser(sample_rate={self.sample_rate}, delay_ms={self.delay_ms})"
            raise RuntimeError(message(subject, "a delay of at least one sample"))
        kind = Modulation.SINUSOIDAL if self.sinusoidal else Modulation.TRIANGULAR
        period = int(self.sample_rate / self.mod_speed + 0.5)
        steps = (wave(kind, period, 1.0, float(longest), math.pi / 2) + 0.5).astype(np.int64)
        delays = 1 + (-steps[np.arange(count) % period]) % longest
        total = value.astype(np.float64) * self.gain_in
        source = np.arange(count) - delays
        weight = np.where(source >= 0, self.decay, 0.0)
        source = np.maximum(source, 0)
        while weight.any():
            total = total + weight * total[..., source]
            weight, source = weight * weight[source], source[source]
        return np.clip(total * self.gain_out, -1, 1).astype(value.dtype)


class Flanger(AudioTensorOperation):
    """Mixes a signal (..., channel, time) with a copy delayed by `delay` to `delay + depth` ms, modulated by a wave of `speed` Hz.

    The effect feeds back `regen` percent of the delayed signal and mixes in `width` percent. Channels are `phase` percent of a wave apart.
    """

    _shape = "<..., channel, time>"

    def __init__(
        self, sample_rate: int, delay: float = 0.0, depth: float = 2.0, regen: float = 0.0, width: float = 71.0, speed: float = 0.5,
        phase: float = 25.0, modulation: Modulation = Modulation.SINUSOIDAL, interpolation: Interpolation = Interpolation.LINEAR,
    ) -> None:
        check_rate("Flanger", sample_rate)
        for name, value, low, high in (
            ("delay", delay, 0, 30), ("depth", depth, 0, 10), ("regen", regen, -95, 95), ("width", width, 0, 100),
            ("speed", speed, 0.1, 10), ("phase", phase, 0, 100),
        ):
            check_number("Flanger", name, value, low, high)
        check_type("Flanger", "modulation", modulation, Modulation, "a member of Modulation")
        check_type("Flanger", "interpolation", interpolation, Interpolation, "a member of Interpolation")
        self.sample_rate, self.delay, self.depth, self.speed = sample_rate, delay / 1000, depth / 1000, speed
        self.feedback, self.width, self.phase = regen / 100, width / 100, phase / 100
        self.modulation, self.interpolation = modulation, interpolation

    def _apply(self, value: np.ndarray) -> np.ndarray:
        channels, count = value.shape[-2:]
        if channels > 4:
            raise RuntimeError(message(f"Flanger of {channels} channels", "at most 4"))
        size = int((self.delay + self.depth) * self.sample_rate + 0.5) + 2
        period = int(self.sample_rate / self.speed)
        low = float(math.floor(self.delay * self.sample_rate + 0.5))
        table = wave(self.modulation, period, low, size - 2.0, 3 * math.pi / 2).astype(np.float32)
        total = np.empty(value.shape, np.float64)
        for channel in range(channels):
            late = table[(np.arange(count) + int(channel * period * self.phase + 0.5)) % period]
            total[..., channel, :] = self._delayed(value[..., channel, :].astype(np.float64), late, size)
        share = self.width / (1 + self.width)
        heard = value * (1 / (1 + self.width)) + total * (share * (1 - abs(self.feedback)))
        return np.clip(heard, -1, 1).astype(value.dtype)

    def _delayed(self, sound: np.ndarray, late: np.ndarray, size: int) -> np.ndarray:
        """Return the output of the delay line of one channel (..., time)."""
        from scipy import sparse
        from scipy.sparse import linalg

        count = sound.shape[-1]
        delay = np.floor(late).astype(np.int64)
        part = (late - delay).astype(np.float64)
        if self.interpolation is Interpolation.LINEAR:
            shares = [1 - part, part]
        else:
            shares = [1 + part * (part - 3) / 2, part * (2 - part), part * (part - 1) / 2]
        positions = np.arange(count)
        rows, columns, weights = [], [], []
        for step, share in enumerate(shares):
            source = positions - (delay + step) % size
            is_inside = source >= 0
            rows.append(positions[is_inside])
            columns.append(source[is_inside])
            weights.append(share[is_inside])
        picked = sparse.csr_array((np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))), (count, count))
        flat = sound.reshape(-1, count).T
        if self.feedback:
            # The delay line contains x[n] + feedback * out[n - 1], and out is the value that `picked` selects from it.
            before = sparse.eye_array(count, k=-1, format="csr")
            system = (sparse.eye_array(count) - self.feedback * (before @ picked)).tocsc()
            flat = linalg.splu(system, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).solve(flat)
        return (picked @ flat).T.reshape(sound.shape)
