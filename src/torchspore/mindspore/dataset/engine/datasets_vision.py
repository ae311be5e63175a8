"""Sources of images: the MNIST files and folders of images."""
from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message
from torchspore.errors import FileFormatError
from torchspore.mindspore.dataset.core.validator_helpers import check_bool, check_choice, check_type
from torchspore.mindspore.dataset.engine.datasets_user_defined import MappableDataset
from torchspore.mindspore.dataset.engine.rows import Row

_IMAGES, _LABELS = 2051, 2049
_SIDE = 28


class MnistDataset(MappableDataset):
    """The images (28, 28, 1) uint8 and labels () uint32 of MNIST, read from its IDX files.

    `dataset_dir` holds `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-...`; `usage` is 'train', 'test' or 'all' (None): the
    test rows, then the training rows. Raises ValueError for a missing folder or a wrong argument, and when read FileNotFoundError for a
    missing file, FileFormatError (a ValueError) for one that is cut short or is no such file; both name the file.
    """

    _files = {"train": ("train",), "test": ("t10k",), "all": ("t10k", "train")}

    def __init__(
        self, dataset_dir: str, usage: str | None = None, num_samples: int | None = None, num_parallel_workers: int | None = None,
        shuffle: bool | None = None, sampler: Any = None, num_shards: int | None = None, shard_id: int | None = None, cache: Any = None,
    ) -> None:
        self.dataset_dir = check_folder(type(self).__name__, dataset_dir)
        if usage is not None:
            check_choice(type(self).__name__, "usage", usage, self._files)
        self.usage = usage or "all"
        super().__init__(type(self).__name__, num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self._data: tuple[np.ndarray, np.ndarray] | None = None

    def _columns(self) -> list[str]:
        return ["image", "label"]

    def _count(self) -> int:
        return len(self._read_files()[1])

    def _read(self, index: int) -> Row:
        images, labels = self._read_files()
        return images[index], labels[index, ...]

    def _read_files(self) -> tuple[np.ndarray, np.ndarray]:
        if self._data is None:
            parts = [
                read_pair(self.dataset_dir, name)
                for name in self._files[self.usage]
                if self.usage != "all" or _present(self.dataset_dir, name)
            ]
            if not parts:
                read_pair(self.dataset_dir, "train")  # raises, and names the file
            self._data = np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])
        return self._data


class FashionMnistDataset(MnistDataset):
    """Fashion-MNIST, which comes in MNIST's file format."""

    def num_classes(self) -> int:
        """Ten kinds of clothes."""
        return 10


class KMnistDataset(MnistDataset):
    """Kuzushiji-MNIST, which comes in MNIST's file format."""


def check_folder(call: str, folder: Any) -> Path:
    """The folder as a Path. Raises TypeError for what is no str, ValueError where there is no such folder."""
    check_type(call, "dataset_dir", folder, (str, Path), "a path")
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ValueError(message(f"{call}(dataset_dir={str(folder)!r})", f"a folder that exists (looked for {path.resolve()})"))
    return path


def _present(folder: Path, name: str) -> bool:
    return any((folder / f"{name}-{part}").exists() for part in ("images-idx3-ubyte", "labels-idx1-ubyte"))


