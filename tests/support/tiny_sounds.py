"""Makes tiny data sets of sounds in their published layouts; each function fills an empty folder."""
from __future__ import annotations

import struct

import numpy as np

from support.tiny_sources import put


def samples(number, count=6, channels=1):
    """16-bit samples (count, channels) that differ for each number."""
    return ((np.arange(count * channels) * 1237 + number * 7919) % 65536 - 32768).astype("<i2").reshape(count, channels)


def wav(number, rate=16000, channels=1, bits=16, count=6, kind=1):
    """A RIFF file of sound: PCM of 8, 16, 24 or 32 bits, or 32-bit floats (kind 3)."""
    waves = samples(number, count, channels).astype(np.float64) / 32768
    if kind == 3:
        data = waves.astype("<f4").tobytes()
    elif bits == 8:
        data = (waves * 128 + 128).astype("u1").tobytes()
    elif bits == 24:
        data = b"".join(int(sample * 2**23).to_bytes(3, "little", signed=True) for sample in waves.reshape(-1))
    else:
        data = (waves * 2 ** (bits - 1)).astype(f"<i{bits // 8}").tobytes()
    size = channels * bits // 8
    about = struct.pack("<HHIIHH", kind, channels, rate, rate * size, size, bits)
    body = b"WAVEfmt " + struct.pack("<I", len(about)) + about + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def sphere(number, rate=16000, count=32000):
    """A NIST SPHERE file of 16-bit samples."""
    head = f"NIST_1A\n   1024\nchannel_count -i 1\nsample_rate -i {rate}\nsample_count -i {count}\nsample_n_bytes -i 2\n"
    head += "sample_byte_format -s2 01\nsample_sig_bits -i 16\nsample_coding -s3 pcm\nend_head\n"
    return head.ljust(1024).encode() + samples(number, count).tobytes()


def cmu_arctic(folder):
    for number, name in enumerate(("aew", "slt")):
        folder_name = f"cmu_us_{name}_arctic"
        put(folder, {f"{folder_name}/wav/arctic_{n}.wav": wav(k + number * 10) for k, n in enumerate(("a0002", "b0001", "a0001"))})
        texts = {"a0002": "Not at this case, Tom.", "a0001": "Author of the trail, etc.", "b0001": "Gad."}
        put(folder, {f"{folder_name}/etc/txt.done.data": "".join(f'( arctic_{key} "{text}" )\n' for key, text in texts.items())})


def gtzan(folder):
    put(folder, {
        f"{kind}/{kind}.{n:05}.wav": wav(n + len(kind), 22050, count=3) for kind in ("disco", "blues") for n in (1, 4, 5, 29, 60, 63, 98)
    })


def libri_tts(folder):
    for part in ("dev-clean", "train-clean-100"):
        names = [f"84_121123_{n:06}_000000" for n in (3, 1, 2)]
        put(folder, {
            **{f"{part}/84/121123/{name}.wav": wav(n + len(part), 24000) for n, name in enumerate(names)},
            f"{part}/84/121123/84_121123.trans.tsv": "".join(f"{name}\tText {n} é!\tNormal {n}.\n" for n, name in enumerate(names)),
        })


def lj_speech(folder):
    names = [f"LJ001-000{n}" for n in (1, 3, 2)]
    put(folder, {
        "metadata.csv": "".join(f"{name}|text {name}, 1|text {name}, one\n" for name in names),
        **{f"wavs/{name}.wav": wav(n, 22050) for n, name in enumerate(names)},
    })


def speech_commands(folder):
    names = [f"{word}/{who}_nohash_{n}.wav" for word in ("yes", "cat") for who in ("b433eff", "5a33edf") for n in (1, 0)]
    put(folder, {
        **{name: wav(n) for n, name in enumerate(names)},
        "testing_list.txt": f"{names[0]}\n{names[6]}\n", "validation_list.txt": f"{names[3]}\n",
        "_background_noise_/noise.wav": wav(99), "README.md": "x",
    })


def tedlium(folder):
    lines = "{0} 1 {0} 0.25 0.75 <o,f0,male> hello é there\n{0} 1 {0}_b 1.00 1.50 <o,f0,male> ignore_time_segment_in_scoring\n"
    for number, part in enumerate(("train", "test", "dev")):
        for k, name in enumerate(("Bill_2010", "Al_2009")):
            put(folder, {
                f"release1/{part}/sph/{name}.sph": sphere(number * 2 + k), f"release1/{part}/stm/{name}.stm": lines.format(name),
            })
    put(folder, {"release3/data/sph/Eve_2012.sph": sphere(9), "release3/data/stm/Eve_2012.stm": lines.format("Eve_2012")})


def yes_no(folder):
    put(folder, {f"{name}.wav": wav(n, 8000) for n, name in enumerate(("1_1_0_0_1_1_0_0", "0_0_1_1_0_1_1_1", "1_0_0_0_1_1_0_0"))})
