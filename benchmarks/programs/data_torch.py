"""The pipelines of data.py, written for torch's DataLoader: the same functions and rows."""
from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

MEAN, STD = np.float32([123.675, 116.28, 103.53]), np.float32([58.395, 57.12, 57.375])


class Rows(Dataset):
    """Rows by index, each through a function."""

    def __init__(self, items, function) -> None:
        self.items, self.function = items, function

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index):
        return self.function(self.items[index])


def loader(items, function, workers: int, batch: int, shuffle: bool):
    """Return a DataLoader and the number of rows; with one worker, torch loads in the program's process."""
    count = 0 if workers == 1 else workers
    dataset = DataLoader(Rows(items, function), batch, shuffle, num_workers=count, persistent_workers=count > 0)
    return dataset, len(items)


def rows(folder: Path, workers: int):
    data = np.random.RandomState(0).randint(0, 256, (8192, 28, 28, 1)).astype(np.uint8)
    both = list(zip(data, range(len(data))))

    def scaled(row):
        return np.ascontiguousarray((row[0] * np.float32(1 / 255)).transpose(2, 0, 1)), row[1]

    return loader(both, scaled, workers, 64, True)


def function(folder: Path, workers: int):
    return loader(np.random.RandomState(0).rand(8192, 32).astype(np.float32), lambda x: x * 2 + 1, workers, 64, True)


def _pictures(folder: Path):
    """Return (path, class) of each picture; the folders are the classes."""
    classes = sorted(os.listdir(folder / "pictures"))
    return [
        (os.path.join(folder, "pictures", name, file), label)
        for label, name in enumerate(classes) for file in sorted(os.listdir(folder / "pictures" / name))
    ]


def _read(path):
    return cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB)


def _normal(image):
    return torch.from_numpy((image - MEAN) / STD).permute(2, 0, 1).contiguous()


def jpeg(folder: Path, workers: int, size: int = 224, batch: int = 32):
    def augmented(row):
        image = _read(row[0])
        height, width = image.shape[:2]
        area, ratio = height * width * np.random.uniform(0.08, 1.0), np.exp(np.random.uniform(np.log(3 / 4), np.log(4 / 3)))
        wide, high = min(width, round((area * ratio) ** 0.5)), min(height, round((area / ratio) ** 0.5))
        top, left = np.random.randint(height - high + 1), np.random.randint(width - wide + 1)
        image = cv2.resize(image[top : top + high, left : left + wide], (size, size))
        return _normal(image[:, ::-1] if np.random.rand() < 0.5 else image), row[1]

    return loader(_pictures(folder), augmented, workers, batch, True)


def folder(folder: Path, workers: int):
    def cropped(row):
        image = cv2.resize(_read(row[0]), (320, 256))
        return _normal(image[16:240, 48:272]), row[1]

    return loader(_pictures(folder), cropped, workers, 32, False)


def sentences(folder: Path, workers: int):
    number = {f"word{n}": n + 2 for n in range(1000)}

    def looked_up(line):
        numbers = [number.get(word, 1) for word in line.split()][:64]
        return np.array(numbers + [0] * (64 - len(numbers)), np.int32)

    return loader((folder / "lines.txt").read_text().splitlines(), looked_up, workers, 64, False)


def mel(folder: Path, workers: int):
    window, scale = torch.hann_window(400), torch.from_numpy(_filters(80, 201, 16000))

    def spectrogram(sound):
        power = torch.stft(torch.from_numpy(sound), 400, 160, 400, window, return_complex=True).abs() ** 2
        return scale.T @ power

    return loader(np.random.RandomState(0).randn(512, 8000).astype(np.float32), spectrogram, workers, 32, False)


def _filters(mels: int, bins: int, rate: int) -> np.ndarray:
    """Return triangles on the mel scale, (bins, mels)."""
    points = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), mels + 2) / 2595) - 1)
    frequencies = np.linspace(0, rate // 2, bins)
    slopes = points[None] - frequencies[:, None]
    steps = np.diff(points)
    return np.maximum(0, np.minimum(-slopes[:, :-2] / steps[:-1], slopes[:, 2:] / steps[1:])).astype(np.float32)