def read_pair(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The images (N, 28, 28, 1) uint8 and labels (N,) uint32 of `name`-images-idx3-ubyte and `name`-labels-idx1-ubyte."""
    image_path, label_path = folder / f"{name}-images-idx3-ubyte", folder / f"{name}-labels-idx1-ubyte"
    images = _read_idx(image_path, _IMAGES, 3)
    labels = _read_idx(label_path, _LABELS, 1)
    if images.shape[1:] != (_SIDE, _SIDE):
        raise FileFormatError(message(f"{image_path}: images of {images.shape[1]}x{images.shape[2]}", "images of 28x28, as MNIST has"))
    if len(images) != len(labels):
        raise FileFormatError(message(f"{label_path}: {len(labels)} labels", f"{len(images)}, one for each image of {image_path.name}"))
    return images[..., None], labels.astype(np.uint32)


def _read_idx(path: Path, magic: int, rank: int) -> np.ndarray:
    """The array of an IDX file of bytes: magic number, one big-endian size for each axis, the values."""
    if not path.is_file():
        hint = "MNIST's four files must lie unpacked in dataset_dir"
        packed = path.with_name(path.name + ".gz")
        if packed.is_file():
            hint = f"unpack it: gunzip {packed}"
        raise FileNotFoundError(message(str(path), "this file of the MNIST format", hint=hint))
    content = path.read_bytes()
    head = 4 * (1 + rank)
    if len(content) < head:
        raise FileFormatError(message(f"{path}: {len(content)} bytes", f"a head of {head} bytes; the file is cut short"))
    found, *shape = struct.unpack(f">{1 + rank}I", content[:head])
    if found != magic:
        raise FileFormatError(
            message(f"{path}: magic number {found}", f"{magic}, as {'image' if rank == 3 else 'label'} files of MNIST have")
        )
    size = math.prod(shape)
    if len(content) - head != size:
        state = "the file is cut short" if len(content) - head < size else "the file is too long"
        raise FileFormatError(message(f"{path}: {len(content)} bytes", f"{head + size}, as its head says; {state}"))
    return np.frombuffer(content, np.uint8, offset=head).reshape(shape)


class Cifar10Dataset(MappableDataset):
    """CIFAR-10's images (32, 32, 3) uint8 and labels () uint32, read from its binary files `data_batch_*.bin` and `test_batch.bin`."""

    _labels = 1

    def __init__(
        self, dataset_dir: str, usage: str | None = None, num_samples: int | None = None, num_parallel_workers: int | None = None,
        shuffle: bool | None = None, sampler: Any = None, num_shards: int | None = None, shard_id: int | None = None, cache: Any = None,
    ) -> None:
        self.dataset_dir = check_folder(type(self).__name__, dataset_dir)
        if usage is not None:
            check_choice(type(self).__name__, "usage", usage, ("train", "test", "all"))
        self.usage = usage or "all"
        super().__init__(type(self).__name__, num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self._data: np.ndarray | None = None

    def _columns(self) -> list[str]:
        return ["image", "label"]

    def _files(self) -> list[Path]:
        train, test = sorted(self.dataset_dir.glob("data_batch_*.bin")), sorted(self.dataset_dir.glob("test_batch.bin"))
        return {"train": train, "test": test, "all": train + test}[self.usage]

    def _records(self) -> np.ndarray:
        if self._data is None:
            size = self._labels + 3072
            files = self._files()
            if not files:
                raise FileNotFoundError(message(f"{self.dataset_dir}: no file for usage={self.usage!r}", "the binary version's .bin files"))
            parts = []
            for path in files:
                if not path.is_file():
                    raise FileFormatError(message(str(path), "a plain file"))
                content = np.fromfile(path, np.uint8)
                if not len(content) or len(content) % size:
                    raise FileFormatError(message(f"{path}: {len(content)} bytes", f"a multiple of {size}; the file is cut short"))
                parts.append(content.reshape(-1, size))
            self._data = np.concatenate(parts)
        return self._data

    def _count(self) -> int:
        return len(self._records())

    def _read(self, index: int) -> Row:
        record = self._records()[index]
        image = np.ascontiguousarray(record[self._labels :].reshape(3, 32, 32).transpose(1, 2, 0))
        return (image, *(np.array(label, np.uint32) for label in record[: self._labels]))


class Cifar100Dataset(Cifar10Dataset):
    """CIFAR-100's images, coarse labels and fine labels, read from `train.bin` and `test.bin`."""

    _labels = 2

    def _columns(self) -> list[str]:
        return ["image", "coarse_label", "fine_label"]

    def _files(self) -> list[Path]:
        train, test = sorted(self.dataset_dir.glob("train.bin")), sorted(self.dataset_dir.glob("test.bin"))
        return {"train": train, "test": test, "all": train + test}[self.usage]

    def _read(self, index: int) -> Row:
        return super()._read(index)


class ImageFolderDataset(MappableDataset):
    """Images in one folder for each class, and as label (int32) the class's number in sorted order, or the one of `class_indexing`.

    The column `image` holds the bytes of the file (uint8), with `decode=True` the picture (H, W, 3). Raises ValueError for a missing
    folder, RuntimeError where it holds no image.
    """

    _suffixes = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

    def __init__(
        self, dataset_dir: str, num_samples: int | None = None, num_parallel_workers: int | None = None, shuffle: bool | None = None,
        sampler: Any = None, extensions: list[str] | None = None, class_indexing: dict[str, int] | None = None, decode: bool = False,
        num_shards: int | None = None, shard_id: int | None = None, cache: Any = None, decrypt: Any = None,
    ) -> None:
        self.dataset_dir = check_folder("ImageFolderDataset", dataset_dir)
        if extensions is not None:
            check_type("ImageFolderDataset", "extensions", extensions, list, "a list such as ['.jpg']")
        if class_indexing is not None:
            check_type("ImageFolderDataset", "class_indexing", class_indexing, dict, "a dict from folder name to label")
        check_bool("ImageFolderDataset", "decode", decode)
        if decrypt is not None:
            check_type("ImageFolderDataset", "decrypt", decrypt, type(check_folder), "a function")
        self.extensions = tuple(one.lower() for one in extensions) if extensions else self._suffixes
        self.class_indexing, self.decode, self.decrypt = class_indexing, decode, decrypt
        super().__init__("ImageFolderDataset", num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self._found: list[tuple[Path, int]] | None = None

    def _columns(self) -> list[str]:
        return ["image", "label"]

    def get_class_indexing(self) -> dict[str, int]:
        """From folder name to label."""
        if self.class_indexing is not None:
            return self.class_indexing
        return {folder.name: number for number, folder in enumerate(sorted(path for path in self.dataset_dir.iterdir() if path.is_dir()))}

    def num_classes(self) -> int:
        """The number of folders."""
        return len(self.get_class_indexing())

    def _files(self) -> list[tuple[Path, int]]:
        if self._found is None:
            found = []
            for name, label in self.get_class_indexing().items():
                folder = self.dataset_dir / name
                if not folder.is_dir():
                    raise RuntimeError(message(f"ImageFolderDataset(class_indexing): {name!r}", f"a folder in {self.dataset_dir}"))
                found += [(path, label) for path in sorted(folder.rglob("*")) if path.suffix.lower() in self.extensions and path.is_file()]
            if not found:
                raise RuntimeError(
                    message(f"ImageFolderDataset({str(self.dataset_dir)!r})", f"images in its folders ({', '.join(self.extensions)})")
                )
            self._found = found
        return self._found

    def _count(self) -> int:
        return len(self._files())

    def _read(self, index: int) -> Row:
        path, label = self._files()[index]
        image: Any = self.decrypt(str(path)) if self.decrypt is not None else path.read_bytes()
        image = np.frombuffer(image, np.uint8)
        if self.decode:
            from torchspore.mindspore.dataset.vision.pictures import decode

            image = decode(image, str(path))
        return image, np.array(label, np.int32)
