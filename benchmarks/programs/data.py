"""Data pipelines in MindSpore: each function returns a dataset and the number of rows of an epoch."""
from __future__ import annotations

import os
from pathlib import Path

import mindspore.dataset as ds
import numpy as np
from mindspore.dataset import text, transforms, vision
from mindspore.mindrecord import FileWriter

BATCH = 32
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
WORDS = [f"word{n}" for n in range(1000)]


def rows(folder: Path, workers: int):
    """Return small arrays after two light transforms."""
    data = np.random.RandomState(0).randint(0, 256, (8192, 28, 28, 1)).astype(np.uint8)
    dataset = ds.NumpySlicesDataset({"image": data, "label": np.arange(len(data))}, shuffle=True, num_parallel_workers=workers)
    steps = [vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]
    return dataset.map(steps, ["image"], num_parallel_workers=workers).batch(64, num_parallel_workers=workers), len(data)


def function(folder: Path, workers: int):
    """Return rows after a Python function."""
    data = np.random.RandomState(0).rand(8192, 32).astype(np.float32)
    dataset = ds.NumpySlicesDataset({"x": data}, shuffle=True, num_parallel_workers=workers)
    return dataset.map(lambda x: x * 2 + 1, ["x"], num_parallel_workers=workers).batch(64, num_parallel_workers=workers), len(data)


def jpeg(folder: Path, workers: int, size: int = 224, batch: int = BATCH):
    """Decode, crop at random, resize, flip and normalize pictures: the usual pipeline for training image nets."""
    dataset = ds.ImageFolderDataset(str(folder / "pictures"), shuffle=True, num_parallel_workers=workers)
    steps = [vision.Decode(), vision.RandomResizedCrop(size), vision.RandomHorizontalFlip(), vision.Normalize(MEAN, STD), vision.HWC2CHW()]
    dataset = dataset.map(steps, "image", num_parallel_workers=workers)
    return dataset.batch(batch, num_parallel_workers=workers), pictures(folder)


def folder(folder: Path, workers: int):
    """Return a folder of pictures, resized and cropped in the middle, as for evaluation."""
    dataset = ds.ImageFolderDataset(str(folder / "pictures"), shuffle=False, decode=True, num_parallel_workers=workers)
    steps = [vision.Resize(256), vision.CenterCrop(224), vision.Normalize(MEAN, STD), vision.HWC2CHW()]
    dataset = dataset.map(steps, "image", num_parallel_workers=workers)
    return dataset.batch(BATCH, num_parallel_workers=workers), pictures(folder)


def sentences(folder: Path, workers: int):
    """Split lines of a file into words, look these up and pad the results to one length."""
    dataset = ds.TextFileDataset(str(folder / "lines.txt"), shuffle=False, num_parallel_workers=workers)
    vocabulary = text.Vocab.from_list(WORDS, special_tokens=["<pad>", "<unk>"])
    steps = [text.WhitespaceTokenizer(), text.Lookup(vocabulary, "<unk>"), transforms.PadEnd([64], 0)]
    return dataset.map(steps, ["text"], num_parallel_workers=workers).batch(64, num_parallel_workers=workers), 4096


def records(folder: Path, workers: int):
    """Return rows of MindRecord files."""
    dataset = ds.MindDataset(str(folder / "rows.mindrecord"), shuffle=False, num_parallel_workers=workers)
    return dataset.batch(64, num_parallel_workers=workers), 4096


def mel(folder: Path, workers: int):
    """Return half a second of sound as a mel spectrogram."""
    from mindspore.dataset import audio

    data = np.random.RandomState(0).randn(512, 8000).astype(np.float32)
    dataset = ds.NumpySlicesDataset({"sound": data}, shuffle=False, num_parallel_workers=workers)
    steps = [audio.Spectrogram(400, 400, 160), audio.MelScale(n_mels=80, sample_rate=16000, n_stft=201)]
    return dataset.map(steps, ["sound"], num_parallel_workers=workers).batch(BATCH, num_parallel_workers=workers), len(data)


def pictures(folder: Path) -> int:
    """Return the number of pictures."""
    return sum(len(files) for _, _, files in os.walk(folder / "pictures"))


def make(folder: Path) -> None:
    """Write the files that the pipelines read: 512 JPEGs of 320 x 256, lines of words, and a MindRecord file."""
    import cv2

    random = np.random.RandomState(0)
    for number in range(512):
        target = folder / "pictures" / f"class{number % 4}"
        target.mkdir(parents=True, exist_ok=True)
        smooth = cv2.resize(random.randint(0, 256, (16, 20, 3)).astype(np.uint8), (320, 256), interpolation=cv2.INTER_CUBIC)
        noisy = np.clip(smooth.astype(int) + random.randint(-12, 13, smooth.shape), 0, 255).astype(np.uint8)
        cv2.imwrite(str(target / f"{number}.jpg"), noisy, [cv2.IMWRITE_JPEG_QUALITY, 90])
    lines = [" ".join(WORDS[n] for n in random.randint(0, 1000, random.randint(8, 64))) for _ in range(4096)]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    writer = FileWriter(str(folder / "rows.mindrecord"), 1, overwrite=True)
    writer.add_schema({"image": {"type": "float32", "shape": [3, 32, 32]}, "label": {"type": "int32"}}, "benchmark")
    writer.write_raw_data([{"image": random.rand(3, 32, 32).astype(np.float32), "label": n} for n in range(4096)])
    writer.commit()
