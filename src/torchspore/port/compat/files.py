"""Helpers that read the files of data sets, and transforms of pictures."""
from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset


class Mnist(Dataset[Any]):
    """Pictures (28, 28, 1) and labels of MNIST's unpacked files, the test rows first; labels are int32."""

    def __init__(self, dataset_dir: str, usage: str = "all") -> None:
        parts = {"train": ["train"], "test": ["t10k"]}.get(usage, ["t10k", "train"])
        parts = [part for part in parts if os.path.exists(os.path.join(dataset_dir, f"{part}-images-idx3-ubyte")) or len(parts) == 1]
        pictures = [np.fromfile(os.path.join(dataset_dir, f"{part}-images-idx3-ubyte"), np.uint8, offset=16) for part in parts]
        labels = [np.fromfile(os.path.join(dataset_dir, f"{part}-labels-idx1-ubyte"), np.uint8, offset=8) for part in parts]
        self.pictures = np.concatenate(pictures).reshape(-1, 28, 28, 1)
        self.labels = np.concatenate(labels).astype(np.int32)

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
