"""Helpers that read the files of data sets, and transforms of pictures."""
from __future__ import annotations

import io
import os
from collections.abc import Sequence
from glob import escape, glob
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch.utils.data import Dataset


class Mnist(Dataset[Any]):
    """Pictures (28, 28, 1) and labels of MNIST's unpacked files, the test rows first; labels are int32."""

    def __init__(self, dataset_dir: str, usage: str = "all") -> None:
        parts = {"train": ["train"], "test": ["t10k"]}.get(usage, ["t10k", "train"])
        pictures = [np.fromfile(path, np.uint8, offset=16) for part in parts for path in self.find(dataset_dir, part, "images", "idx3")]
        labels = [np.fromfile(path, np.uint8, offset=8) for part in parts for path in self.find(dataset_dir, part, "labels", "idx1")]
        if not pictures:
            raise FileNotFoundError(f"{dataset_dir}: no file {parts[-1]}-images-idx3-ubyte")
        self.pictures = np.concatenate(pictures).reshape(-1, 28, 28, 1)
        self.labels = np.concatenate(labels).astype(np.int32)

    @staticmethod
    def find(folder: str, part: str, content: str, kind: str) -> list[str]:
        """Return the files of a part, such as train-images-idx3-ubyte or train-images.idx3-ubyte."""
        return [path for path in sorted(glob(f"{escape(folder)}/*{part}-{content}*{kind}-ubyte*")) if not path.endswith(".gz")]

    def __getitem__(self, index: int) -> Any:
        return self.pictures[index], self.labels[index]

    def __len__(self) -> int:
        return len(self.pictures)


class Cifar10(Dataset[Any]):
    """Pictures (32, 32, 3) and labels of CIFAR-10's binary files, the training rows first; labels are int32."""

    files = {"train": "data_batch_*.bin", "test": "test_batch.bin"}
    labels_of_row = 1

    def __init__(self, dataset_dir: str, usage: str = "all") -> None:
        patterns = [self.files[usage]] if usage in self.files else list(self.files.values())
        paths = [path for pattern in patterns for path in sorted(glob(os.path.join(dataset_dir, pattern)))]
        self.rows = np.concatenate([np.fromfile(path, np.uint8).reshape(-1, self.labels_of_row + 3072) for path in paths])

    def __getitem__(self, index: int) -> Any:
        row = self.rows[index]
        picture = row[self.labels_of_row :].reshape(3, 32, 32).transpose(1, 2, 0)
        return (np.ascontiguousarray(picture), *row[: self.labels_of_row].astype(np.int32))

    def __len__(self) -> int:
        return len(self.rows)


class Cifar100(Cifar10):
    """Pictures, coarse and fine labels of CIFAR-100's binary files."""

    files = {"train": "train.bin", "test": "test.bin"}
    labels_of_row = 2


class ImageFolder(Dataset[Any]):
    """Pictures in a folder for each class: their bytes, or their pixels with `decode`, and the number of the class as int32."""

    suffixes = (".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp")

    def __init__(
        self, dataset_dir: str, decode: bool = False, extensions: Sequence[str] | None = None, class_indexing: dict[str, int] | None = None,
    ) -> None:
        self.decode = decode
        folders = sorted(entry.name for entry in os.scandir(dataset_dir) if entry.is_dir())
        suffixes = tuple(suffix.lower() for suffix in extensions or self.suffixes)
        self.rows: list[tuple[str, int]] = []
        for name, number in (class_indexing or {name: number for number, name in enumerate(folders)}).items():
            paths = sorted(glob(os.path.join(escape(os.path.join(dataset_dir, name)), "**", "*"), recursive=True))
            self.rows += [(path, number) for path in paths if path.lower().endswith(suffixes) and os.path.isfile(path)]

    def __getitem__(self, index: int) -> Any:
        path, number = self.rows[index]
        content = np.fromfile(path, np.uint8)
        return decode_picture(content) if self.decode else content, np.array(number, np.int32)

    def __len__(self) -> int:
        return len(self.rows)


def decode_picture(content: Any) -> Any:
    """The pixels (H, W, 3) of the bytes of a file."""
    return np.asarray(PIL.Image.open(io.BytesIO(np.asarray(content).tobytes())).convert("RGB"))


class OneHotLabels:
    """A row of 0 with 1 at the class, smoothed by `smoothing_rate`."""

    def __init__(self, num_classes: int, smoothing_rate: float = 0.0) -> None:
        self.num_classes, self.smoothing_rate = num_classes, smoothing_rate

    def __call__(self, label: Any) -> Any:
        row = np.eye(self.num_classes, dtype=label.dtype)[label.reshape(-1)]
        row = row[0] if label.size == 1 else row
        return row * (1.0 - self.smoothing_rate) + self.smoothing_rate / self.num_classes if self.smoothing_rate else row


class CenterCrop:
    """The middle of a picture (H, W, C), which is not smaller than `size`."""

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, picture: Any) -> Any:
        top, left = (length - new for length, new in zip(picture.shape, self.size))
        if min(top, left) < 0:
            raise ValueError(f"a picture of shape {picture.shape} is smaller than {self.size}")
        return picture[top // 2 : top // 2 + self.size[0], left // 2 : left // 2 + self.size[1]]


def flip_horizontally(picture: Any) -> Any:
    """The picture with left and right swapped."""
    return np.ascontiguousarray(picture[:, ::-1])


def flip_vertically(picture: Any) -> Any:
    """The picture with top and bottom swapped."""
    return np.ascontiguousarray(picture[::-1])


class Rescale:
    """picture * rescale + shift."""

    def __init__(self, rescale: float, shift: float) -> None:
        self.rescale, self.shift = np.float32(rescale), np.float32(shift)

    def __call__(self, picture: Any) -> Any:
        return picture.astype(np.float32) * self.rescale + self.shift


class Normalize:
    """(picture - mean) / std for each channel; the channels are the last axis, or the first without `is_hwc`."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], is_hwc: bool = True) -> None:
        shape = (-1,) if is_hwc else (-1, 1, 1)
        self.mean, self.std = np.array(mean, np.float32).reshape(shape), np.array(std, np.float32).reshape(shape)

    def __call__(self, picture: Any) -> Any:
        return (picture.astype(np.float32) - self.mean) / self.std


class TypeCast:
    """An array in another dtype."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def __call__(self, values: Any) -> Any:
        return values.astype(self.dtype)


def channels_first(picture: Any) -> Any:
    """A picture whose channels are the first axis instead of the last."""
    return np.ascontiguousarray(picture.transpose(2, 0, 1))


def to_tensor(picture: Any) -> Any:
    """A picture of bytes as float32 from 0 to 1, with the channels first."""
    return channels_first(picture).astype(np.float32) / np.float32(255)


def without_first(dataset: Any, count: int) -> Any:
    """The rows of a data set behind the first ones."""
    return torch.utils.data.Subset(dataset, range(min(count, len(dataset)), len(dataset)))


def limited(dataset: Any, count: int) -> Any:
    """The first rows of a data set."""
    return torch.utils.data.Subset(dataset, range(min(count, len(dataset))))
